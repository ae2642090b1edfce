"""Telling LCM that the workers live, what they have, and which ports are taken there."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lcm.cml.client.errors import CmlError
from lcm.cml.client.system_results import SystemStats
from lcm.controller.lcm_client import LcmCallError, LcmClient
from lcm.controller.pool_leases import PoolLeases
from lcm.controller.stage_context import StageContext
from lcm.controller.worker import ManagedWorker

logger = logging.getLogger(__name__)

AT_ONCE = 16


@dataclass(frozen=True)
class PortObservation:
    """Ports that were found taken on a worker, and when we began to look; by a clock that never jumps."""

    ports: Sequence[dict[str, Any]]
    began: float = field(default_factory=time.monotonic)

    def as_body(self) -> dict[str, Any]:
        age = max(time.monotonic() - self.began, 0.0)
        return {"leaked_ports": list(self.ports), "looked_seconds_ago": round(age, 1)}


class HeartbeatSender:
    def __init__(self, desk: StageContext, leases: PoolLeases, client: LcmClient) -> None:
        self._desk = desk
        self._leases = leases
        self._client = client
        self._gate = asyncio.Semaphore(AT_ONCE)
        # By slot: what the last survey found, until LCM has been told.
        self.port_observations: dict[str, PortObservation] = {}

    async def send_all(self) -> None:
        """One heartbeat for each worker that answers."""
        slots = [slot for slot in self._desk.world.slots.values() if self._leases.is_ours(slot.pool)]
        await asyncio.gather(*(self._one(slot.id) for slot in slots))

    async def _one(self, slot_id: str) -> None:
        worker = self._desk.world.worker(slot_id)
        if worker is None:
            return
        async with self._gate:
            result = "sent"
            looked = self.port_observations.pop(slot_id, None)
            try:
                await self._client.heartbeat(slot_id, await _body(worker, looked))
            except CmlError as error:
                result = "worker away"
                logger.info("no heartbeat of %s: %s", worker.slot.name, error)
            except LcmCallError as error:
                result = "LCM away"
                logger.info("LCM did not take the heartbeat of %s: %s", worker.slot.name, error)
            if looked is not None and result != "sent":
                self.port_observations.setdefault(slot_id, looked)
            self._desk.metrics.heartbeats.labels(result).inc()


async def _body(worker: ManagedWorker, looked: PortObservation | None) -> dict[str, Any]:
    information = await worker.cml.system_information()
    body: dict[str, Any] = {"version": information.version_text[:60]}
    try:
        body["capacity"] = _capacity(await worker.cml.system_stats())
    except CmlError as error:
        logger.info("%s does not say what it has: %s", worker.slot.name, error)
    return {**body, **looked.as_body()} if looked else body


def _capacity(stats: SystemStats) -> dict[str, str]:
    figures = {
        "cpu_cores": stats.cpu_count,
        "memory_gb": _gb(stats.memory_total_mb),
        "storage_gb": _gb(stats.disk_total_mb),
    }
    return {name: f"{figure:.2f}" for name, figure in figures.items() if figure is not None}


def _gb(megabytes: int | None) -> float | None:
    return None if megabytes is None else megabytes / 1024
