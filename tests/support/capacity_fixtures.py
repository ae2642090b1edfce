"""Fixtures for a pool whose ticks and launches a test runs step by step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletDefinition, LabletSession, Project, User
from lcm.services.session_transitions import transition_session
from scheduling.capacity.runtimes.base import Market, Offering
from scheduling.models import Pool, Slot, SpotPolicy
from scheduling.services.pools import create_pool
from tests.support.factories import WAY_TO, make_definition, make_session
from tests.support.fake_runtime import START, Clock, FakeRuntime
from tests.support.fleet import Fleet
from tests.support.scheduler_setup import SessionRequester


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
    """cml-eu: up to four slots of 16 cores, 64 GB and 500 GB with ten leases each; no minimum."""
    return create_pool(name="cml-eu", actor=SYSTEM)


@pytest.fixture
def fleet(pool: Pool, clock: Clock, runtime: FakeRuntime) -> Fleet:
    return Fleet(pool, clock, runtime)


@pytest.fixture
def configure_pool(fleet: Fleet) -> Callable[..., Fleet]:
    """`configure_pool(max_slots=2, …)`: change these fields of the pool and return the fleet."""

    def configure(**fields: Any) -> Fleet:
        Pool.objects.filter(pk=fleet.pool.pk).update(**fields)
        fleet.reload_pool()
        return fleet

    return configure


@pytest.fixture
def mixed_fleet(configure_pool: Callable[..., Fleet]) -> Fleet:
    """A pool that uses spot slots with on-demand fallback; both offerings are available."""
    fleet = configure_pool(spot_policy=SpotPolicy.FALLBACK, runtime_settings={"spot": True})
    fleet.runtime.available_offerings = [Offering("sim-large-spot", Market.SPOT), Offering("sim-large")]
    return fleet


@pytest.fixture
def preemptible_requester(mixed_fleet: Fleet) -> SessionRequester:
    """A requester of preemptible sessions that fill a slot each."""
    size = {"cpu_cores": Decimal(16), "memory_gb": Decimal(4), "storage_gb": Decimal(8), "gpu": Decimal(0)}
    definition = make_definition("loose", pool="cml-eu", preemptible=True, requirements=size)
    return SessionRequester(mixed_fleet, "loose", definition)


@pytest.fixture
def new_session(
    pool: Pool, active_definition: LabletDefinition, project: Project, operator: User, clock: Clock
):
    """`new_session()`: create a session that waits in cml-eu: 4 cores, 3.5 GB, 7 GB, two ports."""

    def make(**fields: Any) -> LabletSession:
        return make_session(active_definition, project, operator, now=clock(), **fields)

    return make


@pytest.fixture
def session_on(fleet: Fleet, new_session: Callable[..., LabletSession]) -> Callable[..., LabletSession]:
    """`session_on(slot, status)`: create a session on a READY slot in this status."""

    def make(slot: Slot, status: SessionStatus = SessionStatus.SCHEDULED, **fields: Any) -> LabletSession:
        session = new_session(**fields)
        fleet.assign(session, slot)
        for step in WAY_TO[status][1:]:
            transition_session(session=session, to=step, actor=SYSTEM, now=fleet.clock())
        return session

    return make
