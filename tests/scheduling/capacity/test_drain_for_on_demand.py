"""A pool with warm spot slots up to its maximum: idle slots are drained for non-preemptible work."""

from __future__ import annotations

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.models import Priority
from lcm.services.sessions import cancel_session
from scheduling.models import Phase, Pool, SlotState
from scheduling.services.slots import cordon_slot
from tests.support.fleet import Fleet, phases, requested_offerings

S = SlotState


@pytest.fixture(params=[{"min_slots": 2}, {"warm_slots": 2}], ids=["minimum", "warm"])
def full_spot_fleet(request, configure_pool, mixed_fleet) -> Fleet:
    """Two warm spot slots, the pool's maximum."""
    configure_pool(max_slots=2, **request.param)
    for _ in range(4):
        mixed_fleet.round()
    assert [slot.is_spot for slot in mixed_fleet.slots(S.READY)] == [True, True]
    return mixed_fleet


def test_an_idle_spot_slot_is_drained_if_warm_slots_fill_the_pool(full_spot_fleet):
    reservation = full_spot_fleet.reservation(16, ttl=86_400)
    assert full_spot_fleet.round().counts["drained_for_on_demand"] == 1
    for _ in range(5):
        full_spot_fleet.round()
    assert (phases([reservation]), requested_offerings(full_spot_fleet)[2:]) == ([Phase.READY], ["sim-large"])
    assert sorted(slot.is_spot for slot in full_spot_fleet.slots(S.READY)) == [False, True]


def test_only_as_many_slots_as_needed_are_drained(full_spot_fleet):
    reservations = [full_spot_fleet.reservation(8, ttl=86_400) for _ in range(2)]
    before = [slot.pk for slot in full_spot_fleet.slots(S.READY)]
    for _ in range(6):
        full_spot_fleet.round(20)
    assert phases(reservations) == [Phase.READY] * 2
    settled = (full_spot_fleet.states(), requested_offerings(full_spot_fleet))
    assert settled == ([S.READY] * 2, ["sim-large-spot"] * 2 + ["sim-large"])
    for _ in range(30):
        full_spot_fleet.round(120)
    assert (full_spot_fleet.states(), requested_offerings(full_spot_fleet)) == settled
    assert [slot.pk for slot in full_spot_fleet.slots(S.READY)] == before


def test_no_second_slot_is_drained_while_one_is_draining(full_spot_fleet):
    """A second tick, before the first slot is gone, sees that a slot is draining."""
    full_spot_fleet.reservation(16, ttl=86_400)
    assert [full_spot_fleet.tick().counts.get("drained_for_on_demand", 0) for _ in range(3)] == [1, 0, 0]
    full_spot_fleet.runtime.terminates_at_once = False
    full_spot_fleet.reconcile()
    assert (
        full_spot_fleet.tick().counts.get("drained_for_on_demand", 0),
        sorted(full_spot_fleet.states()),
    ) == (
        0,
        [S.READY, S.TERMINATING],
    )


def test_refused_on_demand_capacity_does_not_drain_spot_slots_repeatedly(full_spot_fleet):
    """The drained slot stays empty for the reservation, and the other slot stays ready."""
    full_spot_fleet.runtime.refused_offerings = {"sim-large"}
    reservation = full_spot_fleet.reservation(16, ttl=86_400)
    for _ in range(40):
        full_spot_fleet.round()
    assert (
        requested_offerings(full_spot_fleet).count("sim-large-spot"),
        sorted(full_spot_fleet.states()),
    ) == (
        2,
        [S.EMPTY, S.READY],
    )
    assert requested_offerings(full_spot_fleet).count("sim-large") > 5
    full_spot_fleet.runtime.refused_offerings = set()
    for _ in range(8):
        full_spot_fleet.round()
    assert phases([reservation]) == [Phase.READY]


@pytest.fixture
def large_reservations(configure_pool, mixed_fleet):
    """Three warm spot slots, and three non-preemptible reservations that fill one each."""
    configure_pool(max_slots=3, min_slots=3)
    for _ in range(4):
        mixed_fleet.round()
    assert [slot.is_spot for slot in mixed_fleet.slots(S.READY)] == [True] * 3
    return [mixed_fleet.reservation(16, ttl=86_400) for _ in range(3)]


def test_one_slot_is_drained_until_the_provider_grants_on_demand_capacity(mixed_fleet, large_reservations):
    mixed_fleet.runtime.refused_offerings = {"sim-large"}
    for _ in range(40):
        mixed_fleet.round()
        assert len(mixed_fleet.slots(S.READY)) >= 2
    assert requested_offerings(mixed_fleet).count("sim-large-spot") == 3


def test_all_slots_are_replaced_once_on_demand_capacity_is_granted(mixed_fleet, large_reservations):
    for _ in range(20):
        mixed_fleet.round(20)
    assert phases(large_reservations) == [Phase.READY] * 3
    assert requested_offerings(mixed_fleet) == ["sim-large-spot"] * 3 + ["sim-large"] * 3


def test_without_waiting_work_a_spot_slot_is_launched_again(full_spot_fleet):
    full_spot_fleet.runtime.refused_offerings = {"sim-large"}
    reservation = full_spot_fleet.reservation(16, ttl=120)
    for _ in range(10):
        full_spot_fleet.round()
    assert phases([reservation]) == [Phase.EXPIRED]
    assert [slot.is_spot for slot in full_spot_fleet.slots(S.READY)] == [True, True]


def test_preemptible_work_can_use_the_free_place_meanwhile(full_spot_fleet, preemptible_requester):
    full_spot_fleet.runtime.refused_offerings = {"sim-large"}
    reservation = full_spot_fleet.reservation(16, ttl=86_400)
    sessions = [preemptible_requester.request() for _ in range(2)]
    for _ in range(8):
        full_spot_fleet.round()
    assert phases([reservation, *(each.reservations.get() for each in sessions)]) == [
        "PENDING",
        "READY",
        "READY",
    ]


@pytest.mark.parametrize("stopped", [{"enabled": False}, {"stopped_reason": "no such image"}])
def test_no_slot_is_drained_for_work_that_is_not_launched(full_spot_fleet, stopped):
    full_spot_fleet.reservation(16, ttl=86_400)
    Pool.objects.update(**stopped)
    for _ in range(3):
        full_spot_fleet.round()
    assert full_spot_fleet.states() == [S.READY] * 2


def test_no_slot_with_a_lease_a_cordon_or_held_space_is_drained(
    full_spot_fleet, preemptible_requester, as_operator
):
    session, other = preemptible_requester.request(), preemptible_requester.request(priority=Priority.LOW)
    full_spot_fleet.assign(session, full_spot_fleet.slots()[0])
    cordon_slot(
        slot=full_spot_fleet.slots()[1],
        cordoned=True,
        reason="maintenance",
        actor=as_operator,
        now=full_spot_fleet.clock(),
    )
    reservation = full_spot_fleet.reservation(16, ttl=86_400)
    full_spot_fleet.round()
    assert full_spot_fleet.states() == [S.READY] * 2
    cordon_slot(
        slot=full_spot_fleet.slots()[1],
        cordoned=False,
        reason="done",
        actor=as_operator,
        now=full_spot_fleet.clock(),
    )
    cancel_session(session=other, reason="no more", actor=as_operator, now=full_spot_fleet.clock())
    held = full_spot_fleet.reservation(1, ttl=86_400)
    type(held).objects.filter(pk=held.pk).update(held_slot=full_spot_fleet.slots()[1])
    full_spot_fleet.round()
    assert full_spot_fleet.states() == [S.READY] * 2
    type(held).objects.filter(pk=held.pk).update(held_slot=None)
    for _ in range(6):
        full_spot_fleet.round()
    assert phases([reservation, session.reservations.get()]) == [Phase.READY] * 2


def test_no_slot_is_drained_if_there_is_space_or_an_incoming_slot(configure_pool, full_spot_fleet):
    configure_pool(max_slots=3)
    full_spot_fleet.reservation(16, ttl=86_400)
    for _ in range(6):
        assert "drained_for_on_demand" not in full_spot_fleet.round().counts
    assert sorted(requested_offerings(full_spot_fleet)) == ["sim-large", "sim-large-spot", "sim-large-spot"]


def test_no_slot_is_drained_for_work_that_fits_no_slot(configure_pool, full_spot_fleet):
    full_spot_fleet.reservation(16, ttl=86_400)
    configure_pool(cpu_cores=8)
    for _ in range(3):
        full_spot_fleet.round()
    assert full_spot_fleet.states() == [S.READY] * 2


def test_a_smaller_maximum_drains_slots_as_well(configure_pool, mixed_fleet):
    """Above its maximum a pool must lose two slots before it can launch one."""
    configure_pool(max_slots=2, min_slots=2)
    for _ in range(4):
        mixed_fleet.round()
    configure_pool(max_slots=1, min_slots=1)
    reservation = mixed_fleet.reservation(16, ttl=86_400)
    for _ in range(6):
        mixed_fleet.round()
    assert (phases([reservation]), [slot.is_spot for slot in mixed_fleet.slots(S.READY)]) == (
        [Phase.READY],
        [False],
    )


def test_a_day_without_demand_makes_two_launches(full_spot_fleet):
    for _ in range(24 * 6):
        full_spot_fleet.round(600)
    assert requested_offerings(full_spot_fleet) == ["sim-large-spot"] * 2


@pytest.mark.once
@pytest.mark.slow
def test_slots_settle_for_any_queue(mixed_fleet, preemptible_requester):
    """In the end only refused on-demand requests repeat; no slot is launched or drained."""

    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        floor=st.sampled_from([(2, 0), (0, 2), (1, 2), (3, 0), (0, 3)]),
        extra_slots=st.integers(0, 1),
        on_demand_cores=st.lists(st.sampled_from([1, 8, 16]), min_size=1, max_size=4),
        preemptible_count=st.integers(0, 2),
        refused=st.booleans(),
    )
    def check_settles(floor, extra_slots, on_demand_cores, preemptible_count, refused):
        with transaction.atomic():
            minimum, warm = floor
            size = {"min_slots": minimum, "warm_slots": warm, "max_slots": max(floor) + extra_slots}
            Pool.objects.update(**size)
            for _ in range(3):
                mixed_fleet.round()
            mixed_fleet.runtime.refused_offerings = {"sim-large"} if refused else set()
            for cores in on_demand_cores:
                mixed_fleet.reservation(cores, ttl=86_400)
            for _ in range(preemptible_count):
                preemptible_requester.request()
            for _ in range(25):
                mixed_fleet.round()
            before = launches_and_instances(mixed_fleet, refused)
            for _ in range(15):
                mixed_fleet.round()
            assert launches_and_instances(mixed_fleet, refused) == before
            mixed_fleet.runtime.instances.clear()
            mixed_fleet.runtime.refused_offerings = set()
            transaction.set_rollback(True)

    check_settles()


def launches_and_instances(fleet, refused):
    offerings = [name for name in requested_offerings(fleet) if not (refused and name == "sim-large")]
    return offerings, sorted(slot.instance_id for slot in fleet.slots(S.READY)), len(fleet.runtime.alive)
