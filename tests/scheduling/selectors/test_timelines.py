"""Which entries of the change log belong to the timeline of a slot, pool or session."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.services.session_transitions import transition_session
from scheduling.models import Phase, Reservation, SlotState
from scheduling.selectors import timelines
from scheduling.services.reservations import release_reservation
from scheduling.services.slots import move_slot, record_interruption
from tests.support.factories import make_definition
from tests.support.scheduler_setup import SessionRequester


@pytest.fixture
def window(fleet):
    begin = fleet.clock()
    return lambda: {"start": begin - timedelta(hours=1), "end": fleet.clock() + timedelta(seconds=1)}


def move(session, *steps, clock):
    for to in steps:
        clock.advance(minutes=1)
        session.refresh_from_db()
        transition_session(session=session, to=to, actor=SYSTEM, now=clock())


def events(timeline):
    return list(timeline.rows.order_by("at", "pk").values_list("event", flat=True))


def test_a_slot_shows_its_sessions_from_their_placement_to_their_end(fleet, session_on, window):
    slot, other = fleet.slot(), fleet.slot()
    session = session_on(slot)
    session_on(other, S.RUNNING)
    move(session, S.INSTANTIATING, S.READY, S.RUNNING, S.STOPPING, S.TERMINATED, clock=fleet.clock)
    timeline = timelines.slot_timeline(slot, **window())
    found = [event for event in events(timeline) if event.startswith("session.")]
    expected = ["scheduled", "instantiating", "ready", "running", "stopping", "ended"]
    assert found == [f"session.{each}" for each in expected]
    assert set(timeline.rows.values_list("object_id", flat=True)) == {str(slot.pk), str(session.pk)}


def test_a_session_that_moved_is_on_each_slot_only_while_it_was_there(fleet, session_on, window):
    first, second = fleet.slot(), fleet.slot()
    session = session_on(first)
    move(session, S.INSTANTIATING, S.PENDING, clock=fleet.clock)
    fleet.clock.advance(minutes=1)
    fleet.assign(session, second)
    move(session, S.INSTANTIATING, S.READY, clock=fleet.clock)
    on_first = [e for e in events(timelines.slot_timeline(first, **window())) if e.startswith("session.")]
    on_second = [e for e in events(timelines.slot_timeline(second, **window())) if e.startswith("session.")]
    assert on_first == ["session.scheduled", "session.instantiating", "session.requeued"]
    assert on_second == ["session.scheduled", "session.instantiating", "session.ready"]


def test_a_window_shows_only_what_happened_in_it(fleet, session_on):
    slot = fleet.slot()
    start = fleet.clock()
    session = session_on(slot)
    move(session, S.INSTANTIATING, S.READY, S.RUNNING, clock=fleet.clock)
    middle = fleet.clock()
    move(session, S.STOPPING, S.TERMINATED, clock=fleet.clock)
    before = timelines.slot_timeline(slot, start=start, end=middle)
    after = timelines.slot_timeline(slot, start=middle, end=fleet.clock() + timedelta(days=1))
    assert "session.ended" not in events(before)
    assert set(events(after)) == {
        "session.running",
        "session.stopping",
        "session.ended",
        "slot.ports_released",
    }
    later = fleet.clock() + timedelta(days=1)
    assert events(timelines.slot_timeline(slot, start=later, end=later + timedelta(days=1))) == []


def test_a_session_shows_what_happened_to_its_slot_while_it_was_there(fleet, session_on, window):
    slot = fleet.slot()
    fleet.clock.advance(minutes=1)
    session = session_on(slot)
    fleet.clock.advance(minutes=1)
    slot.refresh_from_db()
    record_interruption(slot=slot, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())
    move(session, S.CANCELLED, clock=fleet.clock)
    fleet.clock.advance(minutes=1)
    move_slot(slot=slot, to=SlotState.DRAINING, now=fleet.clock())
    found = events(timelines.session_timeline(session, **window()))
    assert found == [
        "session.requested",
        "slot.ports_allocated",
        "session.scheduled",
        "slot.interrupted",
        "session.cancelled",
        "slot.ports_released",
    ]


@pytest.mark.parametrize("is_ended", [False, True], ids=["current", "ended"])
def test_a_spread_session_shows_all_its_slots_and_each_slot_the_session(configure_pool, window, is_ended):
    fleet = configure_pool(cpu_cores=3, max_slots=2)
    slots = [fleet.slot(), fleet.slot()]
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    fleet.tick_without_errors()
    for slot in slots:
        slot.refresh_from_db()
        record_interruption(slot=slot, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())
    if is_ended:
        move(session, S.CANCELLED, clock=fleet.clock)
    fleet.clock.advance(minutes=1)
    assert events(timelines.session_timeline(session, **window())).count("slot.interrupted") == 2
    for slot in slots:
        assert "session.scheduled" in events(timelines.slot_timeline(slot, **window()))


def test_a_session_does_not_show_the_ports_of_others(fleet, session_on, window):
    slot = fleet.slot()
    session, other = session_on(slot), session_on(slot)
    found = events(timelines.session_timeline(session, **window()))
    assert found.count("slot.ports_allocated") == 1
    assert events(timelines.slot_timeline(slot, **window())).count("slot.ports_allocated") == 2
    assert events(timelines.session_timeline(other, **window())).count("slot.ports_allocated") == 1


def test_a_pool_shows_its_slots_sessions_and_other_reservations(fleet, session_on, window):
    slot, reservation, waiting = fleet.slot(), fleet.reservation(), fleet.reservation()
    session = session_on(slot)
    release_reservation(reservation=reservation, actor=SYSTEM, now=fleet.clock())
    found = set(timelines.pool_timeline(fleet.pool, **window()).rows.values_list("object_id", flat=True))
    expected = {str(each.pk) for each in (slot, reservation, waiting, session)}
    assert expected <= found


def test_a_window_with_too_many_sessions_is_cut(fleet, session_on, window, monkeypatch):
    slot = fleet.slot()
    session_on(slot), session_on(slot)
    assert not timelines.slot_timeline(slot, **window()).is_cut
    monkeypatch.setattr(timelines, "MOST_RESERVATIONS", 1)
    assert timelines.slot_timeline(slot, **window()).is_cut
    assert timelines.pool_timeline(fleet.pool, **window()).is_cut


def test_recent_entries_are_the_newest_of_the_slot_and_its_sessions(fleet, session_on, window):
    slot = fleet.slot()
    session_on(slot)
    found = timelines.recent_entries(slot, **window(), limit=2)
    assert found[0].event == "session.scheduled"
    assert len(found) == 2
    later = fleet.clock() + timedelta(days=9)
    quiet = timelines.recent_entries(slot, start=later, end=later + timedelta(days=1), limit=9)
    assert {entry.object_id for entry in quiet} == {str(slot.pk)}


def test_a_slot_shows_thousands_of_sessions_that_were_requeued(fleet, session_on, window):
    """SQLite limits the depth of a condition."""
    slot = fleet.slot()
    session = session_on(slot)
    LabletSession.objects.filter(pk=session.pk).update(attempt=2)
    held = Reservation.objects.get(session=session)
    ended = [
        Reservation(
            pool=held.pool,
            session=session,
            slot=slot,
            phase=Phase.RELEASED,
            created_at=held.created_at,
            assigned_at=held.assigned_at,
            released_at=fleet.clock() + timedelta(seconds=number),
            cpu_cores=1,
            memory_gb=1,
            storage_gb=1,
        )
        for number in range(1_100)
    ]
    Reservation.objects.bulk_create(ended)
    assert "session.scheduled" in events(timelines.slot_timeline(slot, **window()))
