"""Doing something to many rows: first say what will happen, then do it, at once or as a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils import timezone

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, LcmError
from lcm.models import Job
from lcm.services.jobs import JobStep, register_job, start_job
from lcm.web.filter_time import use_filter_time
from lcm.web.form_page import FormResult, actor_of, redirect_with_message, render_page, save_form
from lcm.web.forms import ReasonForm
from lcm.web.list_page import ListPage, resolve_list, selected_rows

# More than this are left to a worker, so that nobody waits for the page.
AT_ONCE = 500
BATCH = 200


@dataclass(frozen=True)
class BulkResult:
    """How many rows it was done to, and how many had changed meanwhile or cannot be."""

    done: int
    refused: int = 0


# The rows, what the form held, who wants it and when.
Work: TypeAlias = Callable[[Sequence[Any], Mapping[str, Any], Actor, datetime], BulkResult]


@dataclass(frozen=True)
class BulkOperation:
    """Something that is done to many rows of a list; registered, so that a worker can do it as well."""

    name: str
    page: ListPage
    list_url: str
    verb: str
    # As in “3 sessions cancelled”.
    past: str
    # As in “2 of 3 sessions can be cancelled”.
    can_be: str
    effect: str
    # Which rows it cannot be done to.
    rest: str
    # Of the rows chosen, those it can be done to.
    eligible_rows: Callable[[QuerySet[Any]], QuerySet[Any]]
    run: Work
    # What is named of them beside their number.
    describe_extent: Callable[[QuerySet[Any]], str] | None = None
    form: type[ReasonForm] = ReasonForm
    # Of those able, the ones it can be done to with what the form holds, when that matters.
    filter_by_form: Callable[[QuerySet[Any], Mapping[str, Any]], QuerySet[Any]] | None = None
    danger: bool = False
    # More than this are left to a worker; by default as many as cheap actions may be.
    at_once: int | None = None
    # When a row came to be: a job leaves alone what is newer than itself.
    created_field: str = "created_at"

    def rows_for(self, rows: QuerySet[Any], given: Mapping[str, Any]) -> QuerySet[Any]:
        able = self.eligible_rows(rows)
        return self.filter_by_form(able, given) if self.filter_by_form else able

    def asked(self, count: int, chosen: int) -> str:
        """The question, with the number it will be done to; what is instead of it when that is none."""
        if count:
            return f"{self.verb} {self.counted(count)}?"
        if chosen == 1:
            return f"This {self.page.noun} cannot be {self.can_be}"
        return f"None of the {self.counted(chosen)} can be {self.can_be}"

    def effect_text(self, rows: QuerySet[Any]) -> str:
        """What will happen, and to how much."""
        return (
            f"{self.describe_extent(self.eligible_rows(rows))} {self.effect}"
            if self.describe_extent
            else self.effect
        )

    def left_out(self, count: int, chosen: int) -> str:
        """That it is not for all that were chosen, if so."""
        if count == chosen:
            return ""
        some = f"{count:,} of {self.counted(chosen)} can be {self.can_be}. " if count else ""
        return f"{some}{self.rest}"

    def result_text(self, handled: BulkResult) -> str:
        was = "was" if handled.refused == 1 else "were"
        rest = f"; {handled.refused:,} {was} refused" if handled.refused else ""
        return f"{self.counted(handled.done)} {self.past}{rest}."

    def counted(self, count: int) -> str:
        return f"{count:,} {self.page.named(count)}"


def for_each_row(do: Callable[[Any, Mapping[str, Any], Actor, datetime], Any]) -> Work:
    """A row after the other; those whose state does not allow it are counted."""

    def work(rows: Sequence[Any], given: Mapping[str, Any], actor: Actor, now: datetime) -> BulkResult:
        refused = 0
        for row in rows:
            try:
                do(row, given, actor, now)
            except LcmError:
                refused += 1
        return BulkResult(len(rows) - refused, refused)

    return work


_actions: dict[str, BulkOperation] = {}


def register_bulk(action: BulkOperation) -> None:
    """Called when an app is ready."""
    _actions[action.name] = action


def bulk_page(request: HttpRequest, name: str) -> HttpResponseBase:
    """Ask with the number of rows; with the reason given, do it."""
    bulk = _actions[name]
    back = reverse(bulk.list_url)
    try:
        rows, how = selected_rows(request, resolve_list(bulk.page))
    except InvalidInput as error:
        messages.error(request, error.message)
        return redirect_with_message(request, FormResult("", back))
    chosen = rows.count()
    if not chosen:
        messages.warning(request, f"No {bulk.page.noun} was selected.")
        return redirect_with_message(request, FormResult("", back))
    count = bulk.eligible_rows(rows).count()
    form = bulk.form(request.POST if "reason" in request.POST else None)
    if form.is_bound and count:
        done = save_form(form, lambda data: _do(request, bulk, rows, how, data))
        if done:
            return redirect_with_message(request, done)
    title = bulk.asked(count, chosen)
    context = {
        "bulk": bulk,
        "form": form,
        "title": title,
        "count": count,
        "submit": f"{bulk.verb} {bulk.counted(count)}",
        "effect": bulk.effect_text(rows),
        "left_out": bulk.left_out(count, chosen),
        "how": how,
        "keys": request.POST.getlist("pk") if how == "ticked" else [],
        "filter_query": request.POST.get("filter_query", ""),
        "in_background": _is_long(bulk, how, count),
        "back": back,
        "crumbs": [(bulk.page.title, back), (title.removesuffix("?"), "")],
    }
    return render_page(request, "bulk.html", context, status=422 if form.is_bound else 200)


def _is_long(bulk: BulkOperation, how: str, count: int) -> bool:
    return how == "all" and count > (AT_ONCE if bulk.at_once is None else bulk.at_once)


def _do(
    request: HttpRequest, bulk: BulkOperation, rows: QuerySet[Any], how: str, data: Mapping[str, Any]
) -> FormResult:
    given = {name: _kept(value) for name, value in data.items()}
    able, actor, now = bulk.rows_for(rows, given), actor_of(request), timezone.now()
    count = able.count()
    if not count:
        raise InvalidInput({"__all__": f"None of them can be {bulk.can_be} like this."})
    if _is_long(bulk, how, count):
        query = request.POST.get("filter_query", "")
        job = start_job(
            kind="bulk",
            title=f"{bulk.verb} {bulk.counted(count)}",
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
    return FormResult(bulk.result_text(bulk.run(list(able), given, actor, now)), reverse(bulk.list_url))


def _kept(value: Any) -> Any:
    """As a job keeps it."""
    return value.isoformat() if isinstance(value, datetime) else value


def bulk_step(job: Job, now: datetime) -> JobStep:
    """The next rows that matched the filters when the job was started, in the order of their keys."""
    with use_filter_time(job.created_at, job.arguments.get("time_zone", "UTC")):
        return _next_rows(job, now)


def _next_rows(job: Job, now: datetime) -> JobStep:
    bulk = _actions[job.arguments["action"]]
    page = resolve_list(bulk.page)
    filters = page.filterset(QueryDict(job.arguments["filter_query"]), queryset=page.rows())
    if not filters.is_valid():
        raise InvalidInput({"filter_query": "The filters of this selection cannot be read any more."})
    rows = bulk.rows_for(filters.qs, job.arguments)
    if after := job.cursor.get("after"):
        rows = rows.filter(pk__gt=UUID(after))
    batch = list(rows.filter(**{f"{bulk.created_field}__lte": job.created_at}).order_by("pk")[:BATCH])
    if not batch:
        return JobStep(result=bulk.result_text(BulkResult(job.done, job.refused)))
    actor = Actor(label=job.actor, user_id=job.user_id)
    handled = bulk.run(batch, job.arguments, actor, now)
    return JobStep(handled.done, handled.refused, {"after": str(batch[-1].pk)}, more=True)


register_job("bulk", bulk_step)
