"""Client of the simulator process that runs a CML and a controller for each simulated instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import httpx

from lcm.cml.simulator.admin_client import SimulatorAdmin
from lcm.cml.simulator.options import OptionError
from scheduling.capacity.runtimes.base import Misconfigured, ResponseLost


class SimulatorControl:
    """The simulator process at an address; its errors become runtime failures."""

    def __init__(self, url: str) -> None:
        self._url = url

    def address_of(self, instance_id: str) -> str:
        return f"{self._url.rstrip('/')}/{instance_id}"

    def ensure(self, instance_ids: Iterable[str], options: Mapping[str, object]) -> None:
        """Start the instances that are missing; an existing one keeps its labs."""
        with self._admin() as admin, _failing():
            missing = set(instance_ids) - set(admin.controllers())
            for name in sorted(missing):
                admin.add(name, **options)

    def remove(self, instance_ids: Iterable[str]) -> None:
        """Remove instances with their labs; succeed for instances that are gone already."""
        with self._admin() as admin, _failing():
            for name in instance_ids:
                admin.remove(name)

    def _admin(self) -> SimulatorAdmin:
        return SimulatorAdmin(self._url, timeout=5.0)


@contextmanager
def _failing() -> Iterator[None]:
    """Turn errors of the process into runtime failures."""
    try:
        yield
    except OptionError as error:
        raise Misconfigured(f"The simulator refuses: {error}") from error
    except httpx.HTTPError as error:
        raise ResponseLost(f"The simulator does not answer: {error or type(error).__name__}") from error
