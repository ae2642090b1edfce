"""Worker heartbeats: reachability, capacity, labs and ports in use, reported to LCM."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from lcm.cml.client.errors import CmlError
from lcm.cml.client.system_results import SystemStats
from lcm.controller.lcm_client import LcmCallError, LcmClient
from lcm.controller.pool_leases import PoolLeases
from lcm.controller.stage_context import StageContext
from lcm.controller.worker import ManagedWorker

logger = logging.getLogger(__name__)

HEARTBEATS_AT_ONCE = 16


@dataclass(frozen=True)
class SurveyResult:
    """Leaked ports and labs on a worker, with the monotonic time at which the survey began."""

    ports: Sequence[dict[str, object]]
    # Labs of sessions: session, attempt, id and the state of each node.
    labs: Sequence[dict[str, object]] = ()
    began: float = field(default_factory=time.monotonic)

    def as_body(self) -> dict[str, object]:
        age = max(time.monotonic() - self.began, 0.0)
        return {
            "leaked_ports": list(self.ports),
            "labs": list(self.labs),
            "ports_observed_seconds_ago": round(age, 1),
        }


class HeartbeatSender:
    def __init__(self, context: StageContext, leases: PoolLeases, client: LcmClient) -> None:
        self._context = context
        self._leases = leases
        self._client = client
        self._semaphore = asyncio.Semaphore(HEARTBEATS_AT_ONCE)
        # By slot: the result of the last survey until LCM has received it.
        self.survey_results: dict[str, SurveyResult] = {}

    async def send_all(self) -> None:
        """Send one heartbeat for each worker that responds."""
        workers = self._context.inventory.workers_of(self._leases.pools)
        await asyncio.gather(*map(self._send, workers))

    async def _send(self, worker: ManagedWorker) -> None:
        slot_id = worker.slot.id
        async with self._semaphore:
            result = "sent"
            observation = self.survey_results.pop(slot_id, None)
            try:
                await self._client.heartbeat(slot_id, await _body(worker, observation))
            except CmlError as error:
                result = "worker away"
                logger.info("no heartbeat for %s: %s", worker.slot.name, error)
            except LcmCallError as error:
                result = "LCM away"
                logger.info("LCM did not accept the heartbeat of %s: %s", worker.slot.name, error)
            if observation is not None and result != "sent":
                self.survey_results.setdefault(slot_id, observation)
            self._context.metrics.heartbeats.labels(result).inc()


async def _body(worker: ManagedWorker, observation: SurveyResult | None) -> dict[str, object]:
    information = await worker.cml.system_information()
    body: dict[str, object] = {"version": information.version_text[:60]}
    try:
        body["capacity"] = _capacity(await worker.cml.system_stats())
    except CmlError as error:
        logger.info("%s did not report its capacity: %s", worker.slot.name, error)
    return {**body, **observation.as_body()} if observation else body


def _capacity(stats: SystemStats) -> dict[str, str]:
    figures = {
        "cpu_cores": stats.cpu_count,
        "memory_gb": _gb(stats.memory_total_mb),
        "storage_gb": _gb(stats.disk_total_mb),
    }
    return {name: f"{figure:.2f}" for name, figure in figures.items() if figure is not None}


def _gb(megabytes: int | None) -> float | None:
    return None if megabytes is None else megabytes / 1024
