"""Steps 4 and 5: slots for unmet demand, the minimum, and warm slots."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from scheduling.capacity.steps.launch import keep_minimum, launch_for_demand
from scheduling.capacity.steps.place import place_waiting
from scheduling.models import IN_FLIGHT, LaunchAttempt, Slot, SlotState
from scheduling.services.pools import update_pool
from scheduling.services.slots import cordon_slot, record_interruption
from tests.support.fleet import begin_launch

S = SlotState


def count_launches(fleet, *steps):
    """Return the number of launches that these steps begin after placement."""
    tick = fleet.context()
    for step in (place_waiting, *steps):
        step(tick)
    assert len(tick.attempts) == LaunchAttempt.objects.filter(pk__in=tick.attempts, outcome="open").count()
    return len(tick.attempts)


@pytest.mark.parametrize(
    ("cpu_requests", "in_flight", "expected"),
    [
        ([], [], 0),
        ([1], [], 1),
        ([8, 8], [], 1),
        ([9, 9], [], 2),
        ([9, 9, 9, 9, 9, 9], [], 4),
        ([9, 9], [S.LAUNCHING], 1),
        ([9, 9], [S.BOOTING, S.BINDING], 0),
        ([9], [S.BOOTING, S.BINDING], 0),
        ([9, 9, 9], [S.TERMINATING, S.TERMINATING], 2),
        ([9, 9, 9], [S.DRAINING], 3),
        ([9, 9, 9], [S.ERROR, S.ERROR], 2),
        ([9], [S.EMPTY], 1),
    ],
    ids=[
        "no demand",
        "one reservation",
        "two on one slot",
        "two on two slots",
        "the maximum",
        "one incoming",
        "enough incoming",
        "more than enough incoming",
        "terminating slots count against the maximum",
        "draining slots do not count",
        "slots in error count against the maximum",
        "an empty slot is reused",
    ],
)
def test_slots_are_launched_for_demand(fleet, cpu_requests, in_flight, expected):
    for state in in_flight:
        fleet.slot(state)
    for cpu in cpu_requests:
        fleet.reservation(cpu)
    assert count_launches(fleet, launch_for_demand) == expected
    assert Slot.objects.filter(pool=fleet.pool).count() <= fleet.pool.max_slots


@pytest.mark.parametrize("step", [launch_for_demand, keep_minimum])
def test_slots_above_a_lowered_maximum_count_against_it(configure_pool, step):
    """One slot is in use and one terminates, both above the maximum: the lower slots stay empty."""
    fleet = configure_pool(max_slots=4)
    for state in (S.EMPTY, S.EMPTY, S.READY, S.TERMINATING):
        slot = fleet.slot(state)
        if state == S.READY:
            fleet.assign(fleet.reservation(16, ttl=86_400), slot)
    configure_pool(max_slots=2, warm_slots=2)
    fleet.reservation(ttl=86_400)
    assert count_launches(fleet, step) == 0


def test_an_incoming_slot_with_an_interruption_notice_does_not_count(fleet):
    slot = fleet.slot(S.BOOTING)
    record_interruption(slot=slot, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())
    fleet.reservation()
    assert count_launches(fleet, launch_for_demand) == 1


def test_an_incoming_slot_that_is_cordoned_does_not_count(fleet, as_operator):
    slot = fleet.slot(S.BOOTING)
    cordon_slot(slot=slot, cordoned=True, reason="disk", actor=as_operator, now=fleet.clock())
    fleet.reservation()
    assert count_launches(fleet, launch_for_demand) == 1


@pytest.mark.parametrize(("state", "seconds"), [(S.LAUNCHING, 360), (S.BOOTING, 360), (S.BINDING, 240)])
@pytest.mark.parametrize("step", [launch_for_demand, keep_minimum])
def test_an_incoming_slot_counts_until_its_deadline_and_a_last_reconciliation(
    configure_pool, state, seconds, step
):
    """After the deadline it counts for one more minute, in which the reconciler ends it."""
    fleet = configure_pool(min_slots=1) if step is keep_minimum else configure_pool()
    fleet.slot(state)
    fleet.reservation(ttl=86_400)
    fleet.clock.advance(seconds=seconds - 1)
    assert count_launches(fleet, step) == 0
    fleet.clock.advance(seconds=1)
    assert count_launches(fleet, step) == 1


def test_an_incoming_slot_counts_with_its_capacity(fleet):
    fleet.slot(S.BOOTING, cpu_cores=2)
    fleet.reservation(2), fleet.reservation(1)
    assert count_launches(fleet, launch_for_demand) == 1


def test_a_reservation_that_no_longer_fits_a_slot_launches_nothing(configure_pool, fleet):
    fleet.reservation(12)
    configure_pool(cpu_cores=8)
    assert count_launches(fleet, launch_for_demand) == 0


@pytest.mark.parametrize(
    "policy",
    [
        {"enabled": False},
        {"stopped_reason": "no such launch template"},
        {"backoff_until": "later"},
    ],
    ids=["disabled", "stopped", "backing off"],
)
def test_a_disabled_stopped_or_backing_off_pool_launches_nothing(configure_pool, policy):
    fleet = configure_pool(min_slots=1)
    fleet.reservation()
    if "backoff_until" in policy:
        policy = {"backoff_until": fleet.clock() + timedelta(seconds=1)}
    configure_pool(**policy)
    assert count_launches(fleet, launch_for_demand, keep_minimum) == 0
    assert not fleet.slots()


def test_a_pool_launches_again_after_its_back_off(configure_pool):
    fleet = configure_pool(backoff_until="2026-03-02T08:00:00Z")
    fleet.reservation()
    assert count_launches(fleet, launch_for_demand) == 1


@pytest.mark.parametrize(
    ("policy", "existing_states", "expected"),
    [
        ({}, [], 0),
        ({"min_slots": 2}, [], 2),
        ({"min_slots": 2}, [S.READY], 1),
        ({"min_slots": 2}, [S.READY, S.BOOTING], 0),
        ({"min_slots": 2}, [S.DRAINING, S.TERMINATING], 2),
        ({"warm_slots": 2}, [], 2),
        ({"warm_slots": 2}, [S.READY, S.LAUNCHING], 0),
        ({"min_slots": 1, "warm_slots": 3}, [S.READY], 2),
        ({"min_slots": 3, "warm_slots": 1}, [S.READY], 2),
        ({"min_slots": 4, "warm_slots": 4}, [], 4),
        ({"min_slots": 3}, [S.TERMINATING, S.TERMINATING], 2),
        ({"min_slots": 3}, [S.ERROR, S.ERROR], 2),
    ],
)
def test_the_minimum_and_the_warm_slots_are_kept(configure_pool, policy, existing_states, expected):
    fleet = configure_pool(**policy)
    for state in existing_states:
        fleet.slot(state)
    assert count_launches(fleet, keep_minimum) == expected


def test_a_slot_in_use_is_not_warm_but_counts_for_the_minimum(configure_pool):
    fleet = configure_pool(min_slots=1, warm_slots=1)
    fleet.assign(fleet.reservation(), fleet.slot())
    assert count_launches(fleet, keep_minimum) == 1


def test_cordoned_and_interrupted_slots_are_replaced(configure_pool, as_operator):
    fleet = configure_pool(min_slots=2)
    first, second = fleet.slot(), fleet.slot()
    cordon_slot(slot=first, cordoned=True, reason="disk", actor=as_operator, now=fleet.clock())
    record_interruption(slot=second, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())
    assert count_launches(fleet, keep_minimum) == 2


@pytest.mark.parametrize(("warm", "expected"), [(0, 2), (1, 3), (2, 4), (3, 4)])
def test_warm_slots_are_added_to_the_demand(configure_pool, warm, expected):
    fleet = configure_pool(warm_slots=warm)
    fleet.reservation(9), fleet.reservation(9)
    assert count_launches(fleet, launch_for_demand, keep_minimum) == expected


def test_demand_minimum_and_warm_share_one_maximum(configure_pool):
    fleet = configure_pool(max_slots=3, min_slots=3, warm_slots=3)
    for _ in range(9):
        fleet.reservation(9)
    assert count_launches(fleet, launch_for_demand, keep_minimum) == 3
    assert count_launches(fleet, launch_for_demand, keep_minimum) == 0


def test_new_slots_get_the_lowest_free_numbers(configure_pool):
    fleet = configure_pool(min_slots=3, max_slots=5)
    fleet.tick_without_errors()
    assert [slot.number for slot in fleet.slots()] == [1, 2, 3]
    Slot.objects.filter(number=2).update(state=S.EMPTY)
    LaunchAttempt.objects.filter(slot__number=2).delete()
    fleet.tick_without_errors()
    assert [slot.number for slot in fleet.slots(*IN_FLIGHT)] == [1, 2, 3]


def test_no_slot_above_a_lowered_maximum_is_launched(configure_pool):
    fleet = configure_pool(max_slots=4)
    for _ in range(4):
        fleet.slot(S.EMPTY)
    configure_pool(max_slots=2, min_slots=2)
    fleet.tick_without_errors()
    assert Counter(fleet.states()) == {S.LAUNCHING: 2, S.EMPTY: 2}
    assert [slot.number for slot in fleet.slots(S.LAUNCHING)] == [1, 2]


def test_a_reused_slot_has_the_pools_current_capacity(fleet, as_admin):
    fleet.slot(S.EMPTY)
    update_pool(pool=fleet.reload_pool(), actor=as_admin, cpu_cores=32, max_leases=3)
    fleet.reservation(20)
    for _ in range(4):
        fleet.round()
    slot = fleet.slots(S.READY)[0]
    assert (slot.cpu_cores, slot.max_leases, slot.lease_count) == (32, 3, 1)


def test_beginning_a_launch_opens_an_attempt_without_a_provider_call(fleet):
    slot = fleet.slot(S.EMPTY)
    attempt = begin_launch(slot, now=fleet.clock())
    slot.refresh_from_db()
    assert (slot.state, slot.state_deadline) == (S.LAUNCHING, fleet.clock() + timedelta(seconds=300))
    assert (attempt.outcome, attempt.requested_at, len(attempt.token)) == ("open", fleet.clock(), 32)
    assert fleet.runtime.calls == []


def test_two_launches_of_one_slot_open_one_attempt(fleet):
    slot = fleet.slot(S.EMPTY)
    copy = Slot.objects.select_related("pool").get(pk=slot.pk)
    assert begin_launch(slot, now=fleet.clock()) is not None
    assert begin_launch(copy, now=fleet.clock()) is None
    assert slot.attempts.count() == 1


def test_a_tick_that_lost_its_lease_begins_no_more_launches(configure_pool):
    fleet = configure_pool(min_slots=3)
    tick = fleet.context()
    tick.is_lease_held = lambda: False
    keep_minimum(tick)
    assert tick.attempts == []
