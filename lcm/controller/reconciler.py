"""Reconciliation of one session: selects its stage, checks the lease, handles failures."""

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
    def __init__(self, context: StageContext, leases: PoolLeases) -> None:
        self._context = context
        self._leases = leases

    async def reconcile(self, session_id: str) -> float | None:
        """Run the current stage of a session. Return seconds until the next run, or None."""
        session = self._context.inventory.sessions.get(session_id)
        if session is None:
            self._context.forget(session_id)
            return None
        if not self._leases.is_ours(session.pool):
            # Another controller serves the pool; this one's copy of the state becomes outdated.
            self._context.states.pop((session.id, session.attempt), None)
            return None
        stage = STAGES.get(session.status)
        if stage is None:
            return None
        if self._context.outbox.pending_posts(session_id):
            return WAIT_FOR_LCM
        if session.status in NEED_LEASE and not self._leases.may_change(session.pool):
            return WAIT_FOR_LEASE
        places = self._context.parts_on_workers(session)
        if places is None:
            # LCM decides what happens to sessions whose worker is gone.
            return self._context.config.running_check_seconds
        started_at, result = time.monotonic(), "failed"
        try:
            try:
                delay = await stage(self._context, session, places)
                result = "done"
            except CmlError as error:
                delay = await self._handle_failure(session, places, error)
        except SpoolFull as error:
            logger.error("a post about session %s cannot be sent: %s", session.short_id, error)
            delay = self._pause(session, "outbox")
        finally:
            seconds = time.monotonic() - started_at
            self._context.metrics.reconciles.labels(session.status, result).observe(seconds)
        return delay

    async def _handle_failure(
        self, session: Session, places: Sequence[PartOnWorker], error: CmlError
    ) -> float | None:
        """Return the backoff delay, or report a failure if a worker has been unreachable for too long."""
        unreachable_seconds = max(place.worker.unreachable_for() for place in places)
        if unreachable_seconds > self._context.config.worker_lost_seconds:
            await self._context.fail(session, f"the worker does not respond: {error}", lab_removed=False)
            return None
        logger.info("session %s, %s: %s", session.short_id, session.status, error)
        return self._pause(session, error.call)

    def _pause(self, session: Session, call: str) -> float:
        """Return the backoff delay of a call, which grows while the same call fails."""
        state = self._context.state_of(session)
        if state.failing_call != call:
            state.failing_call = call
            state.backoff.reset()
        return state.backoff.next()
