"""The invariants of DESIGN 5, a test for each sentence."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.lifecycle import SessionStatus
from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    Health,
    Misconfigured,
    RuntimeFailure,
    Throttled,
)
from scheduling.models import Phase, SlotState
from scheduling.services.slots import record_interruption
from tests.support.fleet import active_reservation, phases

S = SlotState
TWO_MINUTES = timedelta(minutes=2)


def test_capacity_in_flight_counts_against_demand_per_pool_until_its_deadline(fleet):
    fleet.reservation(9, ttl=86_400)
    fleet.runtime.boots = False
    fleet.tick()
    fleet.launch()
    for _ in range(5):
        fleet.clock.advance(seconds=60)
        assert fleet.tick().attempts == []
    # The reconciler has one more minute to end the slot; after that the slot no longer counts.
    fleet.clock.advance(seconds=60)
    assert len(fleet.tick().attempts) == 1
    assert fleet.states() == [S.BOOTING, S.LAUNCHING]


def test_demand_minimum_and_warm_slots_share_one_maximum(configure_pool):
    fleet = configure_pool(max_slots=3, min_slots=3, warm_slots=2)
    for _ in range(9):
        fleet.reservation(16, ttl=86_400)
    for _ in range(10):
        fleet.round()
        assert len(fleet.runtime.alive) <= 3
    assert fleet.runtime.count("launch") == 3


def test_draining_slots_without_leases_do_not_count_for_the_minimum(configure_pool):
    fleet = configure_pool(min_slots=1)
    fleet.slot(S.DRAINING)
    assert fleet.tick().counts == {"launched_for_minimum": 1}


@pytest.mark.parametrize(("minimum", "warm"), [(0, 0), (2, 0), (0, 2), (2, 1), (1, 3)])
def test_scale_down_never_goes_below_the_larger_of_minimum_and_warm(configure_pool, minimum, warm):
    fleet = configure_pool(min_slots=minimum, warm_slots=warm)
    for _ in range(4):
        fleet.slot()
    for _ in range(25):
        fleet.round()
        assert len(fleet.slots(S.READY)) >= max(minimum, warm)
    assert len(fleet.slots(S.READY)) == max(minimum, warm)


def test_scale_down_never_drains_a_slot_with_a_lease(fleet):
    slot = fleet.slot()
    reservation = fleet.assign(fleet.reservation(ttl=86_400), slot)
    for _ in range(12):
        fleet.round(300)
    assert (fleet.states(), phases([reservation])) == ([S.READY], [Phase.READY])


@pytest.mark.slow
@pytest.mark.once
def test_with_warm_2_and_no_demand_a_day_of_ticks_makes_2_launches(configure_pool):
    """A tick, its launches and a reconciliation every minute; a slot is idle for most of the day."""
    fleet = configure_pool(warm_slots=2)
    for minute in range(24 * 60):
        report = fleet.round(60)
        assert report.errors == {}
        if minute >= 2:
            assert fleet.states() == [S.READY, S.READY]
    assert fleet.runtime.count("launch") == 2
    assert fleet.runtime.count("terminate") == 0
    assert fleet.runtime.count("describe") == 24 * 60
    assert all(fleet.clock() - slot.idle_since > timedelta(hours=23) for slot in fleet.slots())


@pytest.mark.parametrize("state", [S.LAUNCHING, S.BOOTING, S.BINDING, S.READY, S.DRAINING])
def test_an_interruption_notice_in_any_live_state_drains_the_slot_by_its_deadline(fleet, state):
    slot = fleet.slot(state)
    record_interruption(slot=slot, deadline=fleet.clock() + TWO_MINUTES, now=fleet.clock())
    fleet.tick()
    slot.refresh_from_db()
    assert slot.state in (S.DRAINING, S.TERMINATING)
    fleet.clock.advance(minutes=2)
    fleet.tick()
    slot.refresh_from_db()
    assert slot.state == S.TERMINATING


def test_an_interruption_stops_sessions_and_requeues_those_that_have_not_started(fleet, session_on):
    slot = fleet.slot()
    running, waiting = session_on(slot, SessionStatus.RUNNING), session_on(slot, SessionStatus.INSTANTIATING)
    record_interruption(slot=slot, deadline=fleet.clock() + TWO_MINUTES, now=fleet.clock())
    fleet.clock.advance(seconds=1)
    fleet.tick()
    running.refresh_from_db(), waiting.refresh_from_db()
    assert (running.status, waiting.status) == (SessionStatus.RUNNING, SessionStatus.PENDING)
    fleet.clock.advance(seconds=75)
    fleet.tick()
    running.refresh_from_db()
    assert running.status == SessionStatus.COLLECTING
    assert "is interrupted at" in running.transitions.last().reason


def test_an_interruption_does_not_wait_for_the_next_tick_to_count_as_unmet_demand(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    record_interruption(slot=slot, deadline=fleet.clock() + TWO_MINUTES, now=fleet.clock())
    report = fleet.tick_without_errors()
    assert report.counts == {"interrupted": 1, "new_wait_reasons": 1, "unmet": 1, "launched_for_demand": 1}
    assert active_reservation(session).phase == Phase.PENDING


@pytest.mark.parametrize("state", [S.LAUNCHING, S.BOOTING, S.BINDING, S.DRAINING, S.TERMINATING])
def test_every_transitional_state_has_a_deadline(fleet, state):
    assert fleet.slot(state).state_deadline is not None


@pytest.mark.parametrize("state", [S.LAUNCHING, S.BOOTING, S.BINDING, S.DRAINING, S.TERMINATING, S.ERROR])
def test_an_overdue_slot_always_becomes_empty(fleet, state):
    """Even if the provider does not respond, the slot is empty an hour later."""
    slot = fleet.slot(state)
    fleet.runtime.boots, fleet.runtime.terminates_at_once = False, False
    fleet.runtime.health = Health(False, "not ready")
    for _ in range(30):
        fleet.reconcile()
        fleet.clock.advance(seconds=120)
    slot.refresh_from_db()
    assert slot.state == S.EMPTY


def test_a_refused_offering_is_not_retried_at_once_and_the_demand_stays(fleet):
    reservation = fleet.reservation(ttl=86_400)
    fleet.runtime.error = CapacityRefused("none left")
    for _ in range(60):
        fleet.round(60)
    assert fleet.runtime.count("launch") <= 60 / 3 + 1
    assert phases([reservation]) == [Phase.PENDING]


@pytest.mark.slow
@pytest.mark.once
def test_every_launch_refused_for_an_hour_is_bounded_in_calls_and_recovers(configure_pool):
    fleet = configure_pool(max_slots=5)
    reservations = [fleet.reservation(16, ttl=86_400) for _ in range(5)]
    fleet.runtime.error = CapacityRefused("none left")
    for _ in range(60 * 4):
        fleet.tick()
        fleet.launch()
        fleet.clock.advance(seconds=15)
    assert fleet.runtime.count("launch") <= 60 / 3 + 1
    assert phases(reservations) == [Phase.PENDING] * 5
    fleet.runtime.error = None
    for _ in range(8):
        fleet.round(60)
    assert phases(reservations) == [Phase.READY] * 5


def test_throttling_keeps_the_demand_and_counts_no_failure(fleet):
    reservation = fleet.reservation(ttl=86_400)
    fleet.runtime.error = Throttled("slow down")
    for _ in range(20):
        fleet.round(5)
    assert (phases([reservation]), fleet.reload_pool().failures) == ([Phase.PENDING], 0)
    assert fleet.runtime.count("launch") <= 100 / 15 + 1
    fleet.runtime.error = None
    for _ in range(5):
        fleet.round(15)
    assert phases([reservation]) == [Phase.READY]


def test_a_configuration_error_stops_the_pool_with_a_reason(fleet):
    fleet.reservation(ttl=86_400)
    fleet.runtime.error = Misconfigured("no such image")
    for _ in range(60):
        fleet.round(60)
    assert (fleet.runtime.count("launch"), fleet.reload_pool().stopped_reason) == (1, "no such image")


def test_unknown_errors_back_off_exponentially(fleet):
    fleet.reservation(ttl=86_400)
    fleet.runtime.error = RuntimeFailure("strange")
    for _ in range(4 * 12):
        fleet.round(300)
    # At 0, 5, 15, 35 and then every 30 minutes, within four hours.
    assert 9 <= fleet.runtime.count("launch") <= 11


def test_not_found_on_terminate_is_success(fleet):
    slot = fleet.slot(S.TERMINATING)
    fleet.runtime.terminate(slot.instance_id)
    fleet.runtime.vanish(slot.instance_id)
    fleet.runtime.terminate(slot.instance_id)
    fleet.reconcile()
    slot.refresh_from_db()
    assert slot.state == S.EMPTY


def test_tagged_instances_without_a_slot_row_are_collected_after_a_grace_period(fleet):
    fleet.runtime.add("i-orphan", token="forgotten")
    fleet.reconcile()
    assert len(fleet.runtime.alive) == 1
    fleet.clock.advance(minutes=10)
    fleet.reconcile()
    assert fleet.runtime.alive == []
