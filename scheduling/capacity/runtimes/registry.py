"""Registry of runtimes by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from scheduling.capacity.runtimes.base import (
    Health,
    Instance,
    Interruption,
    LaunchRequest,
    Misconfigured,
    Offering,
    RuntimeAdapter,
)
from scheduling.options import suggestion

if TYPE_CHECKING:
    from scheduling.models import Pool

Adapter = TypeVar("Adapter", bound=type[RuntimeAdapter])

_BUILT_IN = ("simulated", "static", "ec2")
_registered: dict[str, type[RuntimeAdapter]] = {}


def register_runtime(name: str) -> Callable[[Adapter], Adapter]:
    """Register an adapter under a unique name."""

    def register(adapter: Adapter) -> Adapter:
        if _registered.setdefault(name, adapter) is not adapter:
            raise ValueError(f"There is already a runtime “{name}”.")
        return adapter

    return register


def runtime_names() -> list[str]:
    return sorted(_runtimes())


def runtime_for(pool: Pool) -> RuntimeAdapter:
    """Return the pool's runtime; raise `Misconfigured` if its settings are invalid."""
    adapter = _runtimes().get(pool.runtime)
    if adapter is None:
        raise Misconfigured(_no_runtime(pool.runtime))
    return adapter(pool.name, pool.runtime_settings)


def runtime_class(name: str) -> type[RuntimeAdapter]:
    """Return the adapter class of this name; the base class if the name is unknown."""
    return _runtimes().get(name, RuntimeAdapter)


def runtime_problems(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems of a pool's runtime: the key of the setting (empty: the runtime itself) and a
    sentence."""
    adapter = _runtimes().get(name)
    return adapter.problems(settings) if adapter else {"": _no_runtime(name)}


def _runtimes() -> Mapping[str, type[RuntimeAdapter]]:
    _load_built_in()
    return _registered


@cache
def _load_built_in() -> None:
    for name in _BUILT_IN:
        import_module(f"scheduling.capacity.runtimes.{name}")


def _no_runtime(name: str) -> str:
    return f"There is no runtime “{name}”{suggestion(name, _registered)}"


class UnusableRuntime(RuntimeAdapter):
    """A runtime whose every call raises the configuration problem."""

    def __init__(self, pool: str, reason: str) -> None:
        super().__init__(pool, {})
        self.reason = reason

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:  # noqa: ARG003
        return {"": "This is not a runtime."}

    def offerings(self) -> Iterable[Offering]:
        self._refuse()

    def launch(self, request: LaunchRequest) -> Instance:
        self._refuse()

    def describe(self) -> Iterable[Instance]:
        self._refuse()

    def terminate(self, instance_id: str) -> None:
        self._refuse()

    def probe(self, instance: Instance) -> Health:
        return Health(False, self.reason)

    def interruptions(self) -> Iterable[Interruption]:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Misconfigured(self.reason)
