"""A pool's scheduler as its page shows it: who is asked, what it cost, what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.framework.configuration import Choice, WrongConfiguration, read_configuration
from scheduling.models import Pool, TickRun
from scheduling.pages.wording import Notice
from scheduling.selectors.queue_names import unknown_queues, unknown_queues_text


@dataclass(frozen=True)
class PluginRow:
    """One plugin of a document, with what the last cycle says of it."""

    name: str
    arguments: str
    ms: float | None = None
    error: str = ""


@dataclass(frozen=True)
class Scheduler:
    actions: Sequence[str] = ()
    plugins: Sequence[PluginRow] = ()
    tick: TickRun | None = None
    # What is wrong with the document, or with the names in it.
    problem: str = ""
    warning: str = ""
    usual: bool = field(default=True)

    @property
    def failed(self) -> bool:
        return any(plugin.error for plugin in self.plugins)


def scheduler_of(pool: Pool, ticks: Sequence[TickRun]) -> Scheduler:
    """With the figures of the newest of these ticks that asked plugins."""
    tick = _last_asked(ticks)
    try:
        configuration = read_configuration(pool.scheduler)
    except WrongConfiguration as error:
        return Scheduler(problem=str(error), tick=tick, usual=False)
    figures: Mapping[str, Any] = tick.plugins if tick else {}
    return Scheduler(
        actions=configuration.actions,
        plugins=[_row(choice, figures.get(choice.name, {})) for choice in configuration.choices],
        tick=tick,
        warning=unknown_queues_text(unknown_queues(pool.scheduler)) if pool.scheduler else "",
        usual=not pool.scheduler,
    )


def plugin_notices(ticks: Sequence[TickRun]) -> Iterator[Notice]:
    """Plugins that failed in the last cycle, with the error."""
    tick = _last_asked(ticks)
    for name, found in tick.plugins.items() if tick else ():
        if "error" in found:
            text = f"{found['error']}. Cycles go on without its answer."
            yield Notice("bad", "oct", f"The plugin {name} failed.", text)


def _last_asked(ticks: Sequence[TickRun]) -> TickRun | None:
    return next((tick for tick in ticks if tick.plugins), None)


def _row(choice: Choice, figures: Mapping[str, Any]) -> PluginRow:
    arguments = ", ".join(f"{name}: {value}" for name, value in choice.arguments.items())
    return PluginRow(choice.name, arguments, figures.get("ms"), figures.get("error", ""))
