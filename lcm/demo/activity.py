"""Simulated activity in the demo: sessions that last minutes, cancellations, extensions, interruptions."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from random import Random

from django.db.models import QuerySet

from lcm.demo.names import DEFINITIONS, POOLS, PROJECTS, STUDENTS, VERSION
from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.errors import LcmError
from lcm.domain.lifecycle import ACTIVE, SessionStatus
from lcm.models import DefinitionStatus, LabletDefinition, LabletSession, Membership, Priority
from lcm.services.sessions import cancel_session, create_session, extend_session
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.capacity.runtimes.simulated import SimulatedRuntime
from scheduling.models import Pool, SimulatedInstance, SlotState

logger = logging.getLogger(__name__)

DEMO = Actor(label="demo")
# Number of active sessions that the demo keeps up.
TARGET_SESSIONS = 12
MAX_REQUESTS_PER_STEP = 2
SESSION_MINUTES = (3, 12)
CANCEL_PROBABILITY, EXTEND_PROBABILITY, INTERRUPT_PROBABILITY = 0.02, 0.04, 0.01


class DemoActivity:
    """Performs one `step` every few seconds. Rejected actions are retried in the next step."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def step(self, *, now: datetime) -> None:
        for action in (self._request, self._cancel, self._extend, self._interrupt):
            try:
                action(now)
            except LcmError as error:
                logger.info("demo_action_rejected", extra={"action": action.__name__, "error": error.message})

    def _request(self, now: datetime) -> None:
        missing = TARGET_SESSIONS - demo_sessions().filter(status__in=ACTIVE).count()
        for _ in range(min(missing, MAX_REQUESTS_PER_STEP)):
            request_session(self._rng, now=now)

    def _cancel(self, now: datetime) -> None:
        session = self._some_running(CANCEL_PROBABILITY)
        if session:
            cancel_session(session=session, reason="The group was done early", actor=DEMO, now=now)

    def _extend(self, now: datetime) -> None:
        session = self._some_running(EXTEND_PROBABILITY)
        if session and session.ends_at > now:
            later = session.ends_at + timedelta(minutes=5)
            extend_session(
                session=session, ends_at=later, reason="The group needs longer", actor=DEMO, now=now
            )

    def _interrupt(self, now: datetime) -> None:
        """Send a spot worker an interruption notice."""
        if self._rng.random() >= INTERRUPT_PROBABILITY:
            return
        spots = SimulatedInstance.objects.filter(
            pool__in=POOLS, market="spot", ended_at=None, interrupted_at=None
        )
        instance = self._rng.choice(list(spots)) if spots else None
        pool = Pool.objects.filter(name=instance.pool).first() if instance else None
        serving = pool and pool.slots.filter(state=SlotState.READY).count() > 1
        runtime = runtime_for(pool) if pool and serving else None
        if instance and isinstance(runtime, SimulatedRuntime):
            runtime.interrupt(instance.id)

    def _some_running(self, probability: float) -> LabletSession | None:
        if self._rng.random() >= probability:
            return None
        running = demo_sessions().select_related("definition").filter(status=SessionStatus.RUNNING)
        rows = list(running.order_by("pk")[:50])
        return self._rng.choice(rows) if rows else None


def demo_sessions() -> QuerySet[LabletSession]:
    """Return the sessions of demo students in the demo's pools. Other sessions belong to real users."""
    return LabletSession.objects.filter(owner__username__in=STUDENTS, pool__in=POOLS)


def request_session(rng: Random, *, now: datetime) -> LabletSession | None:
    """Request a session of a few minutes for a random demo student and definition."""
    definitions = LabletDefinition.objects.filter(
        name__in=DEFINITIONS, version=VERSION, status=DefinitionStatus.ACTIVE, pool__in=POOLS
    )
    memberships = Membership.objects.filter(
        user__username__in=STUDENTS, user__is_active=True, project__name__in=PROJECTS
    )
    labs = list(definitions.order_by("name"))
    students = list(memberships.select_related("user", "project").order_by("user__username", "project__name"))
    if not labs or not students:
        return None
    student = rng.choice(students)
    return create_session(
        definition=rng.choice(labs),
        owner=student.user,
        project=student.project,
        starts_at=now,
        ends_at=now + timedelta(minutes=rng.uniform(*SESSION_MINUTES)),
        priority=rng.choice((Priority.NORMAL,) * 4 + (Priority.HIGH, Priority.LOW)),
        actor=SYSTEM,
        now=now,
    )
