"""What every stage of a session works with: the worker, the way to LCM, the time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

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

# The key of the last observation was used for another body: a run before us has posted it.
ALREADY_POSTED = "key_reused"


class PartOnWorker(NamedTuple):
    """A part of a session and the worker that it is on."""

    part: SessionPart
    worker: ManagedWorker


class LabLocation(NamedTuple):
    """A lab of a session, and where."""

    worker: ManagedWorker
    lab_id: str


@dataclass
class LabState:
    """What this process knows of the lab of a part."""

    lab_id: str | None = None
    prepared: bool = False
    nodes: Entries[CmlNode] | None = None
    links: Mapping[str, LinkEnds] = field(default_factory=dict)


@dataclass
class SessionState:
    """What this process knows of a session. Nothing in it is needed after a restart."""

    labs: dict[str, LabState] = field(default_factory=dict)
    # From then on no import is under way that nobody waits for; None: one before us may have begun some.
    settled_at: datetime | None = None
    # The end of the timeslot at which the lab was observed last. After an extension it is observed again.
    observed_end: datetime | None = None
    why_missing: str = ""
    answered_request: str | None = None
    failing_call: str = ""
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.5, longest=15))

    def on(self, place: PartOnWorker) -> LabState:
        return self.labs.setdefault(place.part.slot_id, LabState())


@dataclass
class StageContext:
    config: Config
    world: Inventory
    outbox: Outbox
    metrics: Metrics
    clock: LcmClock
    refresh: Callable[[str], Awaitable[Session | None]]
    states: dict[tuple[str, int], SessionState] = field(default_factory=dict)

    def memory(self, session: Session) -> SessionState:
        return self.states.setdefault((session.id, session.attempt), SessionState())

    def forget(self, session_id: str) -> None:
        self.states = {key: value for key, value in self.states.items() if key[0] != session_id}
        self.metrics.utilization.remove(session_id)

    def now(self) -> datetime:
        """LCM's time, not that of this machine."""
        return self.clock.now()

    def age(self, session: Session) -> float:
        """Seconds in its present status; 0 while LCM's time is in doubt, so that no time limit is over."""
        return (self.now() - session.status_since).total_seconds() if self.clock.is_steady else 0.0

    def is_over(self, session: Session, for_seconds: float = 0) -> bool:
        """Whether its timeslot is over; no timeslot is while LCM's time is in doubt."""
        return self.clock.is_steady and (self.now() - session.ends_at).total_seconds() >= for_seconds

    async def still_over(self, session: Session) -> bool | None:
        """Ask LCM before ending something: it may have been extended. None: LCM does not answer."""
        try:
            fresh = await self.refresh(session.id)
        except LcmCallError:
            return None
        return fresh is not None and fresh.status == session.status and self.is_over(fresh)

    async def move(self, session: Session, to: str, reason: str = "") -> bool:
        """One step; whether LCM took it. A step that LCM cannot take now is kept and sent later."""
        return await self._move(session, to, reason, {})

    async def end(self, session: Session, to: str, reason: str) -> bool:
        """One step because the timeslot is over: LCM refuses it if the session was extended meanwhile."""
        return await self._move(session, to, reason, {"ends_at": session.ends_at.isoformat()})

    async def fail(self, session: Session, reason: str, *, lab_is_gone: bool) -> bool:
        """What went wrong; LCM decides what follows."""
        logger.warning("session %s failed while %s: %s", session.short, session.status, reason)
        body = {
            "from_status": session.status,
            "attempt": session.attempt,
            "reason": reason[:500],
            "lab_is_gone": lab_is_gone,
        }
        return await self._tell(session, "failures", body, f"failure {session.status} {reason}")

    async def observe(
        self, session: Session, labs: Sequence[LabLocation], *, observer: str = LABLET_CONTROLLER
    ) -> ResourceObservation | None:
        """What its labs have and use now; never raises: nothing that fails here may block what follows."""
        try:
            seen = await asyncio.gather(
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
            return merge_observations(seen)
        except Exception:
            logger.exception("session %s could not be observed", session.short)
            return None

    async def post_observation(self, session: Session, seen: ResourceObservation | None, name: str) -> str:
        """Post it once under this name; answers why there is no observation, if there is none."""
        if seen is None:
            return self._missing("it could not be observed")
        try:
            outcome = await self._post(session, "resource-observations", seen.to_dict(), name)
        except SpoolFull as error:
            return self._missing(str(error))
        if outcome.refused and outcome.refused.code != ALREADY_POSTED:
            return self._missing(str(outcome.refused))
        self.metrics.observations.labels("complete" if seen.is_complete else "incomplete").inc()
        return ""

    def parts_on_workers(self, session: Session) -> list[PartOnWorker] | None:
        """The parts of a session with their workers; None when one of them does not serve."""
        found = [
            PartOnWorker(part, worker)
            for part in session.parts
            if (worker := self.world.worker(part.slot_id)) is not None
        ]
        return found if found and len(found) == len(session.parts) else None

    async def lab_of(self, session: Session, place: PartOnWorker) -> str | None:
        """The session's lab on a worker, by its mark; None when there is none."""
        memory = self.memory(session).on(place)
        labs = await place.worker.labs_of(LabOwner(session.id, session.attempt))
        memory.lab_id = labs[0].id if labs else None
        return memory.lab_id

    async def labs_of(self, session: Session, places: Sequence[PartOnWorker]) -> list[LabLocation]:
        """The labs of all its parts; none when one of them is missing: the session is lost with it."""
        found = [
            LabLocation(place.worker, lab_id)
            for place in places
            if (lab_id := await self.lab_of(session, place))
        ]
        return found if len(found) == len(places) else []

    async def labs_are_gone(self, session: Session, places: Sequence[PartOnWorker]) -> bool:
        """Return whether all its workers report that they have no lab for this attempt."""
        mark = LabOwner(session.id, session.attempt)
        try:
            return not any([await place.worker.labs_of(mark) for place in places])
        except CmlError:
            return False

    async def remove_labs(self, session: Session, places: Sequence[PartOnWorker]) -> None:
        """Everything on its workers that is for this attempt."""
        for place in places:
            for lab in await place.worker.labs_of(LabOwner(session.id, session.attempt)):
                await place.worker.remove(lab.id)
        self.metrics.utilization.remove(session.id)

    def _missing(self, why: str) -> str:
        self.metrics.observations.labels("missing").inc()
        return why

    async def _move(self, session: Session, to: str, reason: str, decided_on: Mapping[str, str]) -> bool:
        logger.info("session %s: %s → %s %s", session.short, session.status, to, reason)
        body = {
            "from_status": session.status,
            "to_status": to,
            "attempt": session.attempt,
            "reason": reason[:500],
            **decided_on,
        }
        name = " ".join([session.status, to, reason, *decided_on.values()])
        return await self._tell(session, "transitions", body, name)

    async def _tell(self, session: Session, path: str, body: dict[str, Any], name: str) -> bool:
        outcome = await self._post(session, path, body, name)
        if isinstance(outcome.answer, dict) and "status" in outcome.answer:
            self.world.put(Session.read(outcome.answer))
        return outcome.answer is not None

    async def _post(self, session: Session, path: str, body: dict[str, Any], name: str) -> PostResult:
        address = f"lablet-sessions/{session.id}/{path}"
        return await self.outbox.send(session.id, session.attempt, address, body, name)
