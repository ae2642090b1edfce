"""Ticks on pages: their results and the duration of their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from lcm.templatetags.lcm import humanize_name
from lcm.web.wording import NBSP
from scheduling.capacity.tick import STEPS
from scheduling.models import TickRun
from scheduling.pages.texts import counts_text
from scheduling.placement.framework.configuration import InvalidConfiguration, read_configuration

WIDTH = 1000
# Steps shorter than this, in ms, are neither drawn nor listed in a row.
SHORT = 0.05
# Steps that share a colour, and their name in the legend.
LEGEND = ((1, _("Place")), (2, _("Launch")), (3, _("Interruptions")), (5, _("Other")))
_KINDS = {"place": 1, "launch": 2, "keep_minimum": 2, "interrupt": 3}
_REST = 5
STEP_NAMES = {
    "expire": _("expire"),
    "interrupt": _("interrupt"),
    "place": _("place"),
    "launch": _("launch"),
    "keep_minimum": _("keep minimum"),
    "scale_down": _("scale down"),
}


@dataclass(frozen=True)
class TickStep:
    """One step of a tick and its duration."""

    name: str
    ms: float
    kind: int = _REST

    @property
    def text(self) -> str:
        return f"{self.name} {self.ms:,.1f}".replace(" ", NBSP)


@dataclass(frozen=True)
class StepSegment:
    step: TickStep
    x: float
    width: float


@dataclass(frozen=True)
class StepBar:
    """The steps of a tick as a stacked bar, scaled to the slowest tick of the page."""

    segments: Sequence[StepSegment]
    width: int = WIDTH

    @property
    def text(self) -> str:
        """Format the durations: “expire 2.0 · place 126.2 ms”."""
        return f"{' · '.join(each.step.text for each in self.segments)}{NBSP}ms" if self.segments else ""


@dataclass(frozen=True)
class PluginTime:
    name: str
    ms: float | None
    error: str = ""


@dataclass(frozen=True)
class PluginTimes:
    """Duration and failures of plugins, in call order."""

    rows: Sequence[PluginTime]
    # Names of plugins too quick to measure.
    quick: Sequence[str]
    # Remaining time of the placement step: reading the snapshot and saving decisions.
    rest: float


def steps_of(tick: TickRun) -> list[TickStep]:
    """Return the steps in order; JSON in the database does not keep it."""
    return _steps_of(tick, {name: str(text) for name, text in STEP_NAMES.items()})


def step_name(name: str) -> str:
    """Return the name of a step for pages; of an unknown step its identifier as words."""
    return str(STEP_NAMES.get(name) or humanize_name(name))


def _steps_of(tick: TickRun, texts: Mapping[str, str]) -> list[TickStep]:
    names = [name for name, _ in STEPS if name in tick.step_ms]
    names += [name for name in tick.step_ms if name not in names]
    return [
        TickStep(texts.get(name) or humanize_name(name), tick.step_ms[name], _KINDS.get(name, _REST))
        for name in names
    ]


def annotate_ticks(rows: Sequence[Any]) -> None:
    """Add results and step bars to the ticks of a page."""
    texts = {name: str(text) for name, text in STEP_NAMES.items()}
    steps = [_steps_of(row, texts) for row in rows]
    slowest = max((sum(step.ms for step in tick_steps) for tick_steps in steps), default=0)
    for row, each in zip(rows, steps, strict=True):
        row.result = counts_text(row.counts)
        row.steps = bar_of(each, of=slowest)


def bar_of(steps: Sequence[TickStep], *, of: float) -> StepBar:
    segments, x = [], 0.0
    for step in steps:
        if step.ms < SHORT:
            continue
        width = step.ms / of * WIDTH
        segments.append(StepSegment(step, round(x, 1), round(width, 1)))
        x += width
    return StepBar(segments)


def plugins_of(tick: TickRun) -> PluginTimes:
    figures: Mapping[str, Any] = tick.plugins
    order = _plugins_in_order(tick.pool.scheduler)
    names = [*(name for name in order if name in figures), *(name for name in figures if name not in order)]
    rows = [PluginTime(name, figures[name].get("ms"), figures[name].get("error", "")) for name in names]
    spent = sum(row.ms or 0 for row in rows)
    quick = [row.name for row in rows if row.ms == 0 and not row.error]
    shown = [row for row in rows if row.name not in quick]
    return PluginTimes(shown, quick, max(tick.step_ms.get("place", 0) - spent, 0))


def _plugins_in_order(scheduler: str) -> list[str]:
    try:
        return [plugin.name for plugin in read_configuration(scheduler).plugins_for_cycle()]
    except InvalidConfiguration:
        return []
