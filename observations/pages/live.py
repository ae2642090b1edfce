"""Panels with the live usage of sessions and slots, which refresh every few seconds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.selectors.sessions import sessions
from lcm.web.access import htmx_of, role_required
from lcm.web.crumbs import session_crumbs
from lcm.web.form_page import render_page
from lcm.web.time_range import KeptData, TimeRange, range_of
from lcm.web.wording import clock_text
from observations.livestats.history import History, kernel_history
from observations.livestats.kernel_stats import MetricValue
from observations.livestats.totals import total
from observations.pages.live_texts import (
    NOT_CONFIGURED,
    STATE_WORDS,
    bytes_text,
    cores_text,
    lines_together,
    notice_of,
    readings,
    traffic_text,
)
from observations.selectors import live as selectors
from observations.selectors.live import LiveNode, LiveView
from scheduling.pages.slots import slot_crumbs
from scheduling.selectors.slots import slots

NODES_SHOWN = 12
HOUR = timedelta(hours=1)


@require_GET
@role_required(Role.VIEWER)
def session_live(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """A session's nodes and their total, with a chart over the selected range."""
    session, now = get_object_or_404(sessions(), pk=pk), timezone.now()
    live = selectors.session_live(session)
    kernels = [node.kernel for node in live.nodes]
    start, end = selectors.span_of(kernels, now, since=session.starts_at, is_final=session.is_final)
    text = gettext("The session has figures since %(time)s.") % {"time": clock_text(start)}
    shown = range_of(request, KeptData(start, end, text, whole=gettext("Session")), default="1h")
    history = kernel_history([each.pk for each in kernels], start=shown.start, end=shown.end)
    rows = _rows(live, history)
    context = {
        "session": session,
        "polled": selectors.has_lab(session),
        "rows": rows[:NODES_SHOWN],
        "more_rows": rows[NODES_SHOWN:],
        **_shown(live, history),
        **_range_context(request, shown, reverse("session_live", args=[pk])),
        "crumbs": session_crumbs(session, gettext("Live")),
    }
    return render_page(request, "observations/live_session.html", context, part="panel")


@require_GET
@role_required(Role.VIEWER)
def slot_live(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Total usage of a slot, and its sessions, the busiest first."""
    slot, now = get_object_or_404(slots(), pk=pk), timezone.now()
    live = selectors.slot_live(slot)
    kernels = [node.kernel for node in live.nodes]
    start, end = selectors.span_of(kernels, now, since=now - HOUR)
    text = gettext("Figures of the sessions that are on the slot now, since %(time)s.") % {
        "time": clock_text(start)
    }
    shown = range_of(request, KeptData(start, end, text, whole=gettext("Sessions")), default="1h")
    history = kernel_history([each.pk for each in kernels], start=shown.start, end=shown.end)
    context = {
        "slot": slot,
        "sessions": _by_session(live),
        **_shown(live, history if kernels else None),
        **_range_context(request, shown, reverse("slot_live", args=[pk])),
        "crumbs": [*slot_crumbs(slot), (gettext("Live"), "")],
    }
    return render_page(request, "observations/live_slot.html", context, part="panel")


@require_GET
@role_required(Role.VIEWER)
def busiest_sessions(request: HttpRequest) -> HttpResponseBase:
    """Panel of the overview, and a page of its own."""
    found, sessions = selectors.busiest_sessions()
    rows = [(session, cores_text(cores)) for session, cores in sessions]
    context = {
        "found": found,
        "rows": rows,
        "what_to_set": NOT_CONFIGURED,
        "crumbs": [(gettext("Sessions"), reverse("session_list")), (gettext("Busiest"), "")],
    }
    return render_page(request, "observations/busiest.html", context, part="panel")


def _range_context(request: HttpRequest, shown: TimeRange, panel: str) -> dict[str, Any]:
    """Return the range and where its links lead: to the page around the panel, or the panel as a page."""
    around = htmx_of(request).current_url_abs_path
    return {
        "range": shown,
        "address": around.partition("?")[0] if around else panel,
        "panel": panel,
        "panel_id": "panel-live",
    }


def _shown(live: LiveView, history: History | None) -> dict[str, Any]:
    """Return the context that the panels of sessions and slots share."""
    now = timezone.now()
    lines = lines_together(history) if history else {}
    return {
        "live": live,
        "state": live.stats.state,
        "notice": notice_of(live.stats, now),
        "readings": readings(live.totals, lines, history, is_total=True),
        "traffic": traffic_text(live.totals, settings.CONFIG["LIVE_STATS_WINDOW"]),
        "observed_at": live.stats.observed_at,
    }


def _rows(live: LiveView, history: History) -> list[dict[str, Any]]:
    """Return the nodes with figures of their own, the busiest first."""
    order = sorted(live.nodes, key=lambda node: (-_cores(node.stats.metrics), node.kernel.node_label))
    return [
        {
            "kernel": node.kernel,
            "state": node.stats.state,
            "state_word": STATE_WORDS[node.stats.state],
            "readings": readings(node.stats.metrics, history.kernels.get(str(node.kernel.pk), {}), history),
        }
        for node in order
        if node.stats.metrics
    ]


def _by_session(live: LiveView) -> list[dict[str, Any]]:
    by_session: dict[UUID, list[LiveNode]] = {}
    for node in live.nodes:
        by_session.setdefault(node.kernel.session_id, []).append(node)
    rows = []
    for nodes in by_session.values():
        values = total(node.stats.metrics for node in nodes)
        memory = values.get("mem")
        rows.append(
            {
                "session": nodes[0].kernel.session,
                "nodes": len(nodes),
                "cores": cores_text(_cores(values)) if "cpu_util" in values else "",
                "memory": bytes_text(memory.current) if memory and memory.current is not None else "",
                "busy": _cores(values),
            }
        )
    return sorted(rows, key=lambda row: -row["busy"])


def _cores(values: Mapping[str, MetricValue]) -> float:
    found = values.get("cpu_util")
    return (found.current or 0.0) if found else 0.0
