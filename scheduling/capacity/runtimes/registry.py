"""The runtimes by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from lcm.domain.validation import suggestion
from scheduling.capacity.runtimes.base import Health, Instance, Misconfigured, RuntimeAdapter
from scheduling.capacity.runtimes.ec2 import Ec2Runtime
from scheduling.capacity.runtimes.simulated import SimulatedRuntime
from scheduling.capacity.runtimes.static import StaticRuntime

if TYPE_CHECKING:
    from scheduling.models import Pool

RUNTIMES: Mapping[str, type[RuntimeAdapter]] = {
    "ec2": Ec2Runtime,
    "simulated": SimulatedRuntime,
    "static": StaticRuntime,
}


def runtime_names() -> list[str]:
    return list(RUNTIMES)


def runtime_for(pool: Pool) -> RuntimeAdapter:
    """Return the pool's runtime; raise `Misconfigured` if its settings are invalid."""
    adapter = RUNTIMES.get(pool.runtime)
    if adapter is None:
        raise Misconfigured(_no_runtime(pool.runtime))
    return adapter(pool.name, pool.runtime_settings)


def runtime_class(name: str) -> type[RuntimeAdapter]:
    """Return the adapter class of this name; the base class if the name is unknown."""
    return RUNTIMES.get(name, RuntimeAdapter)


def runtime_problems(name: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems of a pool's runtime: the key of the setting (empty: the runtime itself) and a
    sentence."""
    adapter = RUNTIMES.get(name)
    return adapter.problems(settings) if adapter else {"": _no_runtime(name)}


def _no_runtime(name: str) -> str:
    return f"There is no runtime “{name}”{suggestion(name, RUNTIMES)}"


class UnusableRuntime(RuntimeAdapter):
    """A runtime that raises the configuration problem at every call."""

    def __init__(self, pool: str, reason: str) -> None:
        super().__init__(pool, {})
        self.reason = reason

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:  # noqa: ARG003
        return {"": "This is not a runtime."}

    def _refuse(self, *_: object, **__: Any) -> NoReturn:
        raise Misconfigured(self.reason)

    offerings = launch = describe = terminate = interruptions = _refuse

    def probe(self, instance: Instance) -> Health:
        return Health(False, self.reason)
