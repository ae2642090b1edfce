"""Reclaim and preempt through ticks: victims stop, the space is held, and then nothing changes."""

import pytest

from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import Priority, SessionTransition
from scheduling.capacity.steps import place
from scheduling.models import Decision, Reservation
from scheduling.services.evictions import HOLD
from tests.support.factories import make_definition
from tests.support.fleet import active_of
from tests.support.scheduler_setup import PREEMPT, RECLAIM, Party, check_leases, end, slot_of, status_of


@pytest.fixture
def full(tuned):
    """One slot that four preemptible sessions of one project fill, and a second project."""

    def make(scheduler, **fields):
        fleet = tuned(max_slots=1, scheduler=scheduler)
        slot = fleet.slot()
        many = Party(fleet, "many", make_definition(pool="cml-eu", preemptible=True))
        few = Party(fleet, "few", make_definition(pool="cml-eu"))
        running = [many.runs(slot, **fields) for _ in range(4)]
        return fleet, slot, many, few, running

    return make


def stopping(sessions):
    return [session for session in sessions if status_of(session) == S.STOPPING]


def test_a_project_within_its_share_gets_room_from_one_over_its_own(full):
    fleet, slot, _, few, running = full(RECLAIM)
    waiting = few.asks()
    report = fleet.clean_tick()
    (victim,) = stopping(running)
    assert report.counts["evicted"] == 1
    told = SessionTransition.objects.get(session=victim, to_status=S.STOPPING)
    assert told.reason.startswith("makes room for a project within its share:")
    claim = active_of(waiting)
    assert (claim.held_slot_id, claim.held_until) == (slot.pk, fleet.clock() + HOLD)
    assert claim.verdict == "held"

    decided = Decision.objects.count()
    for _ in range(5):
        fleet.clock.advance(seconds=10)
        assert fleet.clean_tick().counts == {}
    assert (stopping(running), Decision.objects.count()) == ([victim], decided)

    end(victim, fleet)
    fleet.clean_tick()
    assert (status_of(waiting), slot_of(waiting)) == (S.SCHEDULED, slot.pk)
    assert active_of(waiting).held_slot_id is None
    check_leases()


def test_no_session_is_stopped_while_reclaim_is_off(full):
    fleet, _, _, few, running = full("")
    waiting = few.asks()
    fleet.clean_tick()
    assert (stopping(running), status_of(waiting)) == ([], S.PENDING)


def test_room_that_is_held_is_not_given_to_others(full):
    fleet, _, many, few, running = full(RECLAIM)
    waiting = few.asks()
    fleet.clean_tick()
    sooner = many.asks(priority=Priority.HIGH)
    end(stopping(running)[0], fleet)
    fleet.clean_tick()
    assert (status_of(waiting), status_of(sooner)) == (S.SCHEDULED, S.PENDING)


def test_a_hold_ends_by_itself(full):
    fleet, _, many, few, running = full(RECLAIM)
    waiting = few.asks()
    fleet.clean_tick()
    sooner = many.asks(priority=Priority.HIGH)
    end(stopping(running)[0], fleet)
    fleet.clock.advance(seconds=HOLD.total_seconds() + 1)
    fleet.clean_tick()
    assert (status_of(waiting), status_of(sooner)) == (S.PENDING, S.SCHEDULED)


def test_a_more_important_session_displaces_one_of_its_own_project(full):
    fleet, slot, many, few, running = full(PREEMPT, priority=Priority.LOW)
    other, mine = few.asks(priority=Priority.HIGH), many.asks(priority=Priority.HIGH)
    fleet.clean_tick()
    assert len(stopping(running)) == 1
    assert (active_of(mine).held_slot_id, active_of(other).held_slot_id) == (slot.pk, None)


def test_a_victim_that_has_not_started_returns_to_the_queue(tuned):
    fleet = tuned(max_slots=1, scheduler=PREEMPT)
    slot = fleet.slot()
    party = Party(fleet, "one", make_definition(pool="cml-eu", preemptible=True))
    scheduled = [party.asks(priority=Priority.LOW) for _ in range(4)]
    for session in scheduled:
        fleet.put(session, slot)
    party.asks(priority=Priority.HIGH)
    fleet.clean_tick()
    assert sorted(status_of(session) for session in scheduled) == [S.PENDING, *[S.SCHEDULED] * 3]
    check_leases()


def test_a_session_cancelled_meanwhile_evicts_no_other(full, monkeypatch):
    """The hold is a compare-and-set: without it no session is stopped."""
    fleet, _, _, few, running = full(RECLAIM)
    waiting = few.asks()
    real = place.evict_victims

    def cancel_first(pool, cycle, *, now):
        Reservation.objects.filter(session=waiting).update(phase="CANCELLED")
        return real(pool, cycle, now=now)

    monkeypatch.setattr(place, "evict_victims", cancel_first)
    fleet.clean_tick()
    assert stopping(running) == []
