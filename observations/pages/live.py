"""Panels with the live usage of sessions and slots, which refresh every few seconds."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.selectors.sessions import sessions
from lcm.web.access import role_required
from observations.livestats.history import History
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
from observations.selectors.live import LiveView
from scheduling.selectors.slots import slots

RANGES = {"1h": _("1 hour"), "24h": _("24 hours"), selectors.WHOLE_SESSION: _("Session")}
NODES_SHOWN = 12


@require_GET
@role_required(Role.VIEWER)
def session_live(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """A session's nodes and their total, with a chart over the selected range."""
    session, now = get_object_or_404(sessions(), pk=pk), timezone.now()
    chosen = request.GET.get("range", "")
    if chosen not in RANGES:
        chosen = selectors.usual_range(session, now)
    live = selectors.session_live(session)
    history = selectors.session_history(session, range=chosen, now=now)
    rows = _rows(live, history)
    context = {
        "session": session,
        "polled": selectors.has_lab(session),
        "address": reverse("session_live", args=[pk]),
        "ranges": [(key, label, key == chosen) for key, label in RANGES.items()],
        "chosen": chosen,
        "rows": rows[:NODES_SHOWN],
        "more_rows": rows[NODES_SHOWN:],
        **_shown(live, history),
        "crumbs": [
            (gettext("Sessions"), reverse("session_list")),
            (session.short_id, reverse("session_detail", args=[pk])),
            (gettext("Live"), ""),
        ],
    }
    return _answer(request, "observations/live_session.html", context)


@require_GET
@role_required(Role.VIEWER)
def slot_live(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Total usage of a slot, and its sessions, the busiest first."""
    slot = get_object_or_404(slots(), pk=pk)
    live = selectors.slot_live(slot)
    context = {
        "slot": slot,
        "sessions": _by_session(live),
        **_shown(live, None),
        "crumbs": [
            (gettext("Capacity"), reverse("pool_list")),
            (slot.pool.name, reverse("pool_detail", args=[slot.pool_id])),
            (slot.name, reverse("slot_detail", args=[pk])),
            (gettext("Live"), ""),
        ],
    }
    return _answer(request, "observations/live_slot.html", context)


@require_GET
@role_required(Role.VIEWER)
def busiest_sessions(request: HttpRequest) -> HttpResponseBase:
    """Panel of the overview, and a page of its own."""
    found = selectors.busiest_sessions()
    rows = [(busy.session, cores_text(busy.cores)) for busy in found.sessions]
    context = {
        "found": found,
        "rows": rows,
        "what_to_set": NOT_CONFIGURED,
        "crumbs": [(gettext("Sessions"), reverse("session_list")), (gettext("Busiest"), "")],
    }
    return _answer(request, "observations/busiest.html", context)


def _answer(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponseBase:
    name = f"{template}#panel" if request.htmx else template  # type: ignore[attr-defined]
    return render(request, name, context)


def _shown(live: LiveView, history: History | None) -> dict[str, Any]:
    """Return the context that the panels of sessions and slots share."""
    now = timezone.now()
    lines = lines_together(history) if history else {}
    return {
        "live": live,
        "state": live.stats.state,
        "notice": notice_of(live.stats, now),
        "readings": readings(live.totals, lines, history),
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
    by_session: dict[UUID, list[Any]] = {}
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


def _cores(values: Any) -> float:
    found = values.get("cpu_util")
    return (found.current or 0.0) if found else 0.0
