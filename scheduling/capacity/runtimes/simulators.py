"""Where simulated instances really answer: a CML simulator process with a controller for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import httpx

from lcm.cml.simulator.admin_client import SimulatorAdmin
from lcm.cml.simulator.options import OptionError
from scheduling.capacity.runtimes.base import Misconfigured, ResponseLost


class SimulatorControl:
    """The process at an address; what it refuses or does not answer is a failure of the runtime."""

    def __init__(self, url: str) -> None:
        self._url = url

    def address_of(self, instance_id: str) -> str:
        return f"{self._url.rstrip('/')}/{instance_id}"

    def ensure(self, instance_ids: Iterable[str], options: Mapping[str, object]) -> None:
        """Start those that are not there; one that was there keeps its labs."""
        with self._admin() as admin, _failing():
            missing = set(instance_ids) - set(admin.controllers())
            for name in sorted(missing):
                admin.add(name, **options)

    def remove(self, instance_ids: Iterable[str]) -> None:
        """End them with their labs; what is gone already is fine."""
        with self._admin() as admin, _failing():
            for name in instance_ids:
                admin.remove(name)

    def _admin(self) -> SimulatorAdmin:
        return SimulatorAdmin(self._url, timeout=5.0)


@contextmanager
def _failing() -> Iterator[None]:
    """Failures of the process as failures of the runtime."""
    try:
        yield
    except OptionError as error:
        raise Misconfigured(f"The simulator refuses: {error}") from error
    except httpx.HTTPError as error:
        raise ResponseLost(f"The simulator does not answer: {error or type(error).__name__}") from error
