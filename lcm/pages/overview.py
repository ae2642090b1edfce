"""The overview: items that need attention, then the fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django.views.decorators.http import require_GET

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role, role_of
from lcm.models.sessions import STATUS_LABELS
from lcm.selectors.organisation import changes
from lcm.selectors.sessions import active_by_status
from lcm.web.access import htmx_of, role_required
from lcm.web.attention import AttentionItem, FleetSnapshot, attention_items
from lcm.web.charts.bars import Share, share_bar
from lcm.web.first_steps import first_steps
from lcm.web.overview import lazy_panels, lead_clauses, overview_panels
from lcm.web.wording import Plural

ATTENTION_ITEMS_SHOWN = 12
CHANGES_SHOWN = 6
STARTING = (SessionStatus.SCHEDULED, SessionStatus.INSTANTIATING, SessionStatus.READY)
ENDING = (SessionStatus.COLLECTING, SessionStatus.STOPPING)

_ITEMS = Plural(ngettext_lazy("%(count)s item needs attention.", "%(count)s items need attention."))
_ALL_URGENT = Plural(
    ngettext_lazy("%(count)s item needs attention now.", "%(count)s items need attention now.")
)
_SOME_URGENT = Plural(
    ngettext_lazy(
        "%(items)s items need attention, %(count)s is urgent.",
        "%(items)s items need attention, %(count)s are urgent.",
    )
)


@require_GET
@role_required(Role.VIEWER)
def home(request: HttpRequest) -> HttpResponseBase:
    """Return the page, or for htmx the part that reloads itself."""
    snapshot, role = FleetSnapshot(timezone.now()), role_of(request.user)
    found, counts = attention_items(snapshot), active_by_status()
    context: dict[str, Any] = {
        "now": snapshot.now,
        "sentence": _sentence(found, counts, lead_clauses(snapshot)),
        "items": found[:ATTENTION_ITEMS_SHOWN],
        "hidden_items": max(len(found) - ATTENTION_ITEMS_SHOWN, 0),
        "first_steps": first_steps() if role_of(request.user) >= Role.ADMIN else [],
        "active": sum(counts.values()),
        "sessions": share_bar(
            [
                Share(str(STATUS_LABELS[SessionStatus(status)]), count, status)
                for status, count in counts.items()
            ]
        ),
        "wide": overview_panels(snapshot, "wide"),
        "side": overview_panels(snapshot, "side"),
        "lazy_wide": lazy_panels("wide", role),
        "lazy_side": lazy_panels("side", role),
        "changes": changes()[:CHANGES_SHOWN],
        "crumbs": [(_("Overview"), "")],
    }
    htmx = htmx_of(request)
    partial = htmx and not htmx.boosted
    return render(request, "overview/page.html#live" if partial else "overview/page.html", context)


def _sentence(found: list[AttentionItem], counts: Mapping[str, int], more: list[str]) -> str:
    """Return “**7 items need attention, 2 are urgent.** 1,284 running · 5 starting · 37 waiting”."""
    running = counts[SessionStatus.RUNNING]
    figures = [_("%(count)s running") % {"count": f"{running:,}"}]
    for statuses, text in ((STARTING, _("%(count)s starting")), (ENDING, _("%(count)s ending"))):
        if count := sum(counts[status] for status in statuses):
            figures.append(text % {"count": f"{count:,}"})
    return f"**{_attention_text(found)}** {' · '.join([*figures, *more])}"


def _attention_text(found: list[AttentionItem]) -> str:
    if not found:
        return _("No items need attention.")
    urgent = sum(item.tone == "bad" for item in found)
    if urgent == len(found):
        return _ALL_URGENT.text(urgent)
    return _SOME_URGENT.text(urgent, items=len(found)) if urgent else _ITEMS.text(len(found))
