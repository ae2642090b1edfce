"""Pages of observers and lifecycle handlers: status, runs, and running one now."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.errors import LcmError, NotFound
from lcm.domain.roles import Role
from lcm.web.access import is_local_address, role_required
from lcm.web.form_page import FormResult, redirect_with_message
from lcm.web.list_columns import Column
from lcm.web.list_page import ListPage, list_view
from lcm.web.pagination import capped_counts
from lcm.web.wording import Plural, duration_text
from scheduling.coordination.coordinator import coordinator
from scheduling.filters import RunFilter
from scheduling.models import ObserverRun, RunKind
from scheduling.selectors.observers import (
    NEVER_RAN,
    ObserverStatus,
    has_failed,
    observer_status,
    observer_statuses,
    runs_of,
)
from scheduling.services.observer_runs import enqueue_run


def _kept() -> str:
    """Format the number of recorded runs and failures."""
    rows = ObserverRun.objects.all()
    counts = capped_counts({"all": rows, "failed": rows.filter(has_failed())})
    (count, more), (failed, more_failed) = counts["all"], counts["failed"]
    if not count:
        return gettext("No runs yet.")
    runs = gettext("More than %(count)s runs") if more else ngettext("%(count)s run", "%(count)s runs", count)
    failures = (
        gettext("more than %(count)s failed")
        if more_failed
        else ngettext("%(count)s failed", "%(count)s failed", failed)
    )
    return f"{runs % {'count': f'{count:,}'}} · {failures % {'count': f'{failed:,}'}}."


RUNS = ListPage(
    title=_("Runs"),
    export_name="runs",
    counted=Plural(ngettext_lazy("%(count)s run", "%(count)s runs")),
    search_label=_("Search runs"),
    no_match_title=_("No run matches"),
    empty_title=_("No runs yet"),
    rows=ObserverRun.objects.all,
    filterset=RunFilter,
    columns=[
        Column(_("Observer"), lambda row: row.observer, cell="observers/run_cells.html#observer"),
        Column(_("Started"), lambda row: row.started_at, sort="-started_at", phone="end"),
        Column(
            _("Duration"),
            lambda row: row.duration_ms,
            sort="-duration_ms",
            numeric=True,
            export_label=_("Duration ms"),
            unit="ms",
        ),
        Column(_("Done"), lambda row: row.success_count, numeric=True),
        Column(_("Stale"), lambda row: row.stale_count, numeric=True),
        Column(_("Skipped"), lambda row: row.skipped_count, numeric=True),
        Column(_("Failed"), lambda row: row.failure_count, sort="-failure_count", numeric=True, phone="side"),
        Column(_("Error"), lambda row: row.error, css="wide", phone="below"),
    ],
    default_sort="-started_at",
    search_hint=_("Observer, error"),
    icon="eye",
    empty_hint=_("Beat starts each observer and handler at its interval."),
    lead=lambda: f"**{_kept()}** {gettext('Consecutive idle runs are merged into one.')}",
)


RUNS_SHOWN = 20
# The page of one observer begins with the time of the run.
RUN_COLUMNS = [RUNS.columns[1], *RUNS.columns[2:]]
GROUPS = (
    (RunKind.OBSERVER, _("Observers"), _("Observers read and record. They change no state.")),
    (
        RunKind.HANDLER,
        _("Lifecycle handlers"),
        _("Handlers move sessions that stay in a status for too long (stale)."),
    ),
)


@require_GET
@role_required(Role.VIEWER)
def observer_list(request: HttpRequest) -> HttpResponseBase:
    context = {**_live(), "crumbs": [(gettext("Observers"), "")]}
    return render(request, "observers/list.html", context)


@require_GET
@role_required(Role.VIEWER)
def observer_board(request: HttpRequest) -> HttpResponseBase:
    """The live part of the page."""
    return render(request, "observers/board.html", _live())


run_list = list_view(RUNS, crumbs=[(_("Observers"), reverse_lazy("observer_list")), (_("Runs"), "")])


@require_GET
@role_required(Role.VIEWER)
def observer_detail(request: HttpRequest, name: str) -> HttpResponseBase:
    try:
        found = observer_status(name, timezone.now())
    except NotFound as error:
        raise Http404(error.message) from error
    context = {
        "each": found,
        "sentence": _sentence_of(found),
        "run_columns": RUN_COLUMNS,
        "runs": runs_of(name)[:RUNS_SHOWN],
        "crumbs": [(gettext("Observers"), reverse("observer_list")), (name, "")],
    }
    return render(request, "observers/detail.html", context)


@require_POST
@role_required(Role.OPERATOR)
def observer_run(request: HttpRequest, name: str) -> HttpResponseBase:
    """Enqueue a run and return to the previous page."""
    next_url = request.POST.get("next", "")
    return_url = next_url if is_local_address(request, next_url) else reverse("observer_list")
    try:
        found = observer_status(name, timezone.now())
        enqueue_run(found.kind, name)
    except NotFound as error:
        raise Http404(error.message) from error
    except LcmError as error:
        messages.error(request, error.message)
        return redirect_with_message(request, FormResult("", return_url))
    text = gettext("%(name)s is enqueued and runs as soon as a worker is free.") % {"name": name}
    return redirect_with_message(request, FormResult(text, return_url))


def _sentence_of(found: ObserverStatus) -> str:
    """Format the last run and the purpose of an observer."""
    if found.running:
        first = gettext("Running now.")
    elif found.last is None:
        first = gettext("No runs yet.")
    else:
        first = gettext("Last run %(time)s ago, %(state)s.") % {
            "time": duration_text(found.now - found.last.started_at),
            "state": found.state_text.lower(),
        }
    return f"**{first}** {found.text}"


def _live() -> dict[str, object]:
    now = timezone.now()
    rows = observer_statuses(now)
    return {
        "now": now,
        "sentence": _sentence(rows),
        "rejected": coordinator.rejected,
        "groups": [
            (kind, title, text, [row for row in rows if row.kind == kind]) for kind, title, text in GROUPS
        ],
    }


def _sentence(rows: list[ObserverStatus]) -> str:
    """Format the number of healthy and failing observers."""
    failed = [row.name for row in rows if row.state == "failed"]
    late = [row.name for row in rows if row.state in ("late", NEVER_RAN)]
    if not failed and not late:
        text = ngettext("**%(count)s healthy · 0 failing.**", "**%(count)s healthy · 0 failing.**", len(rows))
        return text % {"count": len(rows)}
    parts = []
    if failed:
        parts.append(gettext("**Failed in the last run: %(names)s.**") % {"names": ", ".join(failed)})
    if late:
        text = gettext("**Late: %(names)s.** Check that a worker is running.")
        parts.append(text % {"names": ", ".join(late)})
    return " ".join(parts)
