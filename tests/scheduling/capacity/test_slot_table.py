"""Every pair of slot states: allowed transitions and their side effects."""

from __future__ import annotations

from datetime import timedelta
from itertools import product

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.models import ChangeLog
from scheduling.models import AttemptOutcome, Slot, SlotState
from scheduling.services.heartbeats import record_heartbeat
from scheduling.services.slots import (
    STATE_EVENTS,
    STEP_EVENTS,
    can_cancel_drain,
    cancel_drain,
    cordon_slot,
    drain_slot,
    move_slot,
    retry_slot,
    terminate_slot,
)

S = SlotState
ALLOWED = {
    S.EMPTY: {S.LAUNCHING},
    S.LAUNCHING: {S.BOOTING, S.TERMINATING, S.EMPTY, S.ERROR},
    S.BOOTING: {S.BINDING, S.DRAINING, S.TERMINATING, S.EMPTY},
    S.BINDING: {S.READY, S.DRAINING, S.TERMINATING, S.EMPTY},
    S.READY: {S.DRAINING, S.TERMINATING, S.EMPTY},
    S.DRAINING: {S.READY, S.TERMINATING, S.EMPTY},
    S.TERMINATING: {S.EMPTY, S.ERROR},
    S.ERROR: {S.EMPTY},
}
SECONDS = {S.LAUNCHING: 300, S.BOOTING: 300, S.BINDING: 180, S.DRAINING: 120, S.TERMINATING: 300}
DEADLINES = {state: timedelta(seconds=SECONDS[state]) if state in SECONDS else None for state in S}


@pytest.mark.parametrize(("old", "new"), list(product(S, S)))
def test_each_pair_of_states_is_allowed_or_rejected(fleet, old, new):
    slot = fleet.slot(old)
    event = STEP_EVENTS.get((old, new), STATE_EVENTS[new])
    before = ChangeLog.objects.filter(event=event).count()
    if new not in ALLOWED[old]:
        with pytest.raises(StateConflict, match="cannot become"):
            move_slot(slot=slot, to=new, now=fleet.clock())
        slot.refresh_from_db()
        assert slot.state == old
        return
    at = fleet.clock.advance(seconds=7)
    assert move_slot(slot=slot, to=new, now=at, reason="because")
    slot.refresh_from_db()
    assert (slot.state, slot.reason, slot.last_state_change) == (new, "because", at)
    assert slot.state_deadline == (at + DEADLINES[new] if DEADLINES[new] else None)
    assert ChangeLog.objects.filter(event=event).count() == before + 1


@pytest.mark.parametrize("old", [state for state in S if S.EMPTY in ALLOWED[state]])
def test_an_empty_slot_keeps_no_data_of_its_instance(fleet, old):
    slot = fleet.slot(old, cordoned=True, interruption_deadline=fleet.clock(), version="2.9", is_spot=True)
    assert move_slot(slot=slot, to=S.EMPTY, now=fleet.clock())
    slot.refresh_from_db()
    assert (slot.instance_id, slot.endpoint, slot.version, slot.offering) == ("", "", "", "")
    assert (slot.cordoned, slot.is_spot, slot.interruption_deadline, slot.idle_since) == (
        False,
        False,
        None,
        None,
    )


@pytest.mark.parametrize("new", sorted(ALLOWED[S.LAUNCHING] - {S.BOOTING}))
def test_leaving_launching_without_an_instance_closes_the_attempt(fleet, new):
    slot = fleet.slot(S.LAUNCHING)
    move_slot(slot=slot, to=new, now=fleet.clock(), reason="called off")
    assert slot.attempts.get().outcome == AttemptOutcome.LOST


def test_a_stale_copy_of_a_slot_changes_nothing(fleet):
    slot = fleet.slot(S.READY)
    copy = Slot.objects.select_related("pool").get(pk=slot.pk)
    assert move_slot(slot=slot, to=S.DRAINING, now=fleet.clock(), reason="first")
    assert not move_slot(slot=copy, to=S.TERMINATING, now=fleet.clock(), reason="second")
    slot.refresh_from_db()
    assert (slot.state, slot.reason) == (S.DRAINING, "first")


@pytest.mark.parametrize(("to", "unleased", "moves"), [
    (S.DRAINING, False, True),
    (S.DRAINING, True, False),
    (S.TERMINATING, True, False),
    (S.EMPTY, False, False),
])  # fmt: skip
def test_a_slot_with_a_lease_does_not_become_empty_nor_move_if_unleased_is_required(
    fleet, to, unleased, moves
):
    slot = fleet.slot()
    fleet.assign(fleet.reservation(), slot)
    assert move_slot(slot=slot, to=to, now=fleet.clock(), unleased=unleased) == moves


@pytest.mark.parametrize(
    ("action", "states"),
    [
        (drain_slot, {S.BOOTING, S.BINDING, S.READY}),
        (terminate_slot, {S.LAUNCHING, S.BOOTING, S.BINDING, S.READY, S.DRAINING}),
        (retry_slot, {S.ERROR}),
        (cancel_drain, {S.DRAINING}),
    ],
)
@pytest.mark.parametrize("state", S)
def test_operator_actions_are_allowed_only_in_their_states(fleet, as_operator, action, states, state):
    slot = fleet.slot(state)
    arguments = {"slot": slot, "reason": "maintenance", "actor": as_operator, "now": fleet.clock()}
    if state in states:
        assert action(**arguments).state != state
        assert ChangeLog.objects.filter(reason="maintenance", actor="otto").count() == 1
    else:
        with pytest.raises(StateConflict, match=slot.get_state_display().lower()):
            action(**arguments)
        slot.refresh_from_db()
        assert slot.state == state


@pytest.mark.parametrize("state", S)
def test_only_live_slots_are_cordoned_and_only_once(fleet, as_operator, state):
    slot = fleet.slot(state)
    arguments = {"slot": slot, "reason": "noise", "actor": as_operator, "now": fleet.clock()}
    if state in (S.EMPTY, S.TERMINATING, S.ERROR):
        with pytest.raises(StateConflict):
            cordon_slot(cordoned=True, **arguments)
        return
    assert cordon_slot(cordoned=True, **arguments).cordoned
    with pytest.raises(StateConflict, match="cordoned already"):
        cordon_slot(cordoned=True, **arguments)
    assert not cordon_slot(cordoned=False, **arguments).cordoned


@pytest.mark.parametrize("action", [drain_slot, cancel_drain, terminate_slot, retry_slot])
def test_operator_actions_require_a_reason(fleet, as_operator, action):
    slot = fleet.slot()
    with pytest.raises(InvalidInput) as error:
        action(slot=slot, reason="  ", actor=as_operator, now=fleet.clock())
    assert "reason" in error.value.fields


def test_a_slot_with_sessions_is_not_terminated(fleet, as_operator):
    slot = fleet.slot()
    fleet.assign(fleet.reservation(), slot)
    with pytest.raises(StateConflict, match="has 1 lease"):
        terminate_slot(slot=slot, reason="now", actor=as_operator, now=fleet.clock())


def test_a_stale_copy_of_a_slot_with_a_new_session_is_not_terminated(fleet, as_operator):
    slot = fleet.slot()
    stale = Slot.objects.select_related("pool").get(pk=slot.pk)
    fleet.assign(fleet.reservation(), slot)
    with pytest.raises(StateConflict):
        terminate_slot(slot=stale, reason="now", actor=as_operator, now=fleet.clock())


def test_retrying_ends_the_back_off_of_the_pool(configure_pool, as_operator):
    slot = configure_pool().slot(S.ERROR)
    fleet = configure_pool(
        backoff_since="2026-12-31T00:00:00Z", backoff_until="2027-01-01T00:00:00Z", failures=4
    )
    retry_slot(slot=slot, reason="mended", actor=as_operator, now=fleet.clock())
    assert (fleet.reload_pool().backoff_until, fleet.pool.backoff_since, fleet.pool.failures) == (
        None,
        None,
        0,
    )


def test_a_heartbeat_is_recorded(fleet):
    slot = fleet.slot()
    record_heartbeat(slot=slot, actor=SYSTEM, now=fleet.clock(), version="2.10.0")
    record_heartbeat(slot=slot, actor=SYSTEM, now=fleet.clock.advance(seconds=5))
    slot.refresh_from_db()
    assert (slot.last_heartbeat, slot.version) == (fleet.clock(), "2.10.0")


@pytest.mark.parametrize(("leases", "message"), [(1, "still has 1 lease"), (2, "still has 2 leases")])
def test_a_slot_in_error_with_leases_is_not_retried_and_shows_the_reason(fleet, as_operator, leases, message):
    slot = fleet.slot(S.ERROR, lease_count=leases)
    with pytest.raises(StateConflict, match=message):
        retry_slot(slot=slot, reason="try", actor=as_operator, now=fleet.clock())
    slot.refresh_from_db()
    assert slot.state == S.ERROR


def test_retrying_a_stale_copy_reports_the_current_state(fleet, as_operator):
    slot = fleet.slot(S.ERROR)
    stale = Slot.objects.get(pk=slot.pk)
    retry_slot(slot=slot, reason="try", actor=as_operator, now=fleet.clock())
    with pytest.raises(StateConflict, match="is empty; only a slot in error can be retried"):
        retry_slot(slot=stale, reason="try", actor=as_operator, now=fleet.clock())


def test_a_slot_whose_drain_is_cancelled_serves_again_with_a_new_idle_time(configure_pool, as_operator):
    fleet = configure_pool(min_slots=0, warm_slots=0)
    slot = fleet.slot()
    fleet.clock.advance(hours=2)
    fleet.tick()
    slot.refresh_from_db()
    assert slot.state == S.DRAINING
    cancel_drain(slot=slot, reason="A class starts", actor=as_operator, now=fleet.clock())
    fleet.tick()
    slot.refresh_from_db()
    assert (slot.state, slot.idle_since, slot.state_deadline) == (S.READY, fleet.clock(), None)
    entry = ChangeLog.objects.get(event="slot.drain_cancelled")
    assert (entry.actor, entry.reason, entry.before, entry.after) == (
        "otto",
        "A class starts",
        {"state": "DRAINING"},
        {"state": "READY"},
    )
    fleet.clock.advance(hours=2)
    fleet.tick()
    slot.refresh_from_db()
    assert slot.state == S.DRAINING


@pytest.mark.parametrize(("fields", "message"), [
    ({"interruption_deadline": "2027-01-01T00:00:00Z"}, "has an interruption notice"),
    ({"heartbeat_lost_at": "2026-01-01T00:00:00Z"}, "does not respond"),
    ({"unanswered_since": "2026-01-01T00:00:00Z"}, "does not respond"),
    ({"idle_since": None}, "has never been ready"),
    ({"state": S.TERMINATING}, "is terminating; only the drain of a draining slot"),
])  # fmt: skip
def test_a_drain_is_cancelled_only_while_the_worker_can_serve(fleet, as_operator, fields, message):
    slot = fleet.slot(S.DRAINING)
    assert can_cancel_drain(slot)
    # The copy is stale: only the stored row decides.
    Slot.objects.filter(pk=slot.pk).update(**fields)
    with pytest.raises(StateConflict, match=message):
        cancel_drain(slot=slot, reason="needed", actor=as_operator, now=fleet.clock())
    slot.refresh_from_db()
    assert slot.state != S.READY
    assert not can_cancel_drain(slot)
