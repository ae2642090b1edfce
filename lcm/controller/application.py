"""The controller application: its loops and its shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from lcm.controller.config import Config
from lcm.controller.heartbeats import HeartbeatSender
from lcm.controller.identity import controller_name
from lcm.controller.inventory import Inventory
from lcm.controller.lab_statistics import LabStatistics
from lcm.controller.lcm_client import LcmCallError, LcmClient
from lcm.controller.metrics import Metrics
from lcm.controller.outbox import Outbox
from lcm.controller.pool_leases import RENEW_SECONDS, PoolLeases
from lcm.controller.reconciler import Reconciler
from lcm.controller.spool import Spool
from lcm.controller.stage_context import StageContext
from lcm.controller.watcher import Watcher
from lcm.controller.work_queue import WorkQueue
from lcm.controller.worker_survey import WorkerSurvey

logger = logging.getLogger(__name__)

UNCHANGED_SECONDS = 1.0


class Controller:
    """Runs until `stop` is called, then finishes or hands over its work."""

    def __init__(self, config: Config) -> None:
        config = replace(config, name=controller_name(config))
        self.config = config
        self.metrics = Metrics()
        self.queue = WorkQueue(time.monotonic)
        self.client = LcmClient(config)
        self.inventory = Inventory(config, self.queue.add)
        self.inventory.on_call = self.metrics.record_call
        self.leases = PoolLeases(self.client, config.name)
        spool = Spool(
            Path(config.data_dir) / "spool",
            max_entries=config.spool_entries,
            max_bytes=config.spool_mb * 1024 * 1024,
        )
        self.outbox = Outbox(spool, self.client, self._enqueue_refresh)
        self.watcher = Watcher(config, self.client, self.inventory)
        self.context = StageContext(
            config, self.inventory, self.outbox, self.metrics, self.client.clock, self.watcher.refresh
        )
        self.reconciler = Reconciler(self.context, self.leases)
        self.heartbeats = HeartbeatSender(self.context, self.leases, self.client)
        self.survey = WorkerSurvey(self.context, self.leases, self.client, self.heartbeats, self.queue.add)
        self.statistics = LabStatistics(self.context, self.leases, self.queue.add)
        self._clock_problem = ""
        self._stopping = asyncio.Event()
        self._to_refresh: asyncio.Queue[str] = asyncio.Queue()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        logger.info("controller %s serves %s", self.config.name, self.config.lcm_url)
        work = asyncio.create_task(self.queue.run(self.reconciler.reconcile, self.config.concurrency))
        loops = [asyncio.create_task(loop) for loop in self._loops()]
        stopping = asyncio.create_task(self._stopping.wait())
        done, _ = await asyncio.wait({work, stopping, *loops}, return_when=asyncio.FIRST_COMPLETED)
        await self._end(work, loops)
        for task in done - {stopping}:
            task.result()

    def _loops(self) -> list[Coroutine[Any, Any, None]]:
        config = self.config
        return [
            self.outbox.run(),
            self.watcher.run(),
            self._refresh(),
            self._run_periodically(RENEW_SECONDS, self._renew),
            self._run_periodically(config.heartbeat_seconds, self.heartbeats.send_all),
            self._run_periodically(config.survey_seconds, self.survey.run),
            self._run_periodically(config.stats_seconds, self.statistics.read),
        ]

    async def _end(self, work: asyncio.Task[None], loops: list[asyncio.Task[None]]) -> None:
        """Finish work in progress and release the pools. Posts not accepted by LCM stay in the spool."""
        self.queue.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.queue.idle(), self.config.shutdown_grace_seconds)
        for task in (work, *loops):
            task.cancel()
        await asyncio.gather(work, *loops, return_exceptions=True)
        await self.leases.release()
        await self.inventory.aclose()
        await self.client.aclose()
        logger.info(
            "controller %s stopped, %d posts stay in the spool", self.config.name, len(self.outbox.spool)
        )

    async def _renew(self) -> None:
        gained = await self.leases.renew()
        self._check_clock()
        self.metrics.held.set(len(self.leases.pools))
        for session in self.inventory.sessions.values():
            if session.pool in gained:
                self.queue.add(session.id)

    def _check_clock(self) -> None:
        """Export the clock skew, and log when it becomes or stops being a problem."""
        clock, before = self.client.clock, self._clock_problem
        self.metrics.clock_steady.set(clock.is_steady)
        if (skew := clock.skew()) is not None:
            self.metrics.clock_skew.set(skew)
        self._clock_problem = clock.problem()
        if bool(before) != bool(self._clock_problem):
            level = logging.WARNING if self._clock_problem else logging.INFO
            logger.log(level, "clock: %s", self._clock_problem or "in step with LCM's time again")

    def _enqueue_refresh(self, session_id: str) -> None:
        self._to_refresh.put_nowait(session_id)

    async def _refresh(self) -> None:
        """Reload sessions whose state in LCM differs from the local copy."""
        while True:
            session_id = await self._to_refresh.get()
            known = self.inventory.sessions.get(session_id)
            try:
                fresh = await self.watcher.refresh(session_id)
                # If nothing changed, LCM may reject the same step again: wait before the next attempt.
                self.queue.add(session_id, UNCHANGED_SECONDS if fresh == known else 0)
            except LcmCallError as error:
                logger.info("session %s could not be reloaded, retrying: %s", session_id[:8], error)
                await asyncio.sleep(1)
                self._to_refresh.put_nowait(session_id)

    async def _run_periodically(self, seconds: float, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` at a fixed interval however long it takes. A failure skips one round."""
        due = time.monotonic()
        while True:
            try:
                await work()
            except LcmCallError as error:
                logger.info("%s", error)
            except Exception:
                logger.exception("a periodic task failed")
            self.metrics.spooled.set(self.outbox.depth())
            self.metrics.sessions.set(len(self.inventory.sessions))
            due = max(due + seconds, time.monotonic())
            await asyncio.sleep(due - time.monotonic())
