"""Looking at one session: which stage, whether we may, and what trouble means."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from lcm.cml.client.errors import CmlError
from lcm.controller.model import Session
from lcm.controller.pool_leases import PoolLeases
from lcm.controller.spool import SpoolFull
from lcm.controller.stage_context import PartOnWorker, StageContext
from lcm.controller.stages import NEED_LEASE, STAGES

logger = logging.getLogger(__name__)

WAIT_FOR_LCM = 5.0
WAIT_FOR_LEASE = 2.0


class Reconciler:
    def __init__(self, desk: StageContext, leases: PoolLeases) -> None:
        self._desk = desk
        self._leases = leases

    async def look(self, session_id: str) -> float | None:
        """What is to be done for a session now; answers when to look again."""
        session = self._desk.world.sessions.get(session_id)
        if session is None:
            self._desk.forget(session_id)
            return None
        if not self._leases.is_ours(session.pool):
            # Whoever has the pool now does what we would not know of.
            self._desk.states.pop((session.id, session.attempt), None)
            return None
        stage = STAGES.get(session.status)
        if stage is None:
            return None
        if self._desk.outbox.waiting(session_id):
            return WAIT_FOR_LCM
        if session.status in NEED_LEASE and not self._leases.may_change(session.pool):
            return WAIT_FOR_LEASE
        places = self._desk.parts_on_workers(session)
        if places is None:
            # LCM decides what becomes of sessions whose worker is gone.
            return self._desk.config.running_check_seconds
        begun, result = time.monotonic(), "failed"
        try:
            try:
                again = await stage(self._desk, session, places)
                result = "done"
            except CmlError as error:
                again = await self._trouble(session, places, error)
        except SpoolFull as error:
            logger.error("a post about session %s cannot be sent: %s", session.short, error)
            again = self._pause(session, "outbox")
        finally:
            seconds = time.monotonic() - begun
            self._desk.metrics.reconciles.labels(session.status, result).observe(seconds)
        return again

    async def _trouble(
        self, session: Session, places: Sequence[PartOnWorker], error: CmlError
    ) -> float | None:
        """Try again, later each time the same call fails; a worker that is away has lost its labs."""
        away = max(place.worker.unreachable_for() for place in places)
        if away > self._desk.config.worker_lost_seconds:
            await self._desk.fail(session, f"its worker does not answer: {error}", lab_is_gone=False)
            return None
        logger.info("session %s, %s: %s", session.short, session.status, error)
        return self._pause(session, error.call)

    def _pause(self, session: Session, call: str) -> float:
        """Seconds until the next try: longer each time the same call fails."""
        memory = self._desk.memory(session)
        if memory.failing_call != call:
            memory.failing_call = call
            memory.backoff.reset()
        return memory.backoff.next()
