"""The overview: items that need attention, then the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.selectors.organisation import changes
from lcm.selectors.sessions import active_by_status
from lcm.web.access import role_required
from lcm.web.attention import AttentionItem, FleetSnapshot, attention_items
from lcm.web.charts.bars import Share, share_bar
from lcm.web.overview import lazy_panels, lead_clauses, overview_panels
from lcm.web.wording import count_text

ATTENTION_ITEMS_SHOWN = 12
CHANGES_SHOWN = 6
STARTING = (SessionStatus.SCHEDULED, SessionStatus.INSTANTIATING, SessionStatus.READY)
ENDING = (SessionStatus.COLLECTING, SessionStatus.STOPPING)


@require_GET
@role_required(Role.VIEWER)
def home(request: HttpRequest) -> HttpResponseBase:
    """Return the page, or for htmx the part that reloads itself."""
    look = FleetSnapshot(timezone.now())
    found, counts = attention_items(look), active_by_status()
    context: dict[str, Any] = {
        "now": look.now,
        "sentence": _sentence(found, counts, lead_clauses(look)),
        "needs": found[:ATTENTION_ITEMS_SHOWN],
        "hidden_needs": max(len(found) - ATTENTION_ITEMS_SHOWN, 0),
        "active": sum(counts.values()),
        "sessions": share_bar(
            [Share(SessionStatus(status).label, count, status) for status, count in counts.items()]
        ),
        "wide": overview_panels(look, "wide"),
        "side": overview_panels(look, "side"),
        "later_wide": lazy_panels("wide"),
        "later_side": lazy_panels("side"),
        "changes": changes()[:CHANGES_SHOWN],
        "crumbs": [("Overview", "")],
    }
    partial = request.htmx and not request.htmx.boosted  # type: ignore[attr-defined]
    return render(request, "overview/page.html#live" if partial else "overview/page.html", context)


def _sentence(found: list[AttentionItem], counts: Mapping[str, int], more: list[str]) -> str:
    """Return “**7 items need attention, 2 are urgent.** 1,284 running · 5 starting · 37 waiting”."""
    running = counts[SessionStatus.RUNNING]
    said = [count_text(running, "session runs", "sessions run") if running else "No session runs"]
    for statuses, word in ((STARTING, "starting"), (ENDING, "ending")):
        if count := sum(counts[status] for status in statuses):
            said.append(f"{count_text(count, 'is', 'are')} {word}")
    return f"**{_needed(found)}** {', '.join([*said, *more])}."


def _needed(found: list[AttentionItem]) -> str:
    if not found:
        return "Nothing needs you."
    first = "1 thing needs you" if len(found) == 1 else f"{len(found)} things need you"
    urgent = sum(need.tone == "bad" for need in found)
    if not urgent:
        return f"{first}."
    if urgent == len(found):
        return f"{first} now."
    return f"{first}, {urgent} of them now."
