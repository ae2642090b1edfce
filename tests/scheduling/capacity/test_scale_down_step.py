"""Step 6: idle slots are drained, within limits."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from scheduling.capacity.steps import scale_down
from scheduling.capacity.steps.scale_down import drain_idle
from scheduling.models import SlotState
from scheduling.services.reservations import release_reservation
from scheduling.services.slots import cordon_slot

S = SlotState


def count_drained(fleet, *, minutes=60) -> int:
    fleet.clock.advance(minutes=minutes)
    tick = fleet.context()
    drain_idle(tick)
    return tick.counts.get("drained", 0)


@pytest.mark.parametrize(
    ("policy", "ready", "expected"),
    [
        ({}, 0, 0),
        ({}, 2, 2),
        ({"min_slots": 1}, 3, 2),
        ({"warm_slots": 2}, 3, 1),
        ({"min_slots": 3, "warm_slots": 1}, 3, 0),
        ({"min_slots": 1, "warm_slots": 3}, 4, 1),
        ({"min_slots": 4}, 3, 0),
    ],
)
def test_idle_slots_are_drained_down_to_minimum_and_warm_slots(configure_pool, policy, ready, expected):
    fleet = configure_pool(**policy)
    for _ in range(ready):
        fleet.slot()
    assert count_drained(fleet) == expected
    assert Counter(fleet.states()) == Counter({S.READY: ready - expected, S.DRAINING: expected})


@pytest.mark.parametrize(("seconds", "expected"), [(599, 0), (600, 1)])
def test_only_slots_idle_for_long_enough_are_drained(fleet, seconds, expected):
    fleet.slot()
    assert count_drained(fleet, minutes=seconds / 60) == expected


def test_idle_time_starts_at_the_last_release(fleet, as_admin):
    slot = fleet.slot()
    reservations = [fleet.assign(fleet.reservation(ttl=9999), slot) for _ in range(2)]
    for reservation in reservations:
        fleet.clock.advance(minutes=30)
        release_reservation(reservation=reservation, actor=as_admin, now=fleet.clock())
    slot.refresh_from_db()
    assert slot.idle_since == fleet.clock()
    assert count_drained(fleet, minutes=9) == 0
    assert count_drained(fleet, minutes=1) == 1


def test_slots_with_the_highest_numbers_are_drained_first(configure_pool):
    fleet = configure_pool(min_slots=1)
    for _ in range(3):
        fleet.slot()
    count_drained(fleet)
    assert fleet.states() == [S.READY, S.DRAINING, S.DRAINING]


def test_a_slot_with_a_lease_is_not_drained(fleet):
    fleet.assign(fleet.reservation(ttl=9999), fleet.slot())
    assert count_drained(fleet) == 0


def test_a_slot_that_gets_a_lease_during_the_step_is_not_drained(fleet, monkeypatch):
    slot = fleet.slot()
    real = scale_down.move_slot

    def assign_first(**fields):
        fleet.assign(fleet.reservation(ttl=9999), slot)
        return real(**fields)

    monkeypatch.setattr(scale_down, "move_slot", assign_first)
    assert count_drained(fleet) == 0
    slot.refresh_from_db()
    assert (slot.state, slot.lease_count) == (S.READY, 1)


def test_cordoned_slots_neither_count_nor_drain(configure_pool, as_operator):
    fleet = configure_pool(min_slots=1)
    slots = [fleet.slot(), fleet.slot()]
    cordon_slot(slot=slots[1], cordoned=True, reason="maintenance", actor=as_operator, now=fleet.clock())
    assert count_drained(fleet) == 0


def test_incoming_slots_do_not_replace_serving_ones(configure_pool):
    fleet = configure_pool(min_slots=2)
    for state in (S.READY, S.READY, S.BOOTING, S.LAUNCHING):
        fleet.slot(state)
    assert count_drained(fleet) == 0


def test_busy_slots_count_for_the_minimum_but_not_as_warm(configure_pool):
    fleet = configure_pool(min_slots=2, warm_slots=1)
    slots = [fleet.slot() for _ in range(4)]
    for slot in slots[:2]:
        fleet.assign(fleet.reservation(ttl=9999), slot)
    assert count_drained(fleet) == 1
    assert [slot.state for slot in fleet.slots()] == [S.READY, S.READY, S.READY, S.DRAINING]


def test_a_reservation_that_fits_no_slot_does_not_prevent_scale_down(configure_pool):
    fleet = configure_pool(cpu_cores=16)
    fleet.slot()
    reservation = fleet.reservation(12, ttl=86_400)
    configure_pool(cpu_cores=8)
    type(fleet.slots()[0]).objects.update(cpu_cores=8)
    fleet.clock.advance(hours=1)
    report = fleet.tick_without_errors()
    reservation.refresh_from_db()
    assert (reservation.phase, report.counts) == ("PENDING", {"new_wait_reasons": 1, "drained": 1})


def test_a_drained_slot_shows_its_reason_and_deadline(fleet):
    fleet.slot()
    count_drained(fleet)
    slot = fleet.slots()[0]
    assert (slot.reason, slot.state_deadline) == ("idle", fleet.clock() + timedelta(seconds=120))
