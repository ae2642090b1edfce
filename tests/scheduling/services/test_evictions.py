"""Reclaim and preempt through ticks: victims stop, their space is held, and further ticks change nothing."""

import pytest

from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import Priority, SessionTransition
from scheduling.capacity.steps import place
from scheduling.models import Decision, Reservation
from scheduling.services.evictions import HOLD
from tests.support.factories import make_definition
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import (
    PREEMPT,
    RECLAIM,
    SessionRequester,
    check_leases,
    report_termination,
    slot_of,
    status_of,
)


@pytest.fixture
def full_slot(configure_pool):
    """One slot that four preemptible sessions of one project fill, and a second project."""

    def make(scheduler, **fields):
        fleet = configure_pool(max_slots=1, scheduler=scheduler)
        slot = fleet.slot()
        many = SessionRequester(fleet, "many", make_definition(pool="cml-eu", preemptible=True))
        few = SessionRequester(fleet, "few", make_definition(pool="cml-eu"))
        running = [many.request_on(slot, **fields) for _ in range(4)]
        return fleet, slot, many, few, running

    return make


def stopping(sessions):
    return [session for session in sessions if status_of(session) == S.STOPPING]


def test_reclaim_gives_space_to_a_project_within_its_share(full_slot):
    fleet, slot, _, few, running = full_slot(RECLAIM)
    waiting = few.request()
    report = fleet.tick_without_errors()
    (victim,) = stopping(running)
    assert report.counts["evicted"] == 1
    transition = SessionTransition.objects.get(session=victim, to_status=S.STOPPING)
    assert transition.reason.startswith("makes room for a project within its share:")
    reservation = active_reservation(waiting)
    assert (reservation.held_slot_id, reservation.held_until) == (slot.pk, fleet.clock() + HOLD)
    assert reservation.verdict == "held"

    decision_count = Decision.objects.count()
    for _ in range(5):
        fleet.clock.advance(seconds=10)
        assert fleet.tick_without_errors().counts == {}
    assert (stopping(running), Decision.objects.count()) == ([victim], decision_count)

    report_termination(victim, fleet)
    fleet.tick_without_errors()
    assert (status_of(waiting), slot_of(waiting)) == (S.SCHEDULED, slot.pk)
    assert active_reservation(waiting).held_slot_id is None
    check_leases()


def test_no_session_is_stopped_while_reclaim_is_off(full_slot):
    fleet, _, _, few, running = full_slot("")
    waiting = few.request()
    fleet.tick_without_errors()
    assert (stopping(running), status_of(waiting)) == ([], S.PENDING)


def test_held_space_is_not_given_to_other_sessions(full_slot):
    fleet, _, many, few, running = full_slot(RECLAIM)
    waiting = few.request()
    fleet.tick_without_errors()
    urgent = many.request(priority=Priority.HIGH)
    report_termination(stopping(running)[0], fleet)
    fleet.tick_without_errors()
    assert (status_of(waiting), status_of(urgent)) == (S.SCHEDULED, S.PENDING)


def test_a_hold_expires(full_slot):
    fleet, _, many, few, running = full_slot(RECLAIM)
    waiting = few.request()
    fleet.tick_without_errors()
    urgent = many.request(priority=Priority.HIGH)
    report_termination(stopping(running)[0], fleet)
    fleet.clock.advance(seconds=HOLD.total_seconds() + 1)
    fleet.tick_without_errors()
    assert (status_of(waiting), status_of(urgent)) == (S.PENDING, S.SCHEDULED)


def test_a_session_preempts_a_lower_priority_session_of_its_own_project(full_slot):
    fleet, slot, many, few, running = full_slot(PREEMPT, priority=Priority.LOW)
    other, own_session = few.request(priority=Priority.HIGH), many.request(priority=Priority.HIGH)
    fleet.tick_without_errors()
    assert len(stopping(running)) == 1
    assert (active_reservation(own_session).held_slot_id, active_reservation(other).held_slot_id) == (
        slot.pk,
        None,
    )


def test_a_victim_that_has_not_started_returns_to_the_queue(configure_pool):
    fleet = configure_pool(max_slots=1, scheduler=PREEMPT)
    slot = fleet.slot()
    requester = SessionRequester(fleet, "one", make_definition(pool="cml-eu", preemptible=True))
    scheduled = [requester.request(priority=Priority.LOW) for _ in range(4)]
    for session in scheduled:
        fleet.assign(session, slot)
    requester.request(priority=Priority.HIGH)
    fleet.tick_without_errors()
    assert sorted(status_of(session) for session in scheduled) == [S.PENDING, *[S.SCHEDULED] * 3]
    check_leases()


def test_a_session_cancelled_meanwhile_evicts_no_session(full_slot, monkeypatch):
    """The hold is a compare-and-set: without it no session is stopped."""
    fleet, _, _, few, running = full_slot(RECLAIM)
    waiting = few.request()
    real = place.evict_victims

    def cancel_first(pool, cycle, *, now):
        Reservation.objects.filter(session=waiting).update(phase="CANCELLED")
        return real(pool, cycle, now=now)

    monkeypatch.setattr(place, "evict_victims", cancel_first)
    fleet.tick_without_errors()
    assert stopping(running) == []
