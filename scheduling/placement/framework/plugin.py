"""Plugins: base class, registry by name, and loading from installed packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, get_type_hints

from scheduling.options import Options
from scheduling.placement.framework.entry_points import entry_point_names, load_entry_points

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

ENTRY_POINTS = "lcm.scheduler_plugins"


@dataclass(frozen=True)
class Plugin(Options):
    """Base class. A plugin is created for every cycle from its arguments, the fields of the dataclass."""

    name: ClassVar[str] = ""
    # Extension points that only one plugin of a configuration can own.
    owns: ClassVar[tuple[str, ...]] = ()

    def on_session_open(self, ssn: SchedulingSession) -> None:
        """Register callbacks."""

    def on_session_close(self, ssn: SchedulingSession) -> None:
        """Clean up and record measurements."""


Kind = TypeVar("Kind", bound=type[Plugin])
_registered: dict[str, type[Plugin]] = {}
_rejected: dict[str, str] = {}


def register_plugin(name: str) -> Callable[[Kind], Kind]:
    """Register a plugin under a unique name."""

    def register(kind: Kind) -> Kind:
        if _registered.setdefault(name, kind) is not kind:
            raise ValueError(f"There is already a plugin “{name}”.")
        kind.name = name
        return kind

    return register


def plugins() -> Mapping[str, type[Plugin]]:
    """Return all known plugins: built-in and installed ones."""
    _load()
    return _registered


def rejected_plugins() -> Mapping[str, str]:
    """Return the installed plugins that cannot be used, with their problems."""
    _load()
    return _rejected


def unknown_plugin(name: str) -> str:
    """Return why a plugin cannot be used and what to do, as the end of a sentence; empty if not installed."""
    if name in rejected_plugins():
        return f"cannot be used: {_rejected[name]}"
    if name in entry_point_names(ENTRY_POINTS):
        return "was installed after LCM started. Restart the web, worker and beat processes to use it."
    return ""


@cache
def _load() -> None:
    import scheduling.placement.plugins  # noqa: F401  (its modules import this one)

    _rejected.update(load_entry_points(ENTRY_POINTS, _register_installed))


def _register_installed(name: str, loaded: Any) -> None:
    """Register an entry point: a plugin class, or a function that returns a plugin."""
    is_class = isinstance(loaded, type) and issubclass(loaded, Plugin)
    register_plugin(name)(loaded if is_class else _from_builder(name, loaded))


@dataclass(frozen=True)
class FunctionPlugin(Plugin):
    """A plugin built by a function; its arguments are the function's parameters."""

    builder: ClassVar[Callable[..., Plugin]]
    # Not a field, which would be an argument; each plugin has its own.
    _built: ClassVar[Plugin]

    def __post_init__(self) -> None:
        built = type(self).builder(**{field.name: getattr(self, field.name) for field in fields(self)})
        if not isinstance(built, Plugin):
            raise TypeError(f"the function returned {built!r}, which is not a plugin")
        object.__setattr__(self, "_built", built)

    def on_session_open(self, ssn: SchedulingSession) -> None:
        self._built.on_session_open(ssn)

    def on_session_close(self, ssn: SchedulingSession) -> None:
        self._built.on_session_close(ssn)


def _from_builder(name: str, builder: object) -> type[Plugin]:
    """Return a plugin class for a function; the function is called once with its defaults to inspect the
    result."""
    if isinstance(builder, type) or not callable(builder):
        raise TypeError(f"{builder!r} is neither a plugin class nor a function that returns a plugin")
    parameters = [
        each for each in signature(builder).parameters.values() if each.kind is not each.VAR_KEYWORD
    ]
    if any(each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL) for each in parameters):
        raise TypeError("the parameters of the function must have names")
    hints = _hints(builder)
    declared = [
        (
            each.name,
            hints.get(each.name, Any),
            field(default=MISSING if each.default is each.empty else each.default, kw_only=True),
        )
        for each in parameters
    ]
    members = {"builder": staticmethod(builder), "__doc__": builder.__doc__ or ""}
    kind: type[FunctionPlugin] = make_dataclass(
        name, declared, bases=(FunctionPlugin,), namespace=members, frozen=True
    )
    if all(each.default is not each.empty for each in parameters):
        kind.owns = kind()._built.owns
    return kind


def _hints(builder: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of the parameters; none if a name in them is unknown at run time."""
    try:
        return get_type_hints(builder, include_extras=True)
    except (NameError, TypeError):
        return {}
