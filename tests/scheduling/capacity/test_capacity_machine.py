"""A state machine: any sequence of requests, launches, failures and crashes keeps the invariants of a pool.

Hypothesis chooses the steps. After every step the invariants hold. When demand ends and time passes, the pool
settles at its minimum and stays there, without unknown instances.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.models import UUIDField
from django.utils import timezone
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import FINAL, HAPPY_PATH, SessionStatus
from lcm.models import LabletSession
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_session
from scheduling.capacity.launcher import CALL_LEASE, perform_launch
from scheduling.capacity.runtimes.base import (
    ORPHAN_GRACE,
    CapacityRefused,
    Instance,
    InstanceState,
    LaunchRequest,
    Market,
    Misconfigured,
    Offering,
    QuotaExceeded,
    RuntimeFailure,
    Throttled,
)
from scheduling.capacity.steps import place
from scheduling.models import (
    ACTIVE_PHASES,
    LIVE,
    LaunchAttempt,
    Phase,
    PortAllocation,
    ProcessLease,
    Reservation,
    Slot,
    SlotState,
    SpotPolicy,
)
from scheduling.services.pools import create_pool, update_pool
from scheduling.services.reservations import release_reservation, renew_reservation
from scheduling.services.slots import (
    cancel_drain,
    cordon_slot,
    drain_slot,
    record_interruption,
    retry_slot,
    terminate_slot,
)
from tests.scheduling.capacity.invariants import check_rows
from tests.support.factories import make_definition, make_person, make_project, make_session
from tests.support.fake_runtime import Clock, FakeRuntime
from tests.support.fleet import Fleet

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def expire_leases() -> None:
    """Let the leases expire in the database as well."""
    ProcessLease.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


ERRORS: dict[str, Exception | None] = {
    "launched": None,
    "throttled": Throttled("slow down"),
    "refused": CapacityRefused("none left"),
    "quota": QuotaExceeded("no more"),
    "configuration": Misconfigured("no such image"),
    "unknown": RuntimeFailure("strange"),
    "a bug": ZeroDivisionError("oh"),
}
ACTIONS = ["drain", "cancel drain", "terminate", "cordon", "uncordon", "retry"]
row_numbers = st.integers(0, 11)
Row = TypeVar("Row")


def pick(rows: Sequence[Row], number: int) -> Row:
    return rows[number % len(rows)]


@contextmanager
def sequential_ids() -> Iterator[None]:
    """Sequential ids: ties are broken by id, so random ids would make examples irreproducible."""
    numbers = count(1)
    keys = [model._meta.pk for model in apps.get_models() if isinstance(model._meta.pk, UUIDField)]
    for key in keys:
        vars(key)["_get_default"] = lambda: UUID(int=next(numbers))
    try:
        yield
    finally:
        for key in keys:
            del vars(key)["_get_default"]


class CapacityMachine(RuleBasedStateMachine):
    """A pool of three slots for two labs each, in a transaction that is rolled back after each example."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.cleanup.enter_context(sequential_ids())
        self.cleanup.enter_context(transaction.atomic())

    @initialize(
        floor=st.sampled_from([(0, 0), (1, 0), (0, 1), (1, 2), (2, 1), (3, 0), (0, 3)]),
        policy=st.sampled_from([SpotPolicy.NEVER, SpotPolicy.FALLBACK]),
    )
    def set_up_pool(self, floor: tuple[int, int], policy: str) -> None:
        minimum, warm = floor
        pool = create_pool(
            name="cml-eu",
            actor=SYSTEM,
            min_slots=minimum,
            warm_slots=warm,
            max_slots=3,
            max_leases=3,
            cpu_cores=9,
            first_port=2000,
            last_port=2005,
            idle_seconds=300,
            spot_policy=policy,
            runtime_settings={"spot": True},
        )
        self.clock = Clock()
        self.runtime = FakeRuntime(self.clock, Offering("large-spot", Market.SPOT), Offering("large"))
        self.fleet = Fleet(pool, self.clock, self.runtime)
        self.owner = make_person("otto")
        self.project = make_project("academy", "ccna", self.owner)
        self.labs = [
            make_definition(name, pool="cml-eu", preemptible=name == "practice", now=self.clock())
            for name in ("exam", "practice")
        ]

    # --- demand -----------------------------------------------------------------------------------

    @rule(cpu=st.sampled_from([1, 3, 9]), ttl=st.sampled_from([60, 400, 5000]))
    def create_reservation(self, cpu: int, ttl: int) -> None:
        self.fleet.reservation(cpu, ttl=ttl)

    @rule(preemptible=st.booleans())
    def request_session(self, preemptible: bool) -> None:
        make_session(self.labs[preemptible], self.project, self.owner, now=self.clock())

    @precondition(lambda self: self.bare_reservations())
    @rule(number=row_numbers)
    def renew(self, number: int) -> None:
        with suppress(StateConflict):
            renew_reservation(reservation=pick(self.bare_reservations(), number), now=self.clock())

    @precondition(lambda self: self.bare_reservations())
    @rule(number=row_numbers)
    def release(self, number: int) -> None:
        release_reservation(
            reservation=pick(self.bare_reservations(), number), actor=SYSTEM, now=self.clock()
        )

    @precondition(lambda self: self.sessions())
    @rule(number=row_numbers)
    def cancel(self, number: int) -> None:
        with suppress(StateConflict):
            self.end_session(pick(self.sessions(), number))

    @precondition(lambda self: self.sessions())
    @rule(number=row_numbers)
    def step(self, number: int) -> None:
        """Report a transition as the controller."""
        session = pick(self.sessions(), number)
        if session.status != SessionStatus.PENDING:
            to = HAPPY_PATH[HAPPY_PATH.index(SessionStatus(session.status)) + 1]
            transition_session(session=session, to=to, actor=SYSTEM, now=self.clock())

    # --- time and the tick --------------------------------------------------------------------------

    def round(self, seconds: float) -> None:
        self.fleet.round(seconds)
        expire_leases()

    @rule(seconds=st.sampled_from([1, 40, 130, 310, 700]))
    def advance_time(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)
        if seconds > CALL_LEASE.total_seconds():
            expire_leases()

    @rule()
    def tick(self) -> None:
        self.fleet.tick_without_errors()

    @rule()
    def run_concurrent_ticks(self) -> None:
        """The second tick takes the lease between the plan and the commit of the first."""
        real = place.assign_slots

        def run_second_tick_first(*arguments: Any, **fields: Any) -> int:
            place.assign_slots = real
            expire_leases()
            self.fleet.tick_without_errors()
            return real(*arguments, **fields)

        place.assign_slots = run_second_tick_first
        try:
            self.fleet.tick()
        finally:
            place.assign_slots = real

    @rule()
    def reconcile(self) -> None:
        assert self.fleet.reconcile().errors == []
        old = self.clock() - ORPHAN_GRACE
        assert not [each for each in self.orphans() if each.launched_at and each.launched_at <= old]

    @rule()
    def run_for_a_minute(self) -> None:
        self.round(60)

    # --- launches: in any order, with any result ------------------------------------------------------

    @precondition(lambda self: self.fleet.open_attempts())
    @rule(number=row_numbers, result=st.sampled_from(sorted(ERRORS)))
    def launch(self, number: int, result: str) -> None:
        self.runtime.error = ERRORS[result]
        perform_launch(pick(self.fleet.open_attempts(), number).pk, self.runtime, self.clock)
        self.runtime.error = None

    @precondition(lambda self: self.fleet.open_attempts())
    @rule(number=row_numbers)
    def launch_with_lost_response(self, number: int) -> None:
        self.runtime.loses_responses = True
        perform_launch(pick(self.fleet.open_attempts(), number).pk, self.runtime, self.clock)
        self.runtime.loses_responses = False

    @precondition(lambda self: self.fleet.open_attempts())
    @rule(number=row_numbers, called=st.booleans())
    def crash_between_intent_and_record(self, number: int, called: bool) -> None:
        """The process dies before or after its call; its lease expires later."""
        attempt = pick(self.fleet.open_attempts(), number)
        ProcessLease.objects.update_or_create(
            name=f"launch:{attempt.pk}",
            defaults={"holder": "dead", "expires_at": timezone.now() + timedelta(hours=1)},
        )
        if called:
            slot = str(attempt.slot_id)
            self.runtime.launch(LaunchRequest(attempt.token, slot, "cml-eu", Offering("large")))

    # --- provider and operators ----------------------------------------------------------------------

    @precondition(lambda self: self.runtime.alive)
    @rule(number=row_numbers)
    def vanish(self, number: int) -> None:
        self.runtime.vanish(pick(self.runtime.alive, number).id)

    @precondition(lambda self: self.runtime.alive)
    @rule(number=row_numbers)
    def stop_instance(self, number: int) -> None:
        self.runtime.set_state(pick(self.runtime.alive, number).id, InstanceState.STOPPED)

    @precondition(lambda self: self.fleet.slots(*LIVE))
    @rule(number=row_numbers)
    def interrupt(self, number: int) -> None:
        slot = pick(self.fleet.slots(*LIVE), number)
        record_interruption(slot=slot, deadline=self.clock() + timedelta(minutes=2), now=self.clock())

    @precondition(lambda self: self.fleet.slots(SlotState.READY))
    @rule(number=row_numbers, port=st.integers(2000, 2005))
    def leak(self, number: int, port: int) -> None:
        """The controller finds an unexpected listener on a worker's port."""
        slot = pick(self.fleet.slots(SlotState.READY), number)
        PortAllocation.objects.get_or_create(slot=slot, port=port, defaults={"name": "?", "leaked": True})

    @rule()
    def reconcile_without_listing(self) -> None:
        """Reconcile while the provider cannot list instances."""
        self.runtime.describe_error = RuntimeFailure("no route to host")
        self.fleet.reconcile()
        self.runtime.describe_error = None

    @precondition(lambda self: self.fleet.slots())
    @rule(number=row_numbers, action=st.sampled_from(ACTIONS))
    def operate(self, number: int, action: str) -> None:
        arguments = {
            "slot": pick(self.fleet.slots(), number),
            "reason": "why not",
            "actor": SYSTEM,
            "now": self.clock(),
        }
        with suppress(StateConflict):
            match action:
                case "drain":
                    drain_slot(**arguments)
                case "cancel drain":
                    cancel_drain(**arguments)
                case "terminate":
                    terminate_slot(**arguments)
                case "retry":
                    retry_slot(**arguments)
                case _:
                    cordon_slot(cordoned=action == "cordon", **arguments)

    # --- invariants -----------------------------------------------------------------------------------

    @invariant()
    def check_pool_invariants(self) -> None:
        if hasattr(self, "fleet"):
            check_rows(self.fleet.reload_pool())
            idle = Slot.objects.filter(state=SlotState.DRAINING, reason="idle", lease_count__gt=0)
            assert not idle.exists(), "a slot with a lease was drained by idleness"
            assert all(each.launched_at for each in self.orphans())

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None and hasattr(self, "fleet"):
                self.end_demand()
                self.settle()
                self.check_stays_settled()
        finally:
            transaction.set_rollback(True)
            self.cleanup.close()

    def end_demand(self) -> None:
        for session in self.sessions():
            if session.status in (SessionStatus.PENDING, SessionStatus.SCHEDULED):
                self.end_session(session)
                continue
            if session.status != SessionStatus.STOPPING:
                self.end_session(session)
            transition_session(session=session, to=SessionStatus.TERMINATED, actor=SYSTEM, now=self.clock())
        for reservation in self.bare_reservations():
            release_reservation(reservation=reservation, actor=SYSTEM, now=self.clock())
        for slot in self.fleet.slots(*LIVE):
            if slot.cordoned:
                cordon_slot(slot=slot, cordoned=False, reason="over", actor=SYSTEM, now=self.clock())
        if self.fleet.reload_pool().stopped_reason:
            update_pool(pool=self.fleet.pool, actor=SYSTEM, description="mended")

    def settle(self) -> None:
        for _ in range(40):
            self.round(120)
            check_rows(self.fleet.reload_pool())
            if self.is_settled():
                return
        raise AssertionError(f"not settled: {self.fleet.states()}, alive {self.runtime.alive}")

    def check_stays_settled(self) -> None:
        launches = self.runtime.count("launch")
        for _ in range(10):
            self.round(120)
            assert self.is_settled(), self.fleet.states()
        assert self.runtime.count("launch") == launches
        assert not Reservation.objects.filter(phase__in=ACTIVE_PHASES).exists()
        assert not LaunchAttempt.objects.filter(outcome="open").exists()

    def is_settled(self) -> bool:
        slots = self.fleet.slots()
        ready = [slot for slot in slots if slot.state == SlotState.READY]
        rest = {slot.state for slot in slots} - {SlotState.READY, SlotState.EMPTY}
        return not rest and len(ready) == len(self.runtime.alive) == self.fleet.reload_pool().floor

    # --- queries --------------------------------------------------------------------------------------

    def bare_reservations(self) -> list[Reservation]:
        return list(
            Reservation.objects.filter(session=None, phase__in=ACTIVE_PHASES).order_by("created_at", "pk")
        )

    def sessions(self) -> list[LabletSession]:
        return list(LabletSession.objects.exclude(status__in=FINAL).order_by("created_at", "pk"))

    def orphans(self) -> list[Instance]:
        """Running instances without a slot or an open attempt: orphans."""
        owned = {slot.instance_id for slot in self.fleet.slots()}
        awaited = {attempt.token for attempt in self.fleet.open_attempts()}
        return [each for each in self.runtime.alive if each.id not in owned and each.token not in awaited]

    def end_session(self, session: LabletSession) -> None:
        cancel_session(session=session, actor=SYSTEM, now=self.clock(), reason="no more")


def test_any_sequence_of_events_keeps_the_invariants_and_settles():
    examples = 15 if connection.vendor == "postgresql" else 5
    plan = settings(max_examples=examples, stateful_step_count=20, deadline=None, print_blob=True)
    run_state_machine_as_test(CapacityMachine, settings=plan)


def test_a_fixed_sequence_of_all_rules_ends_every_reservation(db):
    """A fixed sequence of all rules, so that every run exercises each of them."""
    machine = CapacityMachine()
    machine.set_up_pool((1, 1), SpotPolicy.FALLBACK)
    for turn in range(8):
        machine.create_reservation(3, 400)
        machine.request_session(turn % 2 == 0)
        machine.run_concurrent_ticks()
        machine.check_pool_invariants()
        if machine.fleet.open_attempts():
            machine.crash_between_intent_and_record(turn, called=turn % 2 == 0)
        machine.run_for_a_minute()
        machine.step(turn)
        machine.check_pool_invariants()
    assert Reservation.objects.filter(phase=Phase.READY).exists()
    machine.teardown()
