"""A chart of one resource: a dot for each session over time, lines for what is asked for and proposed.

Only the places are computed here; the mark-up is a template.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.utils import timezone
from django.utils.safestring import SafeString, mark_safe

from observations.arithmetic.measures import RULES, text, with_unit
from observations.selectors.evidence import Dot
from observations.services.previewing import ResourceImpact

WIDTH, HEIGHT = 380, 216
LEFT, RIGHT, TOP, BOTTOM = 34, 290, 10, 194
LABEL_GAP = 13
STEPS = (5, 10, 20, 25, 50, 100, 200, 250, 500, 1000, 2000, 2500, 5000, 10_000, 20_000, 50_000)
TICKS = 6


@dataclass(frozen=True)
class Mark:
    """A session; `look` is how it is drawn."""

    x: float
    y: float
    look: str
    title: str
    session_id: UUID


@dataclass(frozen=True)
class Line:
    """A value across the chart, with its words at the end."""

    kind: str
    y: float
    label: str
    label_y: float


@dataclass(frozen=True)
class Chart:
    resource: str
    title: str
    unit: str
    basis: str
    sentence: str
    note: str
    grid: list[tuple[float, str]]
    times: list[tuple[float, str, str]]
    lines: list[Line]
    marks: list[Mark]
    dots: SafeString
    freed: tuple[float, float] | None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    times_y: int = field(default=HEIGHT - 5)


def chart_of(impact: ResourceImpact, dots: Sequence[Dot]) -> Chart:
    """The chart of a resource as a preview sees it."""
    view, rule = impact.view, RULES[impact.resource]
    shown = [(dot, value) for dot in dots if (value := dot.values.get(impact.resource)) is not None]
    levels = {"current": impact.required, "proposal": impact.proposal.value}
    if view.summary is not None:
        levels |= {"max": view.summary.max, "p95": view.summary.p95}
    scale = _Scale.over([*levels.values(), *(value for _, value in shown)])
    lines = _lines(levels, scale, changes=impact.changes)
    said = ", ".join(line.label for line in lines)
    counted = sum(not dot.excluded for dot, _ in shown)
    marks = _marks(impact, shown, scale)
    current, proposed = scale.place(impact.required), scale.place(impact.proposal.value)
    return Chart(
        resource=impact.resource,
        title=rule.label,
        unit=rule.unit,
        basis=view.basis,
        sentence=f"{rule.label} {view.basis} by each of {counted} sessions, in {rule.unit}: {said}",
        note=_note(impact),
        grid=[(scale.place(level), text(level)) for level in scale.ticks],
        times=_times([dot.at for dot, _ in shown]),
        lines=lines,
        marks=[mark for mark in marks if mark.look != "dot"],
        dots=_dots([mark for mark in marks if mark.look == "dot"]),
        freed=(min(current, proposed), abs(current - proposed)) if impact.changes else None,
    )


@dataclass(frozen=True)
class _Scale:
    low: int
    high: int
    ticks: list[int]

    @classmethod
    def over(cls, values: Sequence[int]) -> _Scale:
        least, most = min(values, default=0), max(values, default=100)
        room = max((most - least) // 10, 25)
        wanted = max(most + room - max(least - room, 0), 1) / TICKS
        step = next((each for each in STEPS if each >= wanted), math.ceil(wanted / 50_000) * 50_000)
        low = max(least - room, 0) // step * step
        high = -(-(most + room) // step) * step
        return cls(low, high, list(range(low, high + 1, step)))

    def place(self, value: int) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(BOTTOM - share * (BOTTOM - TOP), 1)


def _lines(levels: dict[str, int], scale: _Scale, *, changes: bool) -> list[Line]:
    """Labels that would stand in each other are moved apart; the order stays."""
    kinds = [
        kind
        for kind in ("current", "proposal", "max", "p95")
        if kind in levels and (changes or kind != "proposal")
    ]
    order = sorted(kinds, key=lambda kind: (-levels[kind], kinds.index(kind)))
    places: list[float] = []
    for kind in order:
        wanted = scale.place(levels[kind]) + 4
        places.append(max(wanted, places[-1] + LABEL_GAP) if places else wanted)
    overflow = max(places[-1] - BOTTOM - 4, 0) if places else 0
    return [
        Line(kind, scale.place(levels[kind]), f"{kind} {text(levels[kind])}", round(place - overflow, 1))
        for kind, place in zip(order, places, strict=True)
    ]


def _times(moments: Sequence[datetime]) -> list[tuple[float, str, str]]:
    """First, middle and last moment as dates, or as times of one day."""
    if not moments:
        return []
    first, last = timezone.localtime(min(moments)), timezone.localtime(max(moments))
    same_day = first.date() == last.date()
    pattern = "%H:%M" if same_day else "%d %b"
    if first == last:
        return [((LEFT + RIGHT) / 2, "mid", first.strftime(pattern))]
    middle = first + (last - first) / 2
    return [
        (LEFT, "", first.strftime(pattern)),
        ((LEFT + RIGHT) / 2, "mid", middle.strftime(pattern)),
        (RIGHT, "end", last.strftime(pattern)),
    ]


def _marks(impact: ResourceImpact, shown: Sequence[tuple[Dot, int]], scale: _Scale) -> list[Mark]:
    if not shown:
        return []
    first, last = min(dot.at for dot, _ in shown), max(dot.at for dot, _ in shown)
    length = (last - first).total_seconds()
    marks = []
    for dot, value in shown:
        share = (dot.at - first).total_seconds() / length if length else 0.5
        look = "out" if dot.excluded else "over" if value > impact.proposal.value else "dot"
        words = {"out": ", excluded", "over": ", above the proposal", "dot": ""}[look]
        title = f"Session {dot.short_id}: {with_unit(impact.resource, value)}{words}"
        x = round(LEFT + 5 + share * (RIGHT - LEFT - 10), 1)
        marks.append(Mark(x, scale.place(value), look, title, dot.session_id))
    return marks


def _dots(marks: Sequence[Mark]) -> SafeString:
    """The many plain ones as text at once: numbers and ids of our own, so there is nothing to escape."""
    return mark_safe(  # noqa: S308
        "".join(
            f'<circle class="dot" cx="{mark.x}" cy="{mark.y}" r="2.75"><title>{mark.title}</title></circle>'
            for mark in marks
        )
    )


def _note(impact: ResourceImpact) -> str:
    if not impact.risk.n:
        return "not known yet"
    if not impact.risk.exceeding:
        return "none above"
    return f"{impact.risk.exceeding} {'session' if impact.risk.exceeding == 1 else 'sessions'} above"
