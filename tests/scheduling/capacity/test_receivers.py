"""A session gets its reservation when it is requested and releases it at every end."""

from __future__ import annotations

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from lcm.domain.lifecycle import FINAL, SessionStatus
from lcm.models import LabletSession, Priority
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_session, cancel_sessions
from scheduling.models import Phase, Pool, PortAllocation
from tests.support.factories import WAY_TO, make_definition, make_session
from tests.support.fleet import active_reservation

S = SessionStatus


def test_a_requested_session_reserves_the_requirement_of_its_revision(fleet, new_session):
    session = new_session(priority=Priority.HIGH)
    reservation = session.reservations.get()
    assert (reservation.phase, reservation.pool, reservation.attempt) == (Phase.PENDING, fleet.pool, 1)
    assert (reservation.cpu_cores, reservation.priority) == (session.revision.cpu_cores, Priority.HIGH)
    assert reservation.port_names == ["r1_serial", "host_pat"]
    assert (reservation.expires_at, reservation.created_at) == (None, session.created_at)


def test_a_session_without_a_requested_pool_shows_its_chosen_pool(fleet, project, operator):
    session = make_session(make_definition(now=fleet.clock()), project, operator, now=fleet.clock())
    session.refresh_from_db()
    assert session.pool == session.reservations.get().pool.name != ""


@pytest.mark.parametrize("change", [{"enabled": False}, {"cpu_cores": 1}], ids=["disabled", "too small"])
def test_a_session_that_no_pool_can_hold_is_rejected(fleet, configure_pool, new_session, change):
    configure_pool(**change)
    with pytest.raises(InvalidInput) as error:
        new_session()
    assert "pool" in error.value.fields
    assert not LabletSession.objects.exists()


@pytest.mark.parametrize("status", sorted(FINAL - {S.CANCELLED, S.EXPIRED}))
def test_an_ended_session_releases_its_lease_and_ports(fleet, session_on, status):
    slot = fleet.slot()
    session = session_on(slot)
    assert PortAllocation.objects.filter(session=session).count() == 2
    for step in WAY_TO[status][1:]:
        transition_session(session=session, to=step, actor=SYSTEM, now=fleet.clock())
    slot.refresh_from_db()
    reservation = session.reservations.get()
    assert (slot.lease_count, reservation.phase, reservation.released_at) == (
        0,
        Phase.RELEASED,
        fleet.clock(),
    )
    assert reservation.reason == f"session {status.label.lower()}"
    assert not PortAllocation.objects.filter(session=session).exists()


@pytest.mark.parametrize(("to", "phase"), [(S.CANCELLED, Phase.CANCELLED), (S.EXPIRED, Phase.EXPIRED)])
def test_the_reservation_of_an_unplaced_session_ends_with_it(fleet, new_session, to, phase):
    session = new_session()
    transition_session(session=session, to=to, actor=SYSTEM, now=fleet.clock())
    assert session.reservations.get().phase == phase


def test_a_cancelled_scheduled_session_releases_its_slot(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    cancel_session(session=session, actor=SYSTEM, now=fleet.clock(), reason="no more")
    slot.refresh_from_db()
    assert (slot.lease_count, session.reservations.get().phase) == (0, Phase.RELEASED)


def test_a_stopping_session_keeps_its_slot_and_ports_until_the_lab_is_gone(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, S.STOPPING)
    slot.refresh_from_db()
    assert (slot.lease_count, session.reservations.get().phase) == (1, Phase.READY)
    assert PortAllocation.objects.filter(session=session).count() == 2


@pytest.mark.parametrize("status", [S.SCHEDULED, S.INSTANTIATING])
def test_a_requeued_session_gets_a_new_reservation_with_the_next_attempt(fleet, session_on, status):
    slot = fleet.slot()
    session = session_on(slot, status)
    transition_session(session=session, to=S.PENDING, actor=SYSTEM, now=fleet.clock.advance(minutes=1))
    slot.refresh_from_db()
    reservation = active_reservation(session)
    assert (reservation.phase, reservation.attempt, reservation.slot) == (Phase.PENDING, 2, None)
    assert (slot.lease_count, session.port_allocations.count()) == (0, 0)
    fleet.tick_without_errors()
    session.refresh_from_db()
    reservation.refresh_from_db()
    assert (session.status, reservation.phase, session.port_allocations.count()) == (
        S.SCHEDULED,
        Phase.READY,
        2,
    )


def test_a_requeued_session_keeps_its_position(fleet, new_session, session_on, configure_pool):
    """A session that lost its slot has waited longest."""
    configure_pool(max_leases=1)
    slot = fleet.slot()
    first = session_on(slot)
    fleet.clock.advance(minutes=1)
    second = new_session()
    transition_session(session=first, to=S.PENDING, actor=SYSTEM, now=fleet.clock.advance(minutes=1))
    assert active_reservation(first).created_at == first.created_at
    fleet.tick_without_errors()
    first.refresh_from_db(), second.refresh_from_db()
    assert (first.status, second.status) == (S.SCHEDULED, S.PENDING)


def test_a_session_with_more_ports_than_a_slot_has_is_rejected(fleet, configure_pool, new_session):
    configure_pool(first_port=2000, last_port=2000)
    with pytest.raises(InvalidInput, match="ports requested: 2, per slot: 1") as error:
        new_session()
    assert "pool" in error.value.fields
    assert not LabletSession.objects.exists()


def test_a_session_is_rejected_by_a_pool_of_another_system(fleet, configure_pool, new_session):
    configure_pool(system="gpu")
    with pytest.raises(InvalidInput, match="The pool cml-eu is for gpu, not for cml"):
        new_session()
    assert not LabletSession.objects.exists()


def test_sessions_cancelled_together_release_their_own_leases(fleet, new_session, session_on):
    slots = [fleet.slot(), fleet.slot()]
    sessions = [session_on(slots[0]), session_on(slots[0]), session_on(slots[1]), new_session()]
    cancelled, _ = cancel_sessions(
        sessions=sessions, actor=SYSTEM, now=fleet.clock(), reason="course is over"
    )
    for slot in slots:
        slot.refresh_from_db()
    assert (cancelled, [slot.lease_count for slot in slots]) == (4, [0, 0])


def test_other_transitions_do_not_change_the_reservation(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, S.COLLECTING)
    reservation = session.reservations.get()
    assert (reservation.phase, reservation.attempt, reservation.slot) == (Phase.READY, 1, slot)


def test_a_pool_with_reservations_cannot_be_deleted(fleet, new_session):
    from django.db.models import ProtectedError

    new_session()
    with pytest.raises(ProtectedError):
        Pool.objects.get(pk=fleet.pool.pk).delete()
