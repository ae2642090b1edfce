"""Plugins by name: what they are, and how they are found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, ClassVar, TypeVar

if TYPE_CHECKING:
    from scheduling.framework.session import SchedulingSession

logger = logging.getLogger(__name__)

ENTRY_POINTS = "lcm.scheduler_plugins"
BUILT_IN = (
    "resources", "system", "ports", "labels", "cordon", "leases", "quota", "priority", "fairshare",
    "submit_order", "timeslot", "binpack", "spread", "spot", "gpupack", "gpuspread",
)  # fmt: skip


@dataclass(frozen=True)
class Plugin:
    """Made anew for every cycle from its arguments, which are the fields of the dataclass."""

    name: ClassVar[str] = ""
    # Extension points that only one plugin of a configuration can own.
    owns: ClassVar[tuple[str, ...]] = ()

    def on_session_open(self, ssn: SchedulingSession) -> None:
        """Register callbacks."""

    def on_session_close(self, ssn: SchedulingSession) -> None:
        """Clean up, measure."""


Kind = TypeVar("Kind", bound=type[Plugin])
_registered: dict[str, type[Plugin]] = {}


def register_plugin(name: str) -> Callable[[Kind], Kind]:
    """Make a plugin known by a name, which only one can have."""

    def register(kind: Kind) -> Kind:
        if _registered.setdefault(name, kind) is not kind:
            raise ValueError(f"There is already a plugin “{name}”.")
        kind.name = name
        return kind

    return register


def plugins() -> Mapping[str, type[Plugin]]:
    """All that are known: the built-in ones and those of installed packages."""
    _load()
    return _registered


@cache
def _load() -> None:
    for name in BUILT_IN:
        import_module(f"scheduling.plugins.{name}")
    for point in entry_points(group=ENTRY_POINTS):
        try:
            register_plugin(point.name)(point.load())
        except Exception:
            # A package that cannot be loaded must not take the others with it; its name stays unknown.
            logger.exception("plugin_not_loaded", extra={"plugin": point.name, "source": point.value})
