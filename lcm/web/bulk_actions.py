"""Bulk actions on list rows: confirmation page, then execution in the request or as a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy, override
from django.views.decorators.http import require_POST

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, LcmError
from lcm.domain.roles import Role
from lcm.extensions import Extension
from lcm.models import Job
from lcm.services.jobs import JobStep, save_part, start_job
from lcm.web.access import View, role_required
from lcm.web.filter_time import use_filter_time
from lcm.web.form_page import FormResult, actor_of, redirect_with_message, render_page, save_form
from lcm.web.forms import ReasonForm
from lcm.web.list_page import ListPage, selected_rows, with_additions
from lcm.web.wording import Plural

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# Larger selections run as a job, so that the request does not block.
AT_ONCE = 500
BATCH = 200


@dataclass(frozen=True)
class BulkResult:
    """Numbers of processed and rejected items."""

    done: int
    rejected: int = 0


# Arguments: rows, cleaned form data, actor and time.
Work: TypeAlias = Callable[[Sequence[Any], Mapping[str, Any], Actor, datetime], BulkResult]


REJECTED = Plural(ngettext_lazy("%(count)s item rejected.", "%(count)s items rejected."))
NONE_ELIGIBLE = Plural(
    ngettext_lazy("The selected row is not eligible", "None of the %(count)s selected rows are eligible")
)


@dataclass(frozen=True)
class BulkTexts:
    """The texts of a bulk action; `%(count)s` is the number of eligible rows."""

    button: Plural
    question: Plural
    result: Plural
    # What happens to the eligible rows.
    effect: StrOrPromise
    # If no selected row is eligible; counts the selected rows.
    none_eligible: Plural = NONE_ELIGIBLE
    # If some are; `%(selected)s` is the number of selected rows.
    some_eligible: StrOrPromise = gettext_lazy("%(count)s of %(selected)s selected rows are eligible.")
    # Which rows are not eligible.
    ineligible: StrOrPromise = ""
    # Button that closes the dialog without a change.
    dismiss: StrOrPromise = gettext_lazy("Cancel")


@dataclass(frozen=True)
class BulkOperation:
    """A bulk action of a list. A job finds it by its name in the extensions of the apps."""

    name: str
    page: ListPage
    list_url: str
    texts: BulkTexts
    # Narrows the selected rows to the eligible ones.
    eligible_rows: Callable[[QuerySet[Any]], QuerySet[Any]]
    run: Work
    # Describes the eligible rows beyond their number.
    describe_extent: Callable[[QuerySet[Any]], str] | None = None
    form: type[ReasonForm] = ReasonForm
    # Narrows the eligible rows further by the submitted form.
    filter_by_form: Callable[[QuerySet[Any], Mapping[str, Any]], QuerySet[Any]] | None = None
    danger: bool = False
    # False if a second run on a row would change it again. A job then saves its progress with each row.
    is_repeatable: bool = True
    # Larger selections run as a job; defaults to AT_ONCE.
    at_once: int | None = None
    # Creation time of a row: a job skips rows created after it started.
    created_field: str = "created_at"

    def rows_for(self, rows: QuerySet[Any], given: Mapping[str, Any]) -> QuerySet[Any]:
        eligible = self.eligible_rows(rows)
        return self.filter_by_form(eligible, given) if self.filter_by_form else eligible

    def question(self, count: int, selected: int) -> str:
        """Return the confirmation question, or that no selected row is eligible."""
        return self.texts.question.text(count) if count else self.texts.none_eligible.text(selected)

    def effect_text(self, rows: QuerySet[Any]) -> str:
        """Describe what the action does, with the extent of the eligible rows."""
        if self.describe_extent is None:
            return str(self.texts.effect)
        return f"{self.describe_extent(self.eligible_rows(rows))} {self.texts.effect}"

    def ineligible_note(self, count: int, selected: int) -> str:
        """Explain why some selected rows are excluded; empty if none is."""
        if count == selected:
            return ""
        if not count:
            return str(self.texts.ineligible)
        some = self.texts.some_eligible % {"count": f"{count:,}", "selected": f"{selected:,}"}
        return f"{some} {self.texts.ineligible}"

    def result_text(self, handled: BulkResult) -> str:
        result = self.texts.result.text(handled.done)
        return f"{result} {REJECTED.text(handled.rejected)}" if handled.rejected else result


def for_each_row(do: Callable[[Any, Mapping[str, Any], Actor, datetime], Any]) -> Work:
    """Apply a function to each row and count the rows it rejects."""

    def work(rows: Sequence[Any], given: Mapping[str, Any], actor: Actor, now: datetime) -> BulkResult:
        rejected = 0
        for row in rows:
            try:
                do(row, given, actor, now)
            except LcmError:
                rejected += 1
        return BulkResult(len(rows) - rejected, rejected)

    return work


def bulk_view(bulk: BulkOperation, role: Role) -> View:
    """Return the view of a bulk action, for people with a role."""
    return require_POST(role_required(role)(partial(bulk_page, bulk=bulk)))


def bulk_page(request: HttpRequest, bulk: BulkOperation) -> HttpResponseBase:
    """Show the confirmation page; if a reason is submitted, run the action."""
    back = list_address(request, bulk)
    try:
        rows, selection = selected_rows(request, with_additions(bulk.page))
    except InvalidInput as error:
        messages.error(request, error.message)
        return redirect_with_message(request, FormResult("", back))
    selected = rows.count()
    if not selected:
        messages.warning(request, _("No rows were selected."))
        return redirect_with_message(request, FormResult("", back))
    count = bulk.eligible_rows(rows).count()
    form = bulk.form(request.POST if "reason" in request.POST else None)
    if form.is_bound and count:
        done = save_form(form, lambda data: _do(request, bulk, rows, selection, data))
        if done:
            return redirect_with_message(request, done)
    title = bulk.question(count, selected)
    button = bulk.texts.button.text(count)
    context = {
        "bulk": bulk,
        "form": form,
        "title": title,
        "count": count,
        "submit": button,
        "effect": bulk.effect_text(rows),
        "ineligible_note": bulk.ineligible_note(count, selected),
        "how": selection,
        "keys": request.POST.getlist("pk") if selection == "ticked" else [],
        "filter_query": request.POST.get("filter_query", ""),
        "in_background": _is_long(bulk, selection, count),
        "back": back,
        "crumbs": [(bulk.page.title, back), (button if count else title, "")],
    }
    return render_page(request, "bulk.html", context, status=422 if form.is_bound else 200)


def list_address(request: HttpRequest, bulk: BulkOperation) -> str:
    """Return the address of the list as it was: with its filters, order and page size."""
    query = request.POST.get("filter_query", "")
    return f"{reverse(bulk.list_url)}?{query}" if query else reverse(bulk.list_url)


def _is_long(bulk: BulkOperation, selection: str, count: int) -> bool:
    return selection == "all" and count > (AT_ONCE if bulk.at_once is None else bulk.at_once)


def _do(
    request: HttpRequest, bulk: BulkOperation, rows: QuerySet[Any], selection: str, data: Mapping[str, Any]
) -> FormResult:
    given = {name: _to_json(value) for name, value in data.items()}
    eligible, actor, now = bulk.rows_for(rows, given), actor_of(request), timezone.now()
    count = eligible.count()
    if not count:
        raise InvalidInput({"__all__": _("None of the selected rows are eligible with these values.")})
    if _is_long(bulk, selection, count):
        query = request.POST.get("filter_query", "")
        # Stored texts are English.
        with override(settings.LANGUAGE_CODE):
            title = bulk.texts.button.text(count)
        job = start_job(
            kind="bulk",
            title=title,
            arguments={
                **given,
                "action": bulk.name,
                "filter_query": query,
                "time_zone": timezone.get_current_timezone_name(),
            },
            total=count,
            reason=given["reason"],
            actor=actor,
            now=now,
        )
        return FormResult("", reverse("job_detail", args=[job.pk]))
    return FormResult(
        bulk.result_text(bulk.run(list(eligible), given, actor, now)), list_address(request, bulk)
    )


def _to_json(value: object) -> Any:
    """Convert a form value to JSON for the job's arguments."""
    return value.isoformat() if isinstance(value, datetime) else value


def bulk_step(job: Job, now: datetime) -> JobStep:
    """Process the next batch of rows that matched the filters when the job started, in key order."""
    with use_filter_time(job.created_at, job.arguments.get("time_zone", "UTC")):
        return _next_rows(job, now)


def _next_rows(job: Job, now: datetime) -> JobStep:
    actions = {each.name: each for each in Extension.installed().bulk_actions}
    bulk = actions[job.arguments["action"]]
    page = with_additions(bulk.page)
    filters = page.filterset(QueryDict(job.arguments["filter_query"]), queryset=page.rows())
    if not filters.is_valid():
        raise InvalidInput(
            {"filter_query": _("The filters of this selection are no longer valid. Select the rows again.")}
        )
    rows = bulk.rows_for(filters.qs, job.arguments)
    if after := job.cursor.get("after"):
        rows = rows.filter(pk__gt=UUID(after))
    batch = list(rows.filter(**{f"{bulk.created_field}__lte": job.created_at}).order_by("pk")[:BATCH])
    if not batch:
        return JobStep(result=bulk.result_text(BulkResult(job.done, job.rejected)))
    actor = Actor(label=job.actor, user_id=job.user_id)
    if not bulk.is_repeatable:
        _run_each_once(bulk, job, batch, actor, now)
        return JobStep(cursor=job.cursor, more=True)
    handled = bulk.run(batch, job.arguments, actor, now)
    return JobStep(handled.done, handled.rejected, {"after": str(batch[-1].pk)}, more=True)


def _run_each_once(bulk: BulkOperation, job: Job, batch: Sequence[Any], actor: Actor, now: datetime) -> None:
    """Process rows one by one, so that a job whose worker was killed continues after the last row."""
    for row in batch:
        with transaction.atomic():
            handled = bulk.run([row], job.arguments, actor, now)
            save_part(job, JobStep(handled.done, handled.rejected, {"after": str(row.pk)}), now=now)
