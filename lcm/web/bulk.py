"""Doing something to many rows: first say what will happen, then do it, at once or as a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.urls import reverse
from django.utils import timezone

from lcm.actors import Actor
from lcm.errors import InvalidInput
from lcm.models import Job
from lcm.services.jobs import Step, register_job, start_job
from lcm.web.form_pages import Done, actor_of, go, save_form, show
from lcm.web.forms import ReasonForm
from lcm.web.lists import ListPage, selection, shown_list

# More than this are left to a worker, so that nobody waits for the page.
AT_ONCE = 500
BATCH = 200


@dataclass(frozen=True)
class Handled:
    """How many rows it was done to, and how many had changed meanwhile or cannot be."""

    done: int
    refused: int = 0


@dataclass(frozen=True)
class BulkWork:
    """Something that is done to many rows of a list; registered, so that a worker can do it as well."""

    name: str
    page: ListPage
    list_url: str
    verb: str
    # As in “3 sessions cancelled”.
    past: str
    effect: str
    # Of the rows chosen, those it can be done to.
    able: Callable[[QuerySet[Any]], QuerySet[Any]]
    work: Callable[[Sequence[Any], str, Actor, datetime], Handled]
    danger: bool = False

    def told(self, handled: Handled) -> str:
        are = "it is" if handled.refused == 1 else "they are"
        rest = f"; {handled.refused:,} could not be, as {are} now" if handled.refused else ""
        return f"{handled.done:,} {self.page.named(handled.done)} {self.past}{rest}."


_actions: dict[str, BulkWork] = {}


def register_bulk(action: BulkWork) -> None:
    """Called when an app is ready."""
    _actions[action.name] = action


def bulk_page(request: HttpRequest, name: str) -> HttpResponseBase:
    """Ask with the number of rows; with the reason given, do it."""
    bulk = _actions[name]
    back = reverse(bulk.list_url)
    try:
        rows, how = selection(request, shown_list(bulk.page))
    except InvalidInput as error:
        messages.error(request, error.message)
        return go(request, Done("", back))
    count = rows.count()
    if not count:
        messages.warning(request, f"No {bulk.page.noun} was selected.")
        return go(request, Done("", back))
    form = ReasonForm(request.POST if "reason" in request.POST else None)
    if form.is_bound:
        done = save_form(form, lambda data: _do(request, bulk, rows, how, data["reason"]))
        if done:
            return go(request, done)
    named = f"{count:,} {bulk.page.named(count)}"
    context = {
        "bulk": bulk,
        "form": form,
        "named": named,
        "how": how,
        "keys": request.POST.getlist("pk") if how == "ticked" else [],
        "filter_query": request.POST.get("filter_query", ""),
        "in_background": how == "all" and count > AT_ONCE,
        "back": back,
        "crumbs": [(bulk.page.title, back), (f"{bulk.verb} {named}", "")],
    }
    return show(request, "bulk.html", context, status=422 if form.is_bound else 200)


def _do(request: HttpRequest, bulk: BulkWork, rows: QuerySet[Any], how: str, reason: str) -> Done:
    able, actor, now = bulk.able(rows), actor_of(request), timezone.now()
    count = able.count()
    if how == "all" and count > AT_ONCE:
        job = start_job(
            kind="bulk",
            title=f"{bulk.verb} {count:,} {bulk.page.named(count)}",
            arguments={
                "action": bulk.name,
                "filter_query": request.POST.get("filter_query", ""),
                "reason": reason,
            },
            total=count,
            reason=reason,
            actor=actor,
            now=now,
        )
        return Done("", reverse("job_detail", args=[job.pk]))
    return Done(bulk.told(bulk.work(list(able), reason, actor, now)), reverse(bulk.list_url))


def bulk_step(job: Job, now: datetime) -> Step:
    """The next rows that matched the filters when the job was started, in the order of their keys."""
    bulk = _actions[job.arguments["action"]]
    page = shown_list(bulk.page)
    filters = page.filterset(QueryDict(job.arguments["filter_query"]), queryset=page.rows())
    if not filters.is_valid():
        raise InvalidInput({"filter_query": "The filters of this selection cannot be read any more."})
    rows = bulk.able(filters.qs)
    if after := job.cursor.get("after"):
        rows = rows.filter(pk__gt=UUID(after))
    batch = list(rows.filter(created_at__lte=job.created_at).order_by("pk")[:BATCH])
    if not batch:
        return Step(result=bulk.told(Handled(job.done, job.refused)))
    actor = Actor(label=job.actor, user_id=job.user_id)
    handled = bulk.work(batch, job.arguments["reason"], actor, now)
    return Step(handled.done, handled.refused, {"after": str(batch[-1].pk)}, more=True)


register_job("bulk", bulk_step)
