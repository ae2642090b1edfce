"""A pool that is driven by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from lcm.actors import SYSTEM
from lcm.lifecycle import SessionStatus
from lcm.models import LabletDefinition, LabletSession, Project, User
from lcm.services.sessions import transition_session
from scheduling.models import Pool, Slot
from scheduling.services.pools import create_pool
from tests.factories import WAY_TO, make_session
from tests.scheduling.fakes import START, Clock, FakeRuntime
from tests.scheduling.fleet import Fleet


@pytest.fixture
def now() -> datetime:
    return START


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def runtime(clock: Clock) -> FakeRuntime:
    return FakeRuntime(clock)


@pytest.fixture
def pool(db: None) -> Pool:
    """cml-eu: up to four slots of 16 cores, 64 GB and 500 GB, ten leases each; none kept."""
    return create_pool(name="cml-eu", actor=SYSTEM)


@pytest.fixture
def fleet(pool: Pool, clock: Clock, runtime: FakeRuntime) -> Fleet:
    return Fleet(pool, clock, runtime)


@pytest.fixture
def tuned(fleet: Fleet) -> Callable[..., Fleet]:
    """`tuned(max_slots=2, …)`: the fleet with another policy, and nothing else changed."""

    def tune(**fields: Any) -> Fleet:
        Pool.objects.filter(pk=fleet.pool.pk).update(**fields)
        fleet.fresh()
        return fleet

    return tune


@pytest.fixture
def lab(pool: Pool, active_definition: LabletDefinition, project: Project, operator: User, clock: Clock):
    """`lab()`: a session that waits in cml-eu: 4 cores, 3.5 GB, 7 GB, two ports."""

    def make(**fields: Any) -> LabletSession:
        return make_session(active_definition, project, operator, now=clock(), **fields)

    return make


@pytest.fixture
def lab_on(fleet: Fleet, lab: Callable[..., LabletSession]) -> Callable[..., LabletSession]:
    """`lab_on(slot, status)`: a session on a READY slot that went on to this status."""

    def make(slot: Slot, status: SessionStatus = SessionStatus.SCHEDULED, **fields: Any) -> LabletSession:
        session = lab(**fields)
        fleet.put(session, slot)
        for step in WAY_TO[status][1:]:
            transition_session(session=session, to=step, actor=SYSTEM, now=fleet.clock())
        return session

    return make
