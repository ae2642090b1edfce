"""Moving a waiting session to another pool: the reservation moves with it, and nothing else changes."""

from __future__ import annotations

from functools import partial

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ChangeLog, FeedEntry, LabletSession, Priority, SessionTransition
from lcm.services.sessions import cancel_session
from scheduling import tasks
from scheduling.models import Phase, Pool, Reservation
from scheduling.services.pool_transfer import move_to_pool
from scheduling.services.pools import create_pool
from tests.support.capacity_setup import pool_named
from tests.support.fleet import Fleet


@pytest.fixture
def other_pool(pool) -> Pool:
    """Another pool of the same system."""
    return pool_named("cml-us")


@pytest.fixture
def move(clock, as_operator):
    def call(session, pool="cml-us", reason="It is nearer"):
        return move_to_pool(session=session, pool=pool, reason=reason, actor=as_operator, now=clock())

    return call


def reservation_rows(session) -> list[tuple[str, str, str]]:
    rows = Reservation.objects.filter(session=session).order_by("phase")
    return list(rows.values_list("pool__name", "phase", "reason"))


def test_the_old_reservation_ends_and_a_new_one_keeps_age_and_priority(
    new_session, other_pool, move, clock, as_operator
):
    session = new_session(priority=Priority.HIGH)
    old = session.reservations.get()
    clock.advance(minutes=5)
    assert move(session).pool == "cml-us"
    assert reservation_rows(session) == [
        ("cml-eu", Phase.CANCELLED, "moved to pool cml-us"),
        ("cml-us", Phase.PENDING, ""),
    ]
    new = session.reservations.get(phase=Phase.PENDING)
    for name in ("created_at", "priority", "attempt", "cpu_cores", "memory_gb", "port_names", "labels"):
        assert getattr(new, name) == getattr(old, name), name
    session.refresh_from_db()
    assert (session.pool, session.status, session.attempt) == ("cml-us", S.PENDING, 1)
    entry = ChangeLog.objects.get(event="session.moved")
    assert (entry.actor, entry.reason) == (as_operator.label, "It is nearer")
    assert (entry.before, entry.after) == ({"pool": "cml-eu"}, {"pool": "cml-us"})


def test_a_moved_session_is_placed_only_by_its_new_pool(fleet, new_session, other_pool, move, clock, runtime):
    other_fleet = Fleet(other_pool, clock, runtime)
    fleet.slot()
    slot = other_fleet.slot()
    session = new_session()
    move(session)
    fleet.tick_without_errors()
    session.refresh_from_db()
    assert session.status == S.PENDING
    other_fleet.tick_without_errors()
    session.refresh_from_db()
    assert (session.status, session.reservations.get(phase=Phase.READY).slot) == (S.SCHEDULED, slot)


def test_a_session_can_be_moved_back(new_session, other_pool, move):
    session = new_session()
    move(session)
    move(session, pool="cml-eu")
    assert session.reservations.filter(phase=Phase.PENDING).get().pool.name == "cml-eu"
    assert session.reservations.count() == 3


def test_a_move_adds_no_transition_and_no_feed_entry(new_session, other_pool, move):
    session = new_session()
    before = FeedEntry.objects.count(), SessionTransition.objects.count()
    move(session)
    assert (FeedEntry.objects.count(), SessionTransition.objects.count()) == before


@pytest.mark.parametrize(
    ("pool", "field", "message"),
    [
        ("cml-eu", "pool", "The session is already waiting in cml-eu."),
        ("", "pool", "Choose a pool"),
        ("nowhere", "pool", "There is no pool “nowhere”."),
        ("closed", "pool", "The pool closed is disabled."),
        ("eve", "pool", "The pool eve is for eve-ng, not for cml."),
        ("tiny", "pool", "No slot of tiny has 4 cores; the largest has 1."),
    ],
)
def test_an_unsuitable_pool_is_rejected_and_nothing_changes(new_session, move, pool, field, message):
    for name, fields in (
        ("closed", {"enabled": False}),
        ("eve", {"system": "eve-ng"}),
        ("tiny", {"cpu_cores": 1}),
    ):
        create_pool(name=name, actor=SYSTEM, **fields)
    session = new_session()
    with pytest.raises(InvalidInput) as error:
        move(session, pool=pool)
    ((found_field, texts),) = error.value.fields.items()
    assert found_field == field
    assert texts[0].startswith(message)
    assert session.pool == LabletSession.objects.get().pool == "cml-eu"
    assert reservation_rows(session) == [("cml-eu", Phase.PENDING, "")]
    assert not ChangeLog.objects.filter(event="session.moved").exists()


def test_a_reason_is_required(new_session, other_pool, move):
    session = new_session()
    with pytest.raises(InvalidInput) as error:
        move(session, reason=" ")
    assert list(error.value.fields) == ["reason"]
    assert reservation_rows(session) == [("cml-eu", Phase.PENDING, "")]


@pytest.mark.parametrize("status", [S.SCHEDULED, S.INSTANTIATING, S.RUNNING, S.STOPPING])
def test_a_placed_session_is_not_moved(fleet, session_on, other_pool, move, status):
    session = session_on(fleet.slot(), status)
    with pytest.raises(StateConflict, match=f"is {status.label.lower()}; only pending sessions"):
        move(session)
    assert [reservation[:2] for reservation in reservation_rows(session)] == [("cml-eu", Phase.READY)]


def test_a_move_of_a_stale_copy_is_rejected(fleet, new_session, other_pool, move):
    session = new_session()
    first_copy, second_copy = (LabletSession.objects.get(pk=session.pk) for _ in range(2))
    fleet.assign(session, fleet.slot())
    with pytest.raises(StateConflict, match="is scheduled"):
        move(first_copy)
    assert first_copy.pool == "cml-eu"
    cancel_session(session=session, actor=SYSTEM, now=fleet.clock(), reason="no more")
    with pytest.raises(StateConflict, match="is cancelled"):
        move(second_copy)


def test_a_second_move_of_a_stale_copy_is_rejected(new_session, other_pool, move):
    create_pool(name="cml-asia", actor=SYSTEM)
    session = new_session()
    stale = LabletSession.objects.get(pk=session.pk)
    move(session)
    with pytest.raises(StateConflict, match="changed a moment ago"):
        move(stale, pool="cml-asia")
    assert [reservation[:2] for reservation in reservation_rows(session)] == [
        ("cml-eu", Phase.CANCELLED),
        ("cml-us", Phase.PENDING),
    ]


def test_the_new_pools_tick_is_triggered(
    new_session, pool, other_pool, move, monkeypatch, django_capture_on_commit_callbacks
):
    enqueued = []
    monkeypatch.setattr(tasks.tick_pool, "apply_async", lambda arguments, **_: enqueued.append(arguments[0]))
    session = new_session()
    cache.clear()
    with django_capture_on_commit_callbacks(execute=True):
        move(session)
    assert str(other_pool.pk) in enqueued


def test_the_session_is_locked_before_its_reservation(new_session, other_pool, move):
    session = new_session()
    with CaptureQueriesContext(connection) as queries:
        move(session)
    tables = [LabletSession._meta.db_table, Reservation._meta.db_table]
    written = [
        table
        for query in queries
        for table in tables
        if query["sql"].startswith((f'UPDATE "{table}"', f'INSERT INTO "{table}"'))
    ]
    assert written == [tables[0], tables[1], tables[1]]


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_concurrent_move_and_placement_leave_one_active_reservation(
    fleet, new_session, other_pool, clock, as_operator, at_once
):
    slot = fleet.slot()
    for _ in range(5):
        session = new_session()
        stale = LabletSession.objects.get(pk=session.pk)
        arguments = {"pool": "cml-us", "reason": "nearer", "actor": as_operator, "now": clock()}
        at_once(partial(move_to_pool, session=stale, **arguments), fleet.tick)
        session.refresh_from_db()
        (active,) = session.reservations.filter(phase__in=[Phase.PENDING, Phase.READY])
        assert active.pool.name == session.pool
        assert (active.phase == Phase.READY) == (session.status == S.SCHEDULED) == (session.pool == "cml-eu")
    slot.refresh_from_db()
    assert slot.lease_count == Reservation.objects.filter(slot=slot, phase=Phase.READY).count()
