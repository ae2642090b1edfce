"""Step 2: slots that will be taken away, in whatever state the notice finds them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.lifecycle import SessionStatus
from scheduling.models import LIVE, AttemptOutcome, Phase, SlotState
from scheduling.services.slots import note_interruption
from scheduling.steps.interrupt import interrupt
from tests.scheduling.fleet import phases

S = SlotState
TWO_MINUTES = timedelta(minutes=2)


def notice(fleet, slot):
    return note_interruption(slot=slot, deadline=fleet.clock() + TWO_MINUTES, now=fleet.clock())


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
    assert notice(fleet, slot)
    interrupt(fleet.context())
    slot.refresh_from_db()
    assert slot.state == after


@pytest.mark.parametrize("state", LIVE)
def test_at_the_deadline_it_is_on_its_way_out_whatever_it_was(fleet, state):
    slot = fleet.slot(state)
    notice(fleet, slot)
    fleet.clock.advance(minutes=2)
    interrupt(fleet.context())
    slot.refresh_from_db()
    assert slot.state == S.TERMINATING


@pytest.mark.parametrize("state", LIVE)
def test_an_interrupted_slot_ends_empty_and_can_be_launched_again(fleet, state):
    slot = fleet.slot(state)
    notice(fleet, slot)
    for _ in range(5):
        fleet.round(60)
    assert fleet.states() == [S.EMPTY]
    assert not slot.attempts.filter(outcome=AttemptOutcome.OPEN).exists()
    fleet.reservation(ttl=9999)
    for _ in range(4):
        fleet.round(60)
    assert fleet.states() == [S.READY]


@pytest.mark.parametrize("state", [S.EMPTY, S.TERMINATING, S.ERROR])
def test_a_notice_for_what_is_not_alive_is_nothing(fleet, state):
    slot = fleet.slot(state)
    assert not notice(fleet, slot)
    tick = fleet.context()
    interrupt(tick)
    slot.refresh_from_db()
    assert (slot.state, slot.interruption_deadline, tick.counts) == (state, None, {})


def test_a_second_notice_does_not_move_the_deadline(fleet):
    slot = fleet.slot()
    assert notice(fleet, slot)
    fleet.clock.advance(seconds=30)
    assert not notice(fleet, slot)


@pytest.mark.parametrize(
    ("status", "after", "phase"),
    [
        (SessionStatus.SCHEDULED, SessionStatus.PENDING, Phase.PENDING),
        (SessionStatus.INSTANTIATING, SessionStatus.PENDING, Phase.PENDING),
        (SessionStatus.READY, SessionStatus.STOPPING, Phase.READY),
        (SessionStatus.RUNNING, SessionStatus.STOPPING, Phase.READY),
        (SessionStatus.COLLECTING, SessionStatus.STOPPING, Phase.READY),
        (SessionStatus.STOPPING, SessionStatus.STOPPING, Phase.READY),
    ],
)
@pytest.mark.parametrize("state", [S.READY, S.DRAINING])
def test_sessions_on_it_are_told_and_those_that_have_not_started_wait_again(
    fleet, lab_on, state, status, after, phase
):
    slot = fleet.slot()
    session = lab_on(slot, status)
    type(slot).objects.filter(pk=slot.pk).update(state=state)
    slot.refresh_from_db()
    notice(fleet, slot)
    interrupt(fleet.context())
    session.refresh_from_db()
    assert session.status == after
    assert phases(session.reservations.order_by("-attempt")[:1]) == [phase]


def test_bare_holders_keep_their_claim_until_the_deadline_and_lose_it_then(fleet):
    slot = fleet.slot()
    claim = fleet.put(fleet.reservation(ttl=9999), slot)
    notice(fleet, slot)
    interrupt(fleet.context())
    assert phases([claim]) == [Phase.READY]
    fleet.clock.advance(minutes=2)
    interrupt(fleet.context())
    slot.refresh_from_db()
    assert phases([claim]) == [Phase.FAILED]
    assert slot.lease_count == 0


def test_counts_say_what_was_done(fleet):
    for slot in (fleet.slot(), fleet.slot(S.BOOTING)):
        notice(fleet, slot)
    first = fleet.context()
    interrupt(first)
    fleet.clock.advance(minutes=2)
    second = fleet.context()
    interrupt(second)
    assert (first.counts, second.counts) == ({"interrupted": 2}, {"taken_away": 2})


def test_a_slot_that_fails_does_not_keep_the_others_from_draining(fleet, monkeypatch):
    from scheduling.steps import interrupt as step

    slots = [fleet.slot() for _ in range(3)]
    for slot in slots:
        notice(fleet, slot)
    real = step.warn_sessions

    def break_one(*, slot, **fields):
        if slot.pk == slots[1].pk:
            raise ZeroDivisionError("oh")
        return real(slot=slot, **fields)

    monkeypatch.setattr(step, "warn_sessions", break_one)
    report = fleet.tick()
    assert report.errors == {"interrupt": "ZeroDivisionError: oh"}
    assert sorted(fleet.states()) == [S.DRAINING, S.DRAINING, S.READY]
