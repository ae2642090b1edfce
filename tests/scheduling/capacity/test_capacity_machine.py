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
from lcm.services.sessions import cancel_session, transition_session
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
from scheduling.services.slots import cordon_slot, drain_slot, record_interruption, retry_slot, terminate_slot
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
which = st.integers(0, 11)
Row = TypeVar("Row")


def pick(rows: Sequence[Row], number: int) -> Row:
    return rows[number % len(rows)]


@contextmanager
def ids_in_order() -> Iterator[None]:
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
        self.undo = ExitStack()
        self.undo.enter_context(ids_in_order())
        self.undo.enter_context(transaction.atomic())

    @initialize(
        floor=st.sampled_from([(0, 0), (1, 0), (0, 1), (1, 2), (2, 1), (3, 0), (0, 3)]),
        policy=st.sampled_from([SpotPolicy.NEVER, SpotPolicy.FALLBACK]),
    )
    def begin(self, floor: tuple[int, int], policy: str) -> None:
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
    def claim(self, cpu: int, ttl: int) -> None:
        self.fleet.reservation(cpu, ttl=ttl)

    @rule(preemptible=st.booleans())
    def ask_for_a_session(self, preemptible: bool) -> None:
        make_session(self.labs[preemptible], self.project, self.owner, now=self.clock())

    @precondition(lambda self: self.bare())
    @rule(number=which)
    def renew(self, number: int) -> None:
        with suppress(StateConflict):
            renew_reservation(reservation=pick(self.bare(), number), now=self.clock())

    @precondition(lambda self: self.bare())
    @rule(number=which)
    def release(self, number: int) -> None:
        release_reservation(reservation=pick(self.bare(), number), actor=SYSTEM, now=self.clock())

    @precondition(lambda self: self.sessions())
    @rule(number=which)
    def cancel(self, number: int) -> None:
        with suppress(StateConflict):
            self.call_off(pick(self.sessions(), number))

    @precondition(lambda self: self.sessions())
    @rule(number=which)
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
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)
        if seconds > CALL_LEASE.total_seconds():
            expire_leases()

    @rule()
    def tick(self) -> None:
        self.fleet.tick_without_errors()

    @rule()
    def two_ticks_at_once(self) -> None:
        """The second tick takes the lease between the first one's plan and its commit."""
        real = place.assign_slots

        def after_the_other(*arguments: Any, **fields: Any) -> int:
            place.assign_slots = real
            expire_leases()
            self.fleet.tick_without_errors()
            return real(*arguments, **fields)

        place.assign_slots = after_the_other
        try:
            self.fleet.tick()
        finally:
            place.assign_slots = real

    @rule()
    def reconcile(self) -> None:
        assert self.fleet.reconcile().errors == []
        old = self.clock() - ORPHAN_GRACE
        assert not [each for each in self.unknown() if each.launched_at and each.launched_at <= old]

    @rule()
    def a_quiet_minute(self) -> None:
        self.round(60)

    # --- launches: in any order, with any result ------------------------------------------------------

    @precondition(lambda self: self.fleet.open_attempts())
    @rule(number=which, result=st.sampled_from(sorted(ERRORS)))
    def launch(self, number: int, result: str) -> None:
        self.runtime.error = ERRORS[result]
        perform_launch(pick(self.fleet.open_attempts(), number).pk, self.runtime, self.clock)
        self.runtime.error = None

    @precondition(lambda self: self.fleet.open_attempts())
    @rule(number=which)
    def launch_and_lose_the_answer(self, number: int) -> None:
        self.runtime.loses_responses = True
        perform_launch(pick(self.fleet.open_attempts(), number).pk, self.runtime, self.clock)
        self.runtime.loses_responses = False

    @precondition(lambda self: self.fleet.open_attempts())
    @rule(number=which, called=st.booleans())
    def crash_between_intent_and_record(self, number: int, called: bool) -> None:
        """The process dies before or after its call; its lease expires when time passes."""
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
    @rule(number=which)
    def vanish(self, number: int) -> None:
        self.runtime.vanish(pick(self.runtime.alive, number).id)

    @precondition(lambda self: self.runtime.alive)
    @rule(number=which)
    def switched_off(self, number: int) -> None:
        self.runtime.set_state(pick(self.runtime.alive, number).id, InstanceState.STOPPED)

    @precondition(lambda self: self.fleet.slots(*LIVE))
    @rule(number=which)
    def interrupt(self, number: int) -> None:
        slot = pick(self.fleet.slots(*LIVE), number)
        record_interruption(slot=slot, deadline=self.clock() + timedelta(minutes=2), now=self.clock())

    @precondition(lambda self: self.fleet.slots(SlotState.READY))
    @rule(number=which, port=st.integers(2000, 2005))
    def leak(self, number: int, port: int) -> None:
        """The controller finds an unexpected listener on a worker's port."""
        slot = pick(self.fleet.slots(SlotState.READY), number)
        PortAllocation.objects.get_or_create(slot=slot, port=port, defaults={"name": "?", "leaked": True})

    @rule()
    def look_without_seeing(self) -> None:
        """Reconcile while the provider cannot list instances."""
        self.runtime.describe_error = RuntimeFailure("no route to host")
        self.fleet.reconcile()
        self.runtime.describe_error = None

    @precondition(lambda self: self.fleet.slots())
    @rule(number=which, action=st.sampled_from(["drain", "terminate", "cordon", "uncordon", "retry"]))
    def operate(self, number: int, action: str) -> None:
        ask = {
            "slot": pick(self.fleet.slots(), number),
            "reason": "why not",
            "actor": SYSTEM,
            "now": self.clock(),
        }
        with suppress(StateConflict):
            match action:
                case "drain":
                    drain_slot(**ask)
                case "terminate":
                    terminate_slot(**ask)
                case "retry":
                    retry_slot(**ask)
                case _:
                    cordon_slot(cordoned=action == "cordon", **ask)

    # --- invariants -----------------------------------------------------------------------------------

    @invariant()
    def promises_are_kept(self) -> None:
        if hasattr(self, "fleet"):
            check_rows(self.fleet.reload_pool())
            idle = Slot.objects.filter(state=SlotState.DRAINING, reason="idle", lease_count__gt=0)
            assert not idle.exists(), "a slot with a lease was drained by idleness"
            assert all(each.launched_at for each in self.unknown())

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None and hasattr(self, "fleet"):
                self.end_demand()
                self.settle()
                self.stay()
        finally:
            transaction.set_rollback(True)
            self.undo.close()

    def end_demand(self) -> None:
        for session in self.sessions():
            if session.status in (SessionStatus.PENDING, SessionStatus.SCHEDULED):
                self.call_off(session)
                continue
            if session.status != SessionStatus.STOPPING:
                self.call_off(session)
            transition_session(session=session, to=SessionStatus.TERMINATED, actor=SYSTEM, now=self.clock())
        for claim in self.bare():
            release_reservation(reservation=claim, actor=SYSTEM, now=self.clock())
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

    def stay(self) -> None:
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

    def bare(self) -> list[Reservation]:
        return list(
            Reservation.objects.filter(session=None, phase__in=ACTIVE_PHASES).order_by("created_at", "pk")
        )

    def sessions(self) -> list[LabletSession]:
        return list(LabletSession.objects.exclude(status__in=FINAL).order_by("created_at", "pk"))

    def unknown(self) -> list[Instance]:
        """Running instances without a slot or an open attempt: orphans."""
        owned = {slot.instance_id for slot in self.fleet.slots()}
        awaited = {attempt.token for attempt in self.fleet.open_attempts()}
        return [each for each in self.runtime.alive if each.id not in owned and each.token not in awaited]

    def call_off(self, session: LabletSession) -> None:
        cancel_session(session=session, actor=SYSTEM, now=self.clock(), reason="no more")


def test_whatever_happens_a_pool_keeps_its_promises_and_settles():
    examples = 15 if connection.vendor == "postgresql" else 5
    plan = settings(max_examples=examples, stateful_step_count=20, deadline=None, print_blob=True)
    run_state_machine_as_test(CapacityMachine, settings=plan)


def test_every_reservation_of_a_busy_day_ends(db):
    """A fixed sequence of all rules, so that every run exercises each of them."""
    machine = CapacityMachine()
    machine.begin((1, 1), SpotPolicy.FALLBACK)
    for turn in range(8):
        machine.claim(3, 400)
        machine.ask_for_a_session(turn % 2 == 0)
        machine.two_ticks_at_once()
        machine.promises_are_kept()
        if machine.fleet.open_attempts():
            machine.crash_between_intent_and_record(turn, called=turn % 2 == 0)
        machine.a_quiet_minute()
        machine.step(turn)
        machine.promises_are_kept()
    assert Reservation.objects.filter(phase=Phase.READY).exists()
    machine.teardown()
