"""Placeholder for a runtime that cannot be created from its pool's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from scheduling.capacity.runtimes.base import (
    Health,
    Instance,
    Interruption,
    LaunchRequest,
    Misconfigured,
    Offering,
    RuntimeAdapter,
)


class UnusableRuntime(RuntimeAdapter):
    """A runtime whose every call raises the configuration problem."""

    def __init__(self, pool: str, reason: str) -> None:
        super().__init__(pool, {})
        self.reason = reason

    @classmethod
    def problems(cls, settings: Mapping[str, Any]) -> dict[str, str]:  # noqa: ARG003
        return {"": "This is no runtime."}

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
