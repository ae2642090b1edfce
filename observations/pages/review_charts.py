"""Chart of one resource: a dot per session, lines for the current and the proposed requirement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from lcm.web.charts.dots import ChartDot as ChartDot
from lcm.web.charts.dots import DotChart, dot_chart
from lcm.web.wording import count_text
from observations.arithmetic.measures import RULES, text, with_unit
from observations.selectors.evidence import SessionDot
from observations.services.requirement_preview import ResourceImpact

# A quarter of a core or GB: closer lines could not be distinguished.
LEAST = 25
_WORDS = {"out": "excluded", "over": "above the proposal", "dot": ""}


@dataclass(frozen=True)
class ResourceChart:
    resource: str
    title: str
    source: str
    sentence: str
    note: str
    chart: DotChart


def chart_of(impact: ResourceImpact, dots: Sequence[SessionDot]) -> ResourceChart:
    """Return the chart of a resource in a preview."""
    rule = RULES[impact.resource]
    measured = [(dot, dot.values.get(impact.resource)) for dot in dots]
    shown = [_dot(impact, dot, value) for dot, value in measured if value is not None]
    chart = dot_chart(
        shown,
        _levels(impact),
        text=lambda value: text(round(value)),
        said=lambda value: with_unit(impact.resource, round(value)),
        unit=rule.unit,
        least=LEAST,
        band=(impact.required, impact.proposal.value) if impact.changes else None,
    )
    each = _each_of(sum(dot.look != "out" for dot in shown))
    said = ", ".join(line.label for line in chart.lines)
    return ResourceChart(
        resource=impact.resource,
        title=rule.label,
        source=impact.view.source,
        sentence=f"{rule.label} {impact.view.source} by {each}, in {rule.unit}: {said}",
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
    look = "out" if dot.excluded else "over" if value > impact.proposal.value else "dot"
    url = reverse("session_detail", args=[dot.session_id]) if look == "over" else ""
    return ChartDot(dot.at, value, f"Session {dot.short_id}", look, _WORDS[look], url)


def _each_of(count: int) -> str:
    if count < 2:
        return "one session" if count else "no session"
    return f"each of {count} sessions"


def _note(impact: ResourceImpact) -> str:
    """Return how many sessions are above the previewed value."""
    if not impact.risk.n:
        return "unknown"
    line = "the proposal" if impact.changes else "the current requirement"
    above = count_text(impact.risk.exceeding, "session") if impact.risk.exceeding else "none"
    return f"{above} above {line}"
