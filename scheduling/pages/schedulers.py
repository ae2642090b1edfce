"""A pool's scheduler on its page: plugins, their durations and failures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from django.utils.translation import gettext as _

from scheduling.models import Pool, TickRun
from scheduling.options import field_schemas
from scheduling.pages.texts import PoolNotice
from scheduling.placement.framework.configuration import (
    InvalidConfiguration,
    PluginChoice,
    read_configuration,
)
from scheduling.placement.framework.plugin import Plugin, plugins
from scheduling.selectors.unknown_queues import unknown_queues, unknown_queues_text


@dataclass(frozen=True)
class PluginRow:
    """One plugin of a document, with its figures from the last cycle."""

    name: str
    arguments: str
    ms: float | None = None
    error: str = ""


@dataclass(frozen=True)
class SchedulerSummary:
    actions: Sequence[str] = ()
    plugins: Sequence[PluginRow] = ()
    tick: TickRun | None = None
    # Problems of the document or of the names in it.
    problem: str = ""
    warning: str = ""
    is_default: bool = field(default=True)

    @property
    def failed(self) -> bool:
        return any(plugin.error for plugin in self.plugins)


def scheduler_of(pool: Pool, ticks: Sequence[TickRun]) -> SchedulerSummary:
    """Return the scheduler with the figures of the newest of these ticks that called plugins."""
    tick = _last_with_plugins(ticks)
    try:
        configuration = read_configuration(pool.scheduler)
    except InvalidConfiguration as error:
        return SchedulerSummary(problem=str(error), tick=tick, is_default=False)
    figures: Mapping[str, Any] = tick.plugins if tick else {}
    return SchedulerSummary(
        actions=configuration.actions,
        plugins=[_row(choice, figures.get(choice.name, {})) for choice in configuration.choices],
        tick=tick,
        warning=unknown_queues_text(unknown_queues(pool.scheduler)) if pool.scheduler else "",
        is_default=not pool.scheduler,
    )


@dataclass(frozen=True)
class Argument:
    """An argument of a plugin: its type, default and limits as texts, and its meaning."""

    name: str
    type: str
    default: str
    limits: str
    meaning: str


@dataclass(frozen=True)
class KnownPlugin:
    """A plugin that a document may name: its purpose and its arguments."""

    name: str
    text: str
    arguments: Sequence[Argument]


def known_plugins() -> list[KnownPlugin]:
    """Return all known plugins, by name."""
    return [
        KnownPlugin(name, _plugin_text(kind), _arguments(kind)) for name, kind in sorted(plugins().items())
    ]


def _arguments(kind: type[Plugin]) -> list[Argument]:
    schemas = field_schemas(kind)
    return [
        Argument(
            each.name,
            _type_text(schemas[each.name]),
            _default(each),
            _limits_text(schemas[each.name]),
            schemas[each.name].get("description", ""),
        )
        for each in fields(kind)
    ]


def _type_text(schema: Mapping[str, Any]) -> str:
    names = {
        "number": _("number"),
        "integer": _("whole number"),
        "boolean": _("true or false"),
        "string": _("text"),
        "array": _("list"),
        "object": _("object"),
    }
    return names.get(schema.get("type", ""), _("any value"))


def _limits_text(schema: Mapping[str, Any]) -> str:
    """Return the limits of an argument; empty if it has none."""
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "minimum" in schema and "maximum" in schema:
        limits = {"low": f"{schema['minimum']:g}", "high": f"{schema['maximum']:g}"}
        return _("%(low)s to %(high)s") % limits
    if "maxLength" in schema:
        return _("at most %(count)s characters") % {"count": schema["maxLength"]}
    return ""


def plugin_notices(ticks: Sequence[TickRun]) -> Iterator[PoolNotice]:
    """Return a notice for plugins that failed in the last cycle, with the error."""
    tick = _last_with_plugins(ticks)
    for name, found in tick.plugins.items() if tick else ():
        if "error" in found:
            text = _("%(error)s. Cycles continue without it.") % {"error": found["error"]}
            yield PoolNotice("bad", "oct", _("The plugin %(name)s failed.") % {"name": name}, text)
        if "warning" in found:
            title = _("The plugin %(name)s returned an invalid score.") % {"name": name}
            yield PoolNotice("warn", "tri", title, found["warning"].capitalize())


def _plugin_text(kind: type[Plugin]) -> str:
    """Return the first line of the docstring; empty for the signature that a dataclass generates."""
    text = (kind.__doc__ or "").strip()
    return "" if text.startswith(f"{kind.__name__}(") else text.partition("\n")[0]


def _default(argument: Field[Any]) -> str:
    if argument.default is not MISSING:
        value = argument.default
    elif argument.default_factory is not MISSING:
        value = argument.default_factory()
    else:
        return _("required")
    return _("none") if value in (None, "", (), {}) else json.dumps(value, default=str)


def _last_with_plugins(ticks: Sequence[TickRun]) -> TickRun | None:
    return next((tick for tick in ticks if tick.plugins), None)


def _row(choice: PluginChoice, figures: Mapping[str, Any]) -> PluginRow:
    arguments = ", ".join(f"{name}: {value}" for name, value in choice.arguments.items())
    return PluginRow(choice.name, arguments, figures.get("ms"), figures.get("error", ""))
