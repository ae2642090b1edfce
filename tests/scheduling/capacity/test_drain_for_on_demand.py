"""A pool with warm spot slots up to its maximum: idle ones are drained for non-preemptible work."""

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
def kept(request, configure_pool, mixed_fleet) -> Fleet:
    """Two warm spot slots, the pool's maximum."""
    configure_pool(max_slots=2, **request.param)
    for _ in range(4):
        mixed_fleet.round()
    assert [slot.is_spot for slot in mixed_fleet.slots(S.READY)] == [True, True]
    return mixed_fleet


def test_an_idle_spot_slot_is_drained_if_warm_slots_fill_the_pool(kept):
    claim = kept.reservation(16, ttl=86_400)
    assert kept.round().counts["drained_for_on_demand"] == 1
    for _ in range(5):
        kept.round()
    assert (phases([claim]), requested_offerings(kept)[2:]) == ([Phase.READY], ["sim-large"])
    assert sorted(slot.is_spot for slot in kept.slots(S.READY)) == [False, True]


def test_only_as_many_slots_as_needed_are_drained(kept):
    claims = [kept.reservation(8, ttl=86_400) for _ in range(2)]
    before = [slot.pk for slot in kept.slots(S.READY)]
    for _ in range(6):
        kept.round(20)
    assert phases(claims) == [Phase.READY] * 2
    quiet_from = (kept.states(), requested_offerings(kept))
    assert quiet_from == ([S.READY] * 2, ["sim-large-spot"] * 2 + ["sim-large"])
    for _ in range(30):
        kept.round(120)
    assert (kept.states(), requested_offerings(kept)) == quiet_from
    assert [slot.pk for slot in kept.slots(S.READY)] == before


def test_no_second_slot_is_drained_while_one_is_draining(kept):
    """A second tick, before the first slot is gone, sees that a slot is draining."""
    kept.reservation(16, ttl=86_400)
    assert [kept.tick().counts.get("drained_for_on_demand", 0) for _ in range(3)] == [1, 0, 0]
    kept.runtime.terminates_at_once = False
    kept.reconcile()
    assert (kept.tick().counts.get("drained_for_on_demand", 0), sorted(kept.states())) == (
        0,
        [S.READY, S.TERMINATING],
    )


def test_refused_on_demand_capacity_does_not_drain_spot_slots_repeatedly(kept):
    """The place stays free for it, and the other slot stays."""
    kept.runtime.refused_offerings = {"sim-large"}
    claim = kept.reservation(16, ttl=86_400)
    for _ in range(40):
        kept.round()
    assert (requested_offerings(kept).count("sim-large-spot"), sorted(kept.states())) == (
        2,
        [S.EMPTY, S.READY],
    )
    assert requested_offerings(kept).count("sim-large") > 5
    kept.runtime.refused_offerings = set()
    for _ in range(8):
        kept.round()
    assert phases([claim]) == [Phase.READY]


@pytest.fixture
def crowd(configure_pool, mixed_fleet):
    """Three warm spot slots, and three non-preemptible reservations that fill one each."""
    configure_pool(max_slots=3, min_slots=3)
    for _ in range(4):
        mixed_fleet.round()
    assert [slot.is_spot for slot in mixed_fleet.slots(S.READY)] == [True] * 3
    return [mixed_fleet.reservation(16, ttl=86_400) for _ in range(3)]


def test_one_slot_is_drained_until_the_provider_grants_on_demand_capacity(mixed_fleet, crowd):
    mixed_fleet.runtime.refused_offerings = {"sim-large"}
    for _ in range(40):
        mixed_fleet.round()
        assert len(mixed_fleet.slots(S.READY)) >= 2
    assert requested_offerings(mixed_fleet).count("sim-large-spot") == 3


def test_when_it_is_granted_the_others_follow(mixed_fleet, crowd):
    for _ in range(20):
        mixed_fleet.round(20)
    assert phases(crowd) == [Phase.READY] * 3
    assert requested_offerings(mixed_fleet) == ["sim-large-spot"] * 3 + ["sim-large"] * 3


def test_without_waiting_work_the_place_is_filled_as_before(kept):
    kept.runtime.refused_offerings = {"sim-large"}
    claim = kept.reservation(16, ttl=120)
    for _ in range(10):
        kept.round()
    assert phases([claim]) == [Phase.EXPIRED]
    assert [slot.is_spot for slot in kept.slots(S.READY)] == [True, True]


def test_preemptible_work_may_use_the_place_meanwhile(kept, preemptible_requester):
    kept.runtime.refused_offerings = {"sim-large"}
    claim = kept.reservation(16, ttl=86_400)
    mine = [preemptible_requester.request() for _ in range(2)]
    for _ in range(8):
        kept.round()
    assert phases([claim, *(each.reservations.get() for each in mine)]) == ["PENDING", "READY", "READY"]


@pytest.mark.parametrize("stopped", [{"enabled": False}, {"stopped_reason": "no such image"}])
def test_no_slot_is_drained_for_work_that_is_not_launched(kept, stopped):
    kept.reservation(16, ttl=86_400)
    Pool.objects.update(**stopped)
    for _ in range(3):
        kept.round()
    assert kept.states() == [S.READY] * 2


def test_no_slot_with_a_lease_a_cordon_or_held_space_is_drained(kept, preemptible_requester, as_operator):
    session, other = preemptible_requester.request(), preemptible_requester.request(priority=Priority.LOW)
    kept.assign(session, kept.slots()[0])
    cordon_slot(slot=kept.slots()[1], cordoned=True, reason="look", actor=as_operator, now=kept.clock())
    claim = kept.reservation(16, ttl=86_400)
    kept.round()
    assert kept.states() == [S.READY] * 2
    cordon_slot(slot=kept.slots()[1], cordoned=False, reason="done", actor=as_operator, now=kept.clock())
    cancel_session(session=other, reason="no more", actor=as_operator, now=kept.clock())
    held = kept.reservation(1, ttl=86_400)
    type(held).objects.filter(pk=held.pk).update(held_slot=kept.slots()[1])
    kept.round()
    assert kept.states() == [S.READY] * 2
    type(held).objects.filter(pk=held.pk).update(held_slot=None)
    for _ in range(6):
        kept.round()
    assert phases([claim, session.reservations.get()]) == [Phase.READY] * 2


def test_no_slot_is_drained_if_there_is_space_or_an_incoming_slot(configure_pool, kept):
    configure_pool(max_slots=3)
    kept.reservation(16, ttl=86_400)
    for _ in range(6):
        assert "drained_for_on_demand" not in kept.round().counts
    assert sorted(requested_offerings(kept)) == ["sim-large", "sim-large-spot", "sim-large-spot"]


def test_no_slot_is_drained_for_work_that_fits_no_slot(configure_pool, kept):
    kept.reservation(16, ttl=86_400)
    configure_pool(cpu_cores=8)
    for _ in range(3):
        kept.round()
    assert kept.states() == [S.READY] * 2


def test_a_smaller_maximum_drains_slots_as_well(configure_pool, mixed_fleet):
    """Above its maximum a pool must lose two slots before it can launch one."""
    configure_pool(max_slots=2, min_slots=2)
    for _ in range(4):
        mixed_fleet.round()
    configure_pool(max_slots=1, min_slots=1)
    claim = mixed_fleet.reservation(16, ttl=86_400)
    for _ in range(6):
        mixed_fleet.round()
    assert (phases([claim]), [slot.is_spot for slot in mixed_fleet.slots(S.READY)]) == (
        [Phase.READY],
        [False],
    )


def test_a_day_without_demand_makes_two_launches(kept):
    for _ in range(24 * 6):
        kept.round(600)
    assert requested_offerings(kept) == ["sim-large-spot"] * 2


@pytest.mark.once
@pytest.mark.slow
def test_slots_settle_for_any_queue(mixed_fleet, preemptible_requester):
    """After a while only refused on-demand requests repeat; no slot is launched or drained."""

    @settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        floor=st.sampled_from([(2, 0), (0, 2), (1, 2), (3, 0), (0, 3)]),
        more=st.integers(0, 1),
        firm=st.lists(st.sampled_from([1, 8, 16]), min_size=1, max_size=4),
        others=st.integers(0, 2),
        refused=st.booleans(),
    )
    def rests(floor, more, firm, others, refused):
        with transaction.atomic():
            minimum, warm = floor
            size = {"min_slots": minimum, "warm_slots": warm, "max_slots": max(floor) + more}
            Pool.objects.update(**size)
            for _ in range(3):
                mixed_fleet.round()
            mixed_fleet.runtime.refused_offerings = {"sim-large"} if refused else set()
            for cores in firm:
                mixed_fleet.reservation(cores, ttl=86_400)
            for _ in range(others):
                preemptible_requester.request()
            for _ in range(25):
                mixed_fleet.round()
            before = comings_and_goings(mixed_fleet, refused)
            for _ in range(15):
                mixed_fleet.round()
            assert comings_and_goings(mixed_fleet, refused) == before
            mixed_fleet.runtime.instances.clear()
            mixed_fleet.runtime.refused_offerings = set()
            transaction.set_rollback(True)

    rests()


def comings_and_goings(fleet, refused):
    asked = [name for name in requested_offerings(fleet) if not (refused and name == "sim-large")]
    return asked, sorted(slot.instance_id for slot in fleet.slots(S.READY)), len(fleet.runtime.alive)
