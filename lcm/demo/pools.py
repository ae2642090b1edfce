"""Workers of the demo: two pools whose simulated workers are already running."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any

from lcm.domain.actors import SYSTEM
from lcm.models import LabletSession
from scheduling.capacity.offerings import offering_statuses
from scheduling.capacity.runtimes.base import Market
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.models import (
    AttemptOutcome,
    LaunchAttempt,
    Phase,
    Pool,
    SimulatedInstance,
    Slot,
    SlotState,
    SpotPolicy,
)
from scheduling.placement.framework.configuration import read_configuration
from scheduling.placement.framework.cycle import run_cycle
from scheduling.selectors.snapshots import snapshot_of
from scheduling.services.assignment import assign_slots
from scheduling.services.pools import create_pool

WORKER_SIZE: dict[str, Any] = {
    "cpu_cores": 48,
    "memory_gb": 192,
    "storage_gb": 2000,
    "max_leases": 6,
    "idle_seconds": 1800,
}
# Age of the pools
POOLS_CREATED_AGO = timedelta(days=45)
# A few labs are edited without LCM's knowledge, and in some a node overuses its resources.
SIMULATOR_OPTIONS: dict[str, Any] = {"lab_boot_seconds": 8, "edit_percent": 8, "overuse_percent": 6}


def make_pools(*, now: datetime, live: bool) -> None:
    """Create a pool with a fixed minimum and a spot pool that scales up and down."""
    europe = create_pool(
        name="cml-eu",
        description="Evening courses and workshops",
        min_slots=2,
        warm_slots=1,
        max_slots=8,
        runtime_settings=SIMULATOR_OPTIONS if live else {},
        actor=SYSTEM,
        now=now - POOLS_CREATED_AGO,
        **WORKER_SIZE,
    )
    america = create_pool(
        name="cml-us",
        description="Low-cost capacity that can be interrupted",
        warm_slots=1,
        max_slots=6,
        spot_policy=SpotPolicy.FALLBACK,
        runtime_settings={
            "spot": True,
            "refuse_percent": 20,
            "boot_seconds": 15,
            **(SIMULATOR_OPTIONS if live else {}),
        },
        actor=SYSTEM,
        now=now - POOLS_CREATED_AGO,
        **WORKER_SIZE,
    )
    for pool, count, days in ((europe, 5, 9), (america, 4, 8)):
        for number in range(1, count + 1):
            _running_slot(pool, number, at=now - timedelta(days=days, minutes=number), now=now)


def place_session(session: LabletSession, *, now: datetime) -> bool:
    """Place a session as the scheduler would have at that time."""
    pool = Pool.objects.get(name=session.pool)
    reservation_id = session.reservations.filter(phase=Phase.PENDING).values_list("pk", flat=True).first()
    if reservation_id is None:
        return False
    configuration = read_configuration("")
    cycle = run_cycle(snapshot_of(pool, configuration, now=now, limit=1, only=reservation_id), configuration)
    placed = bool(assign_slots(pool, cycle.placed, now=now))
    session.refresh_from_db()
    return placed


def _running_slot(pool: Pool, number: int, *, at: datetime, now: datetime) -> None:
    instance_id, token = f"sim-{uuid.uuid4().hex[:12]}", uuid.uuid4().hex
    offering = offering_statuses(pool, runtime_for(pool), now)[0].offering
    slot = Slot.objects.create(
        pool=pool,
        number=number,
        state=SlotState.READY,
        instance_id=instance_id,
        endpoint=f"https://{instance_id}.sim",
        offering=offering.name,
        is_spot=offering.market == Market.SPOT,
        max_leases=pool.max_leases,
        **pool.amounts.as_dict(),
        created_at=at,
        last_state_change=at,
        last_heartbeat=now,
        idle_since=now,
    )
    SimulatedInstance.objects.create(
        id=instance_id,
        pool=pool.name,
        slot_id=str(slot.pk),
        token=token,
        market=offering.market,
        launched_at=at,
    )
    LaunchAttempt.objects.create(
        slot=slot,
        token=token,
        offering=offering.name,
        requested_at=at,
        due_at=at,
        finished_at=at,
        outcome=AttemptOutcome.LAUNCHED,
        instance_id=instance_id,
    )
