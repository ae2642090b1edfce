"""Charts of a review by resource: a dot per session, lines for the current and the proposed requirement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from lcm.models import LabletDefinition
from lcm.models.resources import RESOURCE_LABELS, RESOURCE_UNITS
from lcm.web.access import htmx_of
from lcm.web.charts.dots import ChartDot as ChartDot
from lcm.web.charts.dots import DotChart, dot_chart
from lcm.web.time_range import ALL, KeptData, range_of
from lcm.web.wording import list_text
from observations.arithmetic.measures import USED, text
from observations.models import SessionObservation
from observations.models.resource_labels import SOURCE_LABELS, resource_amount
from observations.selectors.evidence import SessionDot, dots_of
from observations.services.requirement_preview import RequirementPreview, ResourceImpact

DOTS, LISTED = 200, 20
# A quarter of a core or GB: closer lines could not be distinguished.
LEAST = 25
_DOT_NOTES = {"out": _("excluded"), "over": _("above the proposal"), "dot": ""}
_LEVEL_LABELS = {
    "current": _("current %(amount)s"),
    "proposal": _("proposal %(amount)s"),
    "max": _("max %(amount)s"),
    "p95": _("p95 %(amount)s"),
}


@dataclass(frozen=True)
class ResourceChart:
    resource: str
    title: str
    source: str
    sentence: str
    note: str
    chart: DotChart


def chart_context(
    request: HttpRequest,
    definition: LabletDefinition,
    preview: RequirementPreview,
    without: Sequence[SessionObservation],
    *,
    now: datetime,
) -> dict[str, Any]:
    """Return the charts of a preview with their time range, which is in the address of the page."""
    evidence = preview.evidence
    kept = KeptData(
        definition.created_at,
        now,
        gettext("At most %(count)s sessions, the newest ones.") % {"count": DOTS},
        whole=gettext("All"),
    )
    shown, around = range_of(request, kept, default=ALL), htmx_of(request).current_url_abs_path
    span = None if shown.key == ALL else (shown.start, shown.end)
    is_observed = bool(evidence.digest.n or without)
    dots = dots_of(evidence, DOTS, without, span=span) if is_observed else []
    page = reverse("definition_review", args=[definition.pk])
    return {
        "is_observed": is_observed,
        "is_other_range": "range" in request.GET,
        "dots": dots[: -LISTED - 1 : -1],
        "charts": [chart_of(impact, dots) for impact in preview.impacts] if dots else [],
        # The other parameters of a part are the choices of the form, which the part does not reload.
        "range": replace(shown, others=()) if around else shown,
        "address": around.partition("?")[0] if around else page,
        "panel": reverse("definition_preview", args=[definition.pk]),
        "panel_id": "review-impact",
    }


def chart_of(impact: ResourceImpact, dots: Sequence[SessionDot]) -> ResourceChart:
    """Return the chart of a resource in a preview."""
    label, unit = str(RESOURCE_LABELS[impact.resource]), str(RESOURCE_UNITS[impact.resource])
    measured = [(dot, dot.values.get(impact.resource)) for dot in dots]
    shown = [_dot(impact, dot, value) for dot, value in measured if value is not None]
    chart = dot_chart(
        shown,
        _levels(impact),
        text=lambda value: text(round(value)),
        with_unit=lambda value: resource_amount(impact.resource, round(value)),
        unit=unit,
        label=lambda kind, value: _LEVEL_LABELS[kind] % {"amount": text(round(value))},
        least=LEAST,
        band=(impact.required, impact.proposal.value) if impact.changes else None,
    )
    sessions = sum(dot.kind != "out" for dot in shown)
    sentence = _chart_title(impact.view.source, sessions) % {
        "count": f"{sessions:,}",
        "resource": label,
        "unit": unit,
        "levels": list_text([line.label for line in chart.lines]),
    }
    return ResourceChart(
        resource=impact.resource,
        title=label,
        source=str(SOURCE_LABELS[impact.view.source]),
        sentence=sentence,
        note=_note(impact),
        chart=chart,
    )


def _levels(impact: ResourceImpact) -> dict[str, float]:
    levels: dict[str, float] = {"current": impact.required}
    if impact.changes:
        levels["proposal"] = impact.proposal.value
    if impact.view.summary is not None:
        levels |= {"max": impact.view.summary.max, "p95": impact.view.summary.p95}
    return levels


def _dot(impact: ResourceImpact, dot: SessionDot, value: int) -> ChartDot:
    kind = "out" if dot.excluded else "over" if value > impact.proposal.value else "dot"
    url = reverse("session_detail", args=[dot.session_id]) if kind == "over" else ""
    name = gettext("Session %(name)s") % {"name": dot.session_id.hex[:6]}
    return ChartDot(dot.at, value, name, kind, str(_DOT_NOTES[kind]), url)


def _chart_title(source: str, sessions: int) -> str:
    """Return the title for a number of sessions, with placeholders for the values."""
    if not sessions:
        return gettext("%(resource)s, in %(unit)s, not measured by any session: %(levels)s")
    if source == USED:
        return ngettext(
            "%(resource)s used by one session, in %(unit)s: %(levels)s",
            "%(resource)s used by each of %(count)s sessions, in %(unit)s: %(levels)s",
            sessions,
        )
    return ngettext(
        "%(resource)s allocated to one session, in %(unit)s: %(levels)s",
        "%(resource)s allocated to each of %(count)s sessions, in %(unit)s: %(levels)s",
        sessions,
    )


def _note(impact: ResourceImpact) -> str:
    """Return how many sessions are above the previewed value."""
    if not impact.risk.n:
        return gettext("unknown")
    count = impact.risk.exceeding
    if impact.changes:
        none = gettext("none above the proposal")
        some = ngettext(
            "%(count)s session above the proposal", "%(count)s sessions above the proposal", count
        )
    else:
        none = gettext("none above the current requirement")
        some = ngettext(
            "%(count)s session above the current requirement",
            "%(count)s sessions above the current requirement",
            count,
        )
    return some % {"count": f"{count:,}"} if count else none
