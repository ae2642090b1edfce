"""Services shared by the stages of a session: workers, outbox, clock and per-session state."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from lcm.cml.client.errors import CmlError
from lcm.cml.client.results import CmlNode, Entries, LinkEnds
from lcm.cml.observation.merge import merge_observations
from lcm.cml.observation.model import LABLET_CONTROLLER, ResourceObservation
from lcm.cml.observation.observer import observe_lab
from lcm.controller.backoff import Backoff
from lcm.controller.clock import LcmClock
from lcm.controller.config import Config
from lcm.controller.inventory import Inventory
from lcm.controller.lab_titles import LabOwner
from lcm.controller.lcm_client import LcmCallError
from lcm.controller.metrics import Metrics
from lcm.controller.model import Session, SessionPart
from lcm.controller.outbox import Outbox, PostResult
from lcm.controller.spool import SpoolFull
from lcm.controller.worker import ManagedWorker

logger = logging.getLogger(__name__)

# The key of the final observation was used with another body: an earlier run posted it.
ALREADY_POSTED = "idempotency_key_reused"


class PartOnWorker(NamedTuple):
    """A part of a session and its worker."""

    part: SessionPart
    worker: ManagedWorker


class LabLocation(NamedTuple):
    """A lab of a session and its worker."""

    worker: ManagedWorker
    lab_id: str


@dataclass
class LabState:
    """State of one part's lab, known to this process only."""

    lab_id: str | None = None
    prepared: bool = False
    nodes: Entries[CmlNode] | None = None
    links: Mapping[str, LinkEnds] = field(default_factory=dict)


@dataclass
class SessionState:
    """State of a session, known to this process only. Nothing in it is needed after a restart."""

    labs: dict[str, LabState] = field(default_factory=dict)
    # An abandoned import cannot still be in progress after this time. None: an earlier process may have begun
    # one.
    settled_at: datetime | None = None
    # The timeslot end at which the lab was last observed. After an extension it is observed again.
    observed_end: datetime | None = None
    missing_reason: str = ""
    completed_request: str | None = None
    failing_call: str = ""
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, longest=15))

    def on(self, place: PartOnWorker) -> LabState:
        return self.labs.setdefault(place.part.slot_id, LabState())


@dataclass
class StageContext:
    config: Config
    inventory: Inventory
    outbox: Outbox
    metrics: Metrics
    clock: LcmClock
    refresh: Callable[[str], Awaitable[Session | None]]
    states: dict[tuple[str, int], SessionState] = field(default_factory=dict)

    def state_of(self, session: Session) -> SessionState:
        return self.states.setdefault((session.id, session.attempt), SessionState())

    def forget(self, session_id: str) -> None:
        self.states = {key: value for key, value in self.states.items() if key[0] != session_id}
        self.metrics.utilization.remove(session_id)

    def now(self) -> datetime:
        """Return LCM's time, not local time."""
        return self.clock.now()

    def age(self, session: Session) -> float:
        """Return seconds in the current status; 0 while LCM's time is unknown, so that no timeout expires."""
        return (self.now() - session.status_since).total_seconds() if self.clock.is_steady else 0.0

    def is_over(self, session: Session, for_seconds: float = 0) -> bool:
        """Return whether the timeslot has ended; False while LCM's time is unknown."""
        return self.clock.is_steady and (self.now() - session.ends_at).total_seconds() >= for_seconds

    async def confirm_over(self, session: Session) -> bool | None:
        """Return whether LCM confirms that the timeslot has ended; None if LCM does not respond."""
        try:
            fresh = await self.refresh(session.id)
        except LcmCallError:
            return None
        return fresh is not None and fresh.status == session.status and self.is_over(fresh)

    async def move(self, session: Session, to: str, reason: str = "", **conditions: str) -> bool:
        """Request a transition. Return whether LCM accepted it. The outbox retries if LCM is unavailable."""
        logger.info("session %s: %s → %s %s", session.short_id, session.status, to, reason)
        body = {
            "from_status": session.status,
            "to_status": to,
            "attempt": session.attempt,
            "reason": reason[:500],
            **conditions,
        }
        name = " ".join([session.status, to, reason, *conditions.values()])
        return await self._report(session, "transitions", body, name)

    async def end(self, session: Session, to: str, reason: str) -> bool:
        """Request a transition because the timeslot ended. LCM rejects it if the session was extended."""
        return await self.move(session, to, reason, ends_at=session.ends_at.isoformat())

    async def fail(self, session: Session, reason: str, *, lab_removed: bool) -> bool:
        """Report a failure. LCM decides what follows."""
        logger.warning("session %s failed while %s: %s", session.short_id, session.status, reason)
        body = {
            "from_status": session.status,
            "attempt": session.attempt,
            "reason": reason[:500],
            "lab_removed": lab_removed,
        }
        return await self._report(session, "failures", body, f"failure {session.status} {reason}")

    async def observe(
        self, session: Session, labs: Sequence[LabLocation], *, observer: str = LABLET_CONTROLLER
    ) -> ResourceObservation | None:
        """Return what the labs have and use now. Never raises, so that teardown is not blocked."""
        try:
            observations = await asyncio.gather(
                *(
                    observe_lab(
                        worker.cml,
                        lab_id,
                        observer=observer,
                        controller=self.config.name,
                        deadline=self.config.observe_seconds,
                        now=self.now,
                    )
                    for worker, lab_id in labs
                )
            )
            return merge_observations(observations)
        except Exception:
            logger.exception("session %s could not be observed", session.short_id)
            return None

    async def post_observation(
        self, session: Session, observation: ResourceObservation | None, name: str
    ) -> str:
        """Post an observation once under this name. Return why it is missing, or an empty string."""
        if observation is None:
            return self._count_missing("the observation failed")
        try:
            result = await self._post(session, "resource-observations", observation.to_dict(), name)
        except SpoolFull as error:
            return self._count_missing(str(error))
        if result.rejection and result.rejection.code != ALREADY_POSTED:
            return self._count_missing(str(result.rejection))
        self.metrics.observations.labels("complete" if observation.is_complete else "incomplete").inc()
        return ""

    def parts_on_workers(self, session: Session) -> list[PartOnWorker] | None:
        """Return the session's parts with their workers, or None if a worker is not in service."""
        placed = [
            PartOnWorker(part, worker)
            for part in session.parts
            if (worker := self.inventory.worker(part.slot_id)) is not None
        ]
        return placed if placed and len(placed) == len(session.parts) else None

    async def lab_of(self, session: Session, place: PartOnWorker) -> str | None:
        """Return the id of the session's lab on a worker, found by its owner mark, or None."""
        state = self.state_of(session).on(place)
        labs = await place.worker.labs_of(LabOwner(session.id, session.attempt))
        state.lab_id = labs[0].id if labs else None
        return state.lab_id

    async def labs_of(self, session: Session, places: Sequence[PartOnWorker]) -> list[LabLocation]:
        """Return the labs of all parts, or an empty list if one is missing, as the session is then lost."""
        labs = [
            LabLocation(place.worker, lab_id)
            for place in places
            if (lab_id := await self.lab_of(session, place))
        ]
        return labs if len(labs) == len(places) else []

    async def labs_are_gone(self, session: Session, places: Sequence[PartOnWorker]) -> bool:
        """Return whether every worker reports no lab for this attempt."""
        owner = LabOwner(session.id, session.attempt)
        try:
            return not any([await place.worker.labs_of(owner) for place in places])
        except CmlError:
            return False

    async def remove_labs(self, session: Session, places: Sequence[PartOnWorker]) -> None:
        """Remove all labs of this attempt from the workers."""
        for place in places:
            for lab in await place.worker.labs_of(LabOwner(session.id, session.attempt)):
                await place.worker.remove(lab.id)
        self.metrics.utilization.remove(session.id)

    def _count_missing(self, reason: str) -> str:
        """Count a missing observation and return the reason."""
        self.metrics.observations.labels("missing").inc()
        return reason

    async def _report(self, session: Session, path: str, body: dict[str, object], name: str) -> bool:
        result = await self._post(session, path, body, name)
        if isinstance(result.response, dict) and "status" in result.response:
            self.inventory.put(Session.read(result.response))
        return result.response is not None

    async def _post(self, session: Session, path: str, body: dict[str, object], name: str) -> PostResult:
        address = f"lablet-sessions/{session.id}/{path}"
        return await self.outbox.send(session.id, session.attempt, address, body, name)
