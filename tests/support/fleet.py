"""One pool with a manual clock and a fake cloud."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from lcm.domain.actors import SYSTEM
from lcm.models import LabletSession
from scheduling.capacity.launcher import perform_launch
from scheduling.capacity.reconciler import ReconcileRun, reconcile_pool
from scheduling.capacity.runtimes.base import InstanceState
from scheduling.capacity.steps.context import TickContext
from scheduling.capacity.steps.launch import begin_launches_on
from scheduling.capacity.tick import scheduling_tick
from scheduling.models import AttemptOutcome, LaunchAttempt, Phase, Pool, Reservation, Slot, SlotState
from scheduling.placement.framework.configuration import read_configuration
from scheduling.placement.framework.cycle import Verdict, VerdictOutcome
from scheduling.placement.framework.model import JobPart
from scheduling.selectors.launchable_slots import ANY_LAUNCH
from scheduling.selectors.snapshots import snapshot_of
from scheduling.services.assignment import assign_slots
from scheduling.services.reservations import create_reservation
from tests.support.fake_runtime import Clock, FakeRuntime, NoMetrics

S = SlotState
# Transitions after BOOTING that lead to each state.
TRANSITIONS_TO: dict[SlotState, tuple[SlotState, ...]] = {
    S.EMPTY: (),
    S.LAUNCHING: (),
    S.BOOTING: (),
    S.BINDING: (S.BINDING,),
    S.READY: (S.BINDING, S.READY),
    S.DRAINING: (S.BINDING, S.READY, S.DRAINING),
    S.TERMINATING: (S.BINDING, S.READY, S.TERMINATING),
    S.ERROR: (S.BINDING, S.READY, S.TERMINATING, S.ERROR),
}


def begin_launch(slot: Slot, *, now: datetime) -> LaunchAttempt | None:
    """Move a slot EMPTY → LAUNCHING and open its attempt; None if another process was first."""
    return next(iter(begin_launches_on([(slot, ANY_LAUNCH)], now=now)), None)


@dataclass
class Fleet:
    """A pool whose ticks, launches and reconciliation a test runs step by step."""

    pool: Pool
    clock: Clock
    runtime: FakeRuntime

    def reload_pool(self) -> Pool:
        """Read the pool from the database again."""
        self.pool = Pool.objects.get(pk=self.pool.pk)
        return self.pool

    def tick(self) -> TickContext:
        report = scheduling_tick(self.reload_pool(), self.runtime, self.clock, NoMetrics())
        assert report is not None
        return report

    def tick_without_errors(self) -> TickContext:
        """Run a tick and check that no step failed."""
        report = self.tick()
        assert report.errors == {}
        return report

    def context(self) -> TickContext:
        return TickContext(self.reload_pool(), self.runtime, self.clock(), is_lease_held=lambda: True)

    def launch(self) -> None:
        """Run the open launch attempts, as the tasks do."""
        for attempt in self.open_attempts():
            perform_launch(attempt.pk, self.runtime, self.clock)

    def reconcile(self) -> ReconcileRun:
        result = reconcile_pool(self.reload_pool(), self.runtime, self.clock)
        assert result is not None
        return result

    def round(self, seconds: float = 60) -> TickContext:
        """Run a tick, its launches and the reconciler, then advance the clock."""
        report = self.tick()
        self.launch()
        self.reconcile()
        self.clock.advance(seconds=seconds)
        return report

    def open_attempts(self) -> list[LaunchAttempt]:
        found = LaunchAttempt.objects.filter(slot__pool=self.pool, outcome=AttemptOutcome.OPEN)
        return list(found.order_by("slot__number"))

    def slots(self, *states: SlotState) -> list[Slot]:
        rows = Slot.objects.select_related("pool").filter(pool=self.pool).order_by("number")
        return list(rows.filter(state__in=states) if states else rows)

    def states(self) -> list[str]:
        return [slot.state for slot in self.slots()]

    def attempts(self) -> list[tuple[str, str]]:
        """Return the outcome and category of every launch attempt, oldest first."""
        rows = LaunchAttempt.objects.filter(slot__pool=self.pool).order_by("requested_at", "slot__number")
        return list(rows.values_list("outcome", "category"))

    def slot(self, state: SlotState = S.READY, **fields: Any) -> Slot:
        """Create a slot in a state by its transitions; with an instance unless EMPTY or LAUNCHING."""
        numbers = Slot.objects.filter(pool=self.pool).count()
        pool = self.reload_pool()
        slot = Slot.objects.create(
            pool=pool,
            number=numbers + 1,
            max_leases=pool.max_leases,
            cpu_cores=pool.cpu_cores,
            memory_gb=pool.memory_gb,
            storage_gb=pool.storage_gb,
            gpu=pool.gpu,
            last_state_change=self.clock(),
        )
        if state == S.LAUNCHING:
            assert begin_launch(slot, now=self.clock())
        elif state != S.EMPTY:
            self._move_to(slot, state)
        if fields:
            Slot.objects.filter(pk=slot.pk).update(**fields)
        slot.refresh_from_db()
        return slot

    def reservation(self, cpu: float = 1, **fields: Any) -> Reservation:
        """Create a reservation without a session."""
        values = {"holder": "a class", "resources": {"cpu_cores": Decimal(str(cpu))}, "pool": self.pool.name}
        return create_reservation(**{**values, **fields}, actor=SYSTEM, now=self.clock())

    def assign(self, holder: Reservation | LabletSession, slot: Slot) -> Reservation:
        """Assign a reservation, or a session's reservation, to this slot."""
        reservation = holder if isinstance(holder, Reservation) else active_reservation(holder)
        assert assign_slots(
            self.reload_pool(), [placement_verdict(self.reload_pool(), reservation, slot)], now=self.clock()
        )
        holder.refresh_from_db()
        slot.refresh_from_db()
        reservation.refresh_from_db()
        return reservation

    def _move_to(self, slot: Slot, state: SlotState) -> None:
        from scheduling.services.slots import move_slot

        attempt = begin_launch(slot, now=self.clock())
        assert attempt is not None
        error, self.runtime.error = self.runtime.error, None
        perform_launch(attempt.pk, self.runtime, self.clock)
        self.runtime.error = error
        slot = Slot.objects.select_related("pool").get(pk=slot.pk)
        if state != S.BOOTING:
            self.runtime.set_state(slot.instance_id, InstanceState.RUNNING)
        for to in TRANSITIONS_TO[state]:
            extra = {"idle_since": self.clock()} if to == S.READY else {}
            if to == S.ERROR:
                extra = {"state_deadline": self.clock() + timedelta(minutes=5)}
            assert move_slot(slot=slot, to=to, now=self.clock(), **extra)


def active_reservation(session: LabletSession) -> Reservation:
    """Return the PENDING or READY reservation of a session."""
    return Reservation.objects.get(session=session, phase__in=(Phase.PENDING, Phase.READY))


def requested_offerings(fleet: Fleet) -> list[str]:
    """Return the offerings that were requested."""
    return [name for call, name in fleet.runtime.calls if call == "launch"]


def phases(rows: Iterable[Reservation]) -> list[str]:
    """Return the current phases of these reservations from the database, in the same order."""
    found = dict(Reservation.objects.filter(pk__in=[row.pk for row in rows]).values_list("pk", "phase"))
    return [found[row.pk] for row in rows]


def placement_verdict(pool: Pool, reservation: Reservation, slot: Slot) -> Verdict:
    """Return the decision of a cycle that places the reservation on this slot."""
    snapshot = snapshot_of(
        pool, read_configuration(""), now=reservation.created_at, limit=1, only=reservation.pk
    )
    (job,) = snapshot.jobs
    return Verdict(job, 1, VerdictOutcome.PLACED, (JobPart(slot.pk.hex, (job.whole,)),))
