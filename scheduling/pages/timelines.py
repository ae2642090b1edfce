"""Timelines of slots, pools and sessions: what happened, with a jump to a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.errors import InvalidInput
from lcm.domain.roles import Role
from lcm.models import ChangeLog
from lcm.selectors.sessions import sessions
from lcm.web.access import role_required
from lcm.web.crumbs import session_crumbs
from lcm.web.list_columns import Column
from lcm.web.list_page import ListPage, list_page
from lcm.web.object_links import link_objects, object_name
from lcm.web.period_filters import PERIODS
from lcm.web.time_window import DAY, TimeWindow, check_window, read_window
from lcm.web.wording import Plural
from scheduling.filters import TimelineFilter
from scheduling.models import Pool
from scheduling.pages.slots import slot_crumbs
from scheduling.selectors import timelines
from scheduling.selectors.slots import slots

# Parameters of the address that select the time.
TIME_NAMES = ("when", "since", "until")
LONGEST = 31 * DAY

Read = Callable[..., timelines.Timeline]


@dataclass(frozen=True)
class TimeJump:
    """The controls above a timeline: presets, a text field, and the windows before and after."""

    window: TimeWindow
    text: str
    problem: str
    # Query string, label and whether it is chosen.
    presets: Sequence[tuple[str, str, bool]]
    earlier: str
    later: str
    # Parameters that the form keeps.
    others: Sequence[tuple[str, str]]
    zone: str


@dataclass(frozen=True)
class TimelinePage(ListPage):
    """A list with a time jump."""

    jump: TimeJump | None = None


def _enrich(rows: Sequence[ChangeLog]) -> None:
    """Set the page of each object, and the query of the timeline in which the entry is the newest one."""
    link_objects(rows)
    for row in rows:
        vars(row)["address"] = urlencode({"until": _iso(row.at + timedelta(seconds=1))})


TIMELINE = TimelinePage(
    title=_("Timeline"),
    export_name="timeline",
    counted=Plural(ngettext_lazy("%(count)s entry", "%(count)s entries")),
    search_label=_("Search the timeline"),
    no_match_title=_("No entry matches"),
    empty_title=_("No entries in this time"),
    rows=ChangeLog.objects.none,
    filterset=TimelineFilter,
    columns=[
        Column(
            _("Time"),
            lambda row: row.at,
            sort="-at",
            css="nowrap",
            cell="capacity/timeline_cells.html#time",
            phone="end",
        ),
        Column(_("Object"), object_name, css="fit-content", cell="changes/cells.html#object", phone="below"),
        Column(_("Entry"), lambda row: row.message, css="card-title", cell="changes/cells.html#change"),
        Column(_("Actor"), lambda row: row.actor, css="fit-content", cell="changes/cells.html#actor"),
        Column(_("Reason"), lambda row: row.reason, css="wide"),
    ],
    export_columns=[
        Column(_("ID"), lambda row: row.pk),
        Column(_("Time"), lambda row: row.at, sort="-at"),
        Column(_("Event"), lambda row: row.event),
        Column(_("Entry"), lambda row: row.message),
        Column(_("Object"), object_name),
        Column(_("Object ID"), lambda row: row.object_id),
        Column(_("Actor"), lambda row: row.actor),
        Column(_("Reason"), lambda row: row.reason),
    ],
    enrich_rows=_enrich,
    default_sort="-at",
    search_hint=_("Entry, object, actor, reason"),
    icon="clock",
    empty_hint=_("Choose a longer time, or look earlier or later."),
    template="capacity/timeline.html",
)


@require_GET
@role_required(Role.VIEWER)
def slot_timeline(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    slot = get_object_or_404(slots(), pk=pk)

    def read(**window: datetime) -> timelines.Timeline:
        return timelines.slot_timeline(slot, **window)

    return _timeline(request, slot.name, read, [*slot_crumbs(slot), (gettext("Timeline"), "")])


@require_GET
@role_required(Role.VIEWER)
def pool_timeline(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    pool = get_object_or_404(Pool, pk=pk)
    crumbs = [
        (gettext("Capacity"), reverse("pool_list")),
        (pool.name, reverse("pool_detail", args=[pool.pk])),
        (gettext("Timeline"), ""),
    ]

    def read(**window: datetime) -> timelines.Timeline:
        return timelines.pool_timeline(pool, **window)

    return _timeline(request, pool.name, read, crumbs)


@require_GET
@role_required(Role.VIEWER)
def session_timeline(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Show the timeline of a session, by default from its request on."""
    session = get_object_or_404(sessions(), pk=pk)

    def read(**window: datetime) -> timelines.Timeline:
        return timelines.session_timeline(session, **window)

    crumbs = session_crumbs(session, gettext("Timeline"))
    return _timeline(request, str(session), read, crumbs, since=session.created_at)


def _timeline(
    request: HttpRequest,
    name: str,
    read: Read,
    crumbs: Sequence[tuple[Any, Any]],
    *,
    since: datetime | None = None,
) -> HttpResponseBase:
    now = timezone.now()
    default = TimeWindow(since or now - DAY, now)
    window, problem = _window(request.GET, default, now)
    if since is None and window.end - window.start > LONGEST:
        window = replace(window, start=window.end - LONGEST)
        problem = gettext("A timeline shows %(days)s days at most.") % {"days": LONGEST.days}
    timeline = read(start=window.start, end=window.end)
    if timeline.is_cut:
        text = gettext("Only the newest %(count)s sessions of this time are shown. Choose a shorter time.")
        problem = text % {"count": f"{timelines.MOST_RESERVATIONS:,}"}
    rows = timeline.rows
    page = replace(
        TIMELINE,
        title=gettext("Timeline of %(name)s") % {"name": name},
        file_name=f"timeline-{name.replace(' ', '-')}",
        rows=lambda: rows,
        jump=_jump(request.GET, window, problem, default_key="" if since else "24h"),
    )
    return list_page(request, page, crumbs=crumbs)


def _window(query: QueryDict, default: TimeWindow, now: datetime) -> tuple[TimeWindow, str]:
    """Return the window that an address names, or the default with the problem."""
    form = TimelineFilter(query, queryset=ChangeLog.objects.none()).form
    found = form.cleaned_data if form.is_valid() else {}
    since: datetime | None = found.get("since")
    until: datetime | None = found.get("until")
    try:
        if since is not None or until is not None:
            end = until or now
            check_window(TimeWindow(end, end))
            return check_window(TimeWindow(since or end - DAY, end)), ""
        when = query.get("when", "").strip()
        return (read_window(when, now=now) if when else default), ""
    except InvalidInput as error:
        return default, error.message


def _jump(query: QueryDict, window: TimeWindow, problem: str, *, default_key: str) -> TimeJump:
    others = [
        (name, value)
        for name, values in query.lists()
        if name not in (*TIME_NAMES, "cursor", "format")
        for value in values
    ]
    when = query.get("when", "").strip()
    has_times = bool(query.get("since") or query.get("until"))
    chosen = "" if has_times else when or default_key
    return TimeJump(
        window=window,
        text="" if when in PERIODS or has_times else when,
        problem=problem,
        presets=[
            (urlencode([*others, ("when", key)]), str(label), key == chosen) for key, label in PERIODS.items()
        ],
        earlier=_query(others, window.earlier),
        later=_query(others, window.later),
        others=others,
        zone=timezone.get_current_timezone_name(),
    )


def _query(others: Sequence[tuple[str, str]], window: TimeWindow) -> str:
    return urlencode([*others, ("since", _iso(window.start)), ("until", _iso(window.end))])


def _iso(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
