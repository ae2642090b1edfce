"""Step 2: slots with an interruption notice, in every state."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, DefinitionStatus, LabletSession
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_session, extend_session
from scheduling.capacity.steps.interrupt import interrupt
from scheduling.models import LIVE, AttemptOutcome, Phase, SlotState
from scheduling.services import lost_slots
from scheduling.services.lost_slots import fail_sessions_on_slot, stop_sessions_on_slot
from scheduling.services.slots import record_interruption
from tests.support.factories import WAY_TO, make_definition, make_session
from tests.support.fleet import phases

S = SlotState
TWO_MINUTES = timedelta(minutes=2)


def give_notice(fleet, slot):
    return record_interruption(slot=slot, deadline=fleet.clock() + TWO_MINUTES, now=fleet.clock())


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (S.LAUNCHING, S.TERMINATING),
        (S.BOOTING, S.DRAINING),
        (S.BINDING, S.DRAINING),
        (S.READY, S.DRAINING),
        (S.DRAINING, S.DRAINING),
    ],
)
def test_a_notice_drains_a_slot_in_any_live_state(fleet, state, after):
    slot = fleet.slot(state)
    assert give_notice(fleet, slot)
    interrupt(fleet.context())
    slot.refresh_from_db()
    assert slot.state == after


@pytest.mark.parametrize("state", LIVE)
def test_at_the_deadline_the_slot_terminates_in_any_state(fleet, state):
    slot = fleet.slot(state)
    give_notice(fleet, slot)
    fleet.clock.advance(minutes=2)
    interrupt(fleet.context())
    slot.refresh_from_db()
    assert slot.state == S.TERMINATING


@pytest.mark.parametrize("state", LIVE)
def test_an_interrupted_slot_ends_empty_and_can_be_launched_again(fleet, state):
    slot = fleet.slot(state)
    give_notice(fleet, slot)
    for _ in range(5):
        fleet.round(60)
    assert fleet.states() == [S.EMPTY]
    assert not slot.attempts.filter(outcome=AttemptOutcome.OPEN).exists()
    fleet.reservation(ttl=9999)
    for _ in range(4):
        fleet.round(60)
    assert fleet.states() == [S.READY]


@pytest.mark.parametrize("state", [S.EMPTY, S.TERMINATING, S.ERROR])
def test_a_notice_for_a_slot_without_a_worker_is_ignored(fleet, state):
    slot = fleet.slot(state)
    assert not give_notice(fleet, slot)
    tick = fleet.context()
    interrupt(tick)
    slot.refresh_from_db()
    assert (slot.state, slot.interruption_deadline, tick.counts) == (state, None, {})


def test_a_second_notice_does_not_move_the_deadline(fleet):
    slot = fleet.slot()
    assert give_notice(fleet, slot)
    fleet.clock.advance(seconds=30)
    assert not give_notice(fleet, slot)


@pytest.mark.parametrize(
    ("status", "after", "phase"),
    [
        (SessionStatus.SCHEDULED, SessionStatus.PENDING, Phase.PENDING),
        (SessionStatus.INSTANTIATING, SessionStatus.PENDING, Phase.PENDING),
        (SessionStatus.READY, SessionStatus.STOPPING, Phase.READY),
        (SessionStatus.RUNNING, SessionStatus.RUNNING, Phase.READY),
        (SessionStatus.COLLECTING, SessionStatus.COLLECTING, Phase.READY),
        (SessionStatus.STOPPING, SessionStatus.STOPPING, Phase.READY),
    ],
)
@pytest.mark.parametrize("state", [S.READY, S.DRAINING])
def test_a_notice_requeues_sessions_that_have_not_started_and_stops_ready_ones(
    fleet, session_on, state, status, after, phase
):
    slot = fleet.slot()
    session = session_on(slot, status)
    type(slot).objects.filter(pk=slot.pk).update(state=state)
    slot.refresh_from_db()
    give_notice(fleet, slot)
    interrupt(fleet.context())
    session.refresh_from_db()
    assert session.status == after
    assert phases(session.reservations.order_by("-attempt")[:1]) == [phase]


@pytest.fixture
def running_session(fleet, project, operator):
    """`running_session(slot, …)`: a preemptible session that runs on a slot for two hours."""

    def make(slot, *, preemptible=True, **fields):
        definition = make_definition(pool=fleet.pool.name, preemptible=preemptible)
        session = make_session(definition, project, operator, now=fleet.clock(), **fields)
        fleet.assign(session, slot)
        for step in WAY_TO[SessionStatus.RUNNING][1:]:
            transition_session(session=session, to=step, actor=SYSTEM, now=fleet.clock())
        return session

    return make


def statuses_after(fleet, session, *offsets):
    """Return the status of a session after ticks at these seconds from now."""
    start, statuses = fleet.clock(), []
    for offset in offsets:
        fleet.clock.now = start + timedelta(seconds=offset)
        fleet.tick_without_errors()
        session.refresh_from_db()
        statuses.append(session.status)
    return statuses


def other_sessions(session):
    return list(LabletSession.objects.exclude(pk=session.pk))


@pytest.mark.parametrize(
    ("seconds_left", "offsets", "statuses"),
    [
        (120, (0, 74, 75, 80, 119), "RUNNING RUNNING COLLECTING COLLECTING COLLECTING"),
        (120, (0, 5, 110, 120), "RUNNING RUNNING COLLECTING FAILED"),
        (120, (0, 5, 300), "RUNNING RUNNING FAILED"),
        (30, (0, 30), "COLLECTING FAILED"),
        (-5, (0,), "FAILED"),
    ],
    ids=["in time", "missed ticks, no controller", "no tick until it is gone", "short notice", "late notice"],
)
def test_a_running_session_uses_the_remaining_time_and_is_requested_again(
    fleet, running_session, seconds_left, offsets, statuses
):
    slot = fleet.slot()
    session = running_session(slot, priority=90)
    requested = fleet.clock()
    fleet.clock.advance(minutes=20)
    record_interruption(
        slot=slot, deadline=fleet.clock() + timedelta(seconds=seconds_left), now=fleet.clock()
    )
    assert statuses_after(fleet, session, *offsets) == statuses.split()
    (again,) = other_sessions(session)
    ended = session.transitions.exclude(from_status="").get(from_status=SessionStatus.RUNNING)
    assert (again.starts_at, again.ends_at) == (ended.at, session.ends_at)
    assert (again.definition, again.owner, again.priority, again.pool) == (
        session.definition, session.owner, session.priority, session.pool,
    )  # fmt: skip
    assert again.transitions.first().reason == (
        f"for the rest of the timeslot of {session}, which was interrupted"
    )
    reservation = again.reservations.get()
    assert (reservation.phase, reservation.created_at) == (Phase.PENDING, requested)
    entry = ChangeLog.objects.get(event="session.interrupted")
    assert entry.message == f"{session} was interrupted and is requested again as {again}"


def test_an_interrupted_session_is_not_requested_again_without_need_or_permission(fleet, running_session):
    """The definition is not preemptible or not active, the timeslot ends first, or the owner ended it."""
    slot = fleet.slot()
    soon = fleet.clock() + timedelta(seconds=119)
    kept, inactive, short, ended = (
        running_session(slot, preemptible=False), running_session(slot),
        running_session(slot, ends_at=soon), running_session(slot),
    )  # fmt: skip
    type(inactive.definition).objects.filter(pk=inactive.definition_id).update(
        status=DefinitionStatus.DEPRECATED
    )
    give_notice(fleet, slot)
    fleet.tick_without_errors()
    cancel_session(session=ended, actor=SYSTEM, now=fleet.clock(), reason="done")
    fleet.clock.advance(seconds=80)
    fleet.tick_without_errors()
    assert LabletSession.objects.count() == 4
    for session in (kept, inactive, short):
        session.refresh_from_db()
        assert session.status == SessionStatus.COLLECTING
    texts = {
        entry.object_id: entry.message for entry in ChangeLog.objects.filter(event="session.interrupted")
    }
    assert texts.keys() == {str(each.pk) for each in (kept, inactive, short)}
    assert "cannot be requested again" in texts[str(inactive.pk)]
    assert texts[str(kept.pk)] == f"{kept} was interrupted and is not requested again"


def test_a_session_that_is_extended_during_the_notice_is_requested_again_until_its_new_end(
    fleet, running_session
):
    slot = fleet.slot()
    session = running_session(slot, ends_at=fleet.clock() + timedelta(seconds=90))
    give_notice(fleet, slot)
    fleet.tick_without_errors()
    later = fleet.clock() + timedelta(hours=1)
    extend_session(session=session, ends_at=later, actor=SYSTEM, now=fleet.clock())
    fleet.clock.advance(seconds=80)
    fleet.tick_without_errors()
    assert [each.ends_at for each in other_sessions(session)] == [later]


def test_each_interrupted_session_is_requested_again_in_its_own_transaction(
    fleet, running_session, monkeypatch
):
    """If one session cannot be requested again, the sessions before it still are."""
    slot = fleet.slot()
    sessions = [running_session(slot) for _ in range(2)]
    give_notice(fleet, slot)
    slot.refresh_from_db()
    create_calls = iter([lost_slots.create_session, None])
    monkeypatch.setattr(lost_slots, "create_session", lambda **fields: next(create_calls)(**fields))
    with pytest.raises(TypeError):
        fail_sessions_on_slot(slot=slot, reason="gone", now=fleet.clock())
    statuses = LabletSession.objects.filter(pk__in=[each.pk for each in sessions]).values_list("status")
    assert sorted(statuses) == [(SessionStatus.RUNNING,), (SessionStatus.STOPPING,)]
    monkeypatch.undo()
    fail_sessions_on_slot(slot=slot, reason="gone", now=fleet.clock())
    assert LabletSession.objects.count() == 2 * len(sessions)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_a_tick_and_the_reconciler_at_the_same_time_request_a_session_again_once(
    fleet, running_session, at_once
):
    slot = fleet.slot()
    sessions = [running_session(slot) for _ in range(3)]
    give_notice(fleet, slot)
    slot.refresh_from_db()
    now = fleet.clock.advance(seconds=100)
    reason, deadline = "its worker is interrupted", slot.interruption_deadline
    results = at_once(
        *[lambda: stop_sessions_on_slot(slot=slot, deadline=deadline, reason=reason, now=now)] * 2,
        *[lambda: fail_sessions_on_slot(slot=slot, reason=reason, now=now)] * 2,
    )
    assert all(isinstance(each, int) for each in results), results
    assert LabletSession.objects.count() == 2 * len(sessions)


def test_a_notice_that_is_withdrawn_leaves_a_running_session_alone(fleet, running_session):
    slot = fleet.slot()
    session = running_session(slot)
    give_notice(fleet, slot)
    assert statuses_after(fleet, session, 0, 60) == ["RUNNING", "RUNNING"]
    type(slot).objects.filter(pk=slot.pk).update(interruption_deadline=None)
    assert statuses_after(fleet, session, 60, 600) == ["RUNNING", "RUNNING"]
    assert other_sessions(session) == []


def test_reservations_without_a_session_fail_at_the_deadline(fleet):
    slot = fleet.slot()
    reservation = fleet.assign(fleet.reservation(ttl=9999), slot)
    give_notice(fleet, slot)
    interrupt(fleet.context())
    assert phases([reservation]) == [Phase.READY]
    fleet.clock.advance(minutes=2)
    interrupt(fleet.context())
    slot.refresh_from_db()
    assert phases([reservation]) == [Phase.FAILED]
    assert slot.lease_count == 0


def test_the_step_counts_interrupted_and_lost_slots(fleet):
    for slot in (fleet.slot(), fleet.slot(S.BOOTING)):
        give_notice(fleet, slot)
    first = fleet.context()
    interrupt(first)
    fleet.clock.advance(minutes=2)
    second = fleet.context()
    interrupt(second)
    assert (first.counts, second.counts) == ({"interrupted": 2}, {"lost": 2})


def test_a_failing_slot_does_not_block_the_others(fleet, monkeypatch):
    from scheduling.capacity.steps import interrupt as step

    slots = [fleet.slot() for _ in range(3)]
    for slot in slots:
        give_notice(fleet, slot)
    real = step.stop_sessions_on_slot

    def break_one(*, slot, **fields):
        if slot.pk == slots[1].pk:
            raise ZeroDivisionError("oh")
        return real(slot=slot, **fields)

    monkeypatch.setattr(step, "stop_sessions_on_slot", break_one)
    report = fleet.tick()
    assert report.errors == {"interrupt": "ZeroDivisionError: oh"}
    assert sorted(fleet.states()) == [S.DRAINING, S.DRAINING, S.READY]
