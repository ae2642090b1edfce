"""Workers without heartbeat: probed, and given up after failing for long."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from scheduling.capacity import reconciler, silent_workers
from scheduling.capacity.runtimes.base import Health
from scheduling.models import Slot, SlotState
from scheduling.services.heartbeats import record_heartbeat

S = SlotState
AWAY = Health(False, "no route to host")
GONE = "its worker no longer responds: no route to host"


def state_of(slot):
    slot.refresh_from_db()
    return slot.state


def status_of(session):
    session.refresh_from_db()
    return session.status


def pass_by(fleet, *, minutes: float, every: float = 30) -> None:
    """Let time pass, with a reconciliation at each interval."""
    for _ in range(round(minutes * 60 / every)):
        fleet.clock.advance(seconds=every)
        fleet.reconcile()


def away(fleet, *slots: Slot) -> None:
    """These workers do not answer; the others do."""
    lost = {slot.instance_id for slot in slots}
    fleet.runtime.probe = lambda instance: AWAY if instance.id in lost else Health(True)


def heard_of(fleet, slot: Slot) -> None:
    record_heartbeat(slot=slot, actor=SYSTEM, now=fleet.clock())


def test_a_worker_that_is_unreachable_for_long_is_given_up(fleet, session_on):
    slot = fleet.slot()
    waits, runs = session_on(slot), session_on(slot, SessionStatus.RUNNING)
    away(fleet, slot)
    pass_by(fleet, minutes=9.5)
    assert (state_of(slot), slot.unanswered_since is not None) == (S.READY, True)
    pass_by(fleet, minutes=0.5)
    assert (state_of(slot), slot.reason, slot.lease_count) == (S.TERMINATING, GONE, 0)
    assert (status_of(waits), status_of(runs)) == (SessionStatus.PENDING, SessionStatus.FAILED)


def test_one_failed_probe_ends_nothing(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, SessionStatus.RUNNING)
    fleet.clock.advance(minutes=5)
    away(fleet, slot)
    fleet.reconcile()
    away(fleet)
    pass_by(fleet, minutes=20)
    assert (state_of(slot), slot.unanswered_since, slot.failed_probes) == (S.READY, None, 0)
    assert (status_of(session), fleet.runtime.count("terminate")) == (SessionStatus.RUNNING, 0)


def test_few_probes_are_not_enough_however_far_apart(fleet):
    """For example after LCM itself was down."""
    slot = fleet.slot()
    away(fleet, slot)
    for state in (S.READY, S.READY, S.TERMINATING):
        fleet.clock.advance(hours=1)
        fleet.reconcile()
        assert state_of(slot) == state


@pytest.mark.parametrize("sign", ["a heartbeat", "an answer"])
def test_a_sign_of_life_starts_the_time_again(fleet, sign):
    slot = fleet.slot()
    away(fleet, slot)
    pass_by(fleet, minutes=9)
    if sign == "a heartbeat":
        heard_of(fleet, slot)
    else:
        away(fleet)
        fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.unanswered_since, slot.failed_probes) == (None, 0)
    away(fleet, slot)
    pass_by(fleet, minutes=5)
    assert state_of(slot) == S.READY
    pass_by(fleet, minutes=6)
    assert state_of(slot) == S.EMPTY


def test_a_heartbeat_during_the_probe_keeps_the_worker_and_its_sessions(fleet, session_on, monkeypatch):
    slot = fleet.slot()
    session = session_on(slot, SessionStatus.RUNNING)
    away(fleet, slot)
    pass_by(fleet, minutes=9.5)

    def after_the_probes(asked):
        heard_of(fleet, slot)
        return False

    monkeypatch.setattr(reconciler, "is_pool_unreachable", after_the_probes)
    fleet.clock.advance(seconds=30)
    fleet.reconcile()
    assert (state_of(slot), slot.failed_probes) == (S.READY, 0)
    assert (status_of(session), slot.lease_count) == (SessionStatus.RUNNING, 1)


@pytest.mark.parametrize(("heard", "ready"), [(True, False), (False, True)])
def test_a_worker_that_its_controller_or_we_can_reach_stays(fleet, heard, ready):
    slot = fleet.slot()
    fleet.runtime.health = Health(ready, "no route to host")
    for _ in range(60):
        fleet.clock.advance(minutes=1)
        if heard:
            heard_of(fleet, slot)
        fleet.reconcile()
    assert state_of(slot) == S.READY


def test_when_none_of_several_answers_it_is_our_network_and_their_labs_run_on(fleet, session_on, caplog):
    slots = [fleet.slot(), fleet.slot()]
    sessions = [session_on(slot, SessionStatus.RUNNING) for slot in slots]
    fleet.runtime.health = AWAY
    pass_by(fleet, minutes=34.5)
    assert [state_of(slot) for slot in slots] == [S.READY] * 2
    assert "silent_workers_unreachable" in caplog.messages
    fleet.runtime.health = Health(True)
    pass_by(fleet, minutes=1)
    assert [status_of(session) for session in sessions] == [SessionStatus.RUNNING] * 2
    assert [slot.unanswered_since for slot in fleet.slots()] == [None, None]


def test_workers_that_never_come_back_are_given_up_in_the_end(fleet, session_on):
    slots = [fleet.slot(), fleet.slot()]
    session = session_on(slots[0], SessionStatus.RUNNING)
    fleet.runtime.health = AWAY
    pass_by(fleet, minutes=35)
    assert [state_of(slot) for slot in slots] == [S.TERMINATING] * 2
    assert status_of(session) == SessionStatus.FAILED


def test_one_that_comes_back_later_than_the_others_keeps_its_time(fleet):
    first, second = fleet.slot(), fleet.slot()
    fleet.runtime.health = AWAY
    pass_by(fleet, minutes=20)
    away(fleet, second)
    pass_by(fleet, minutes=10)
    assert [state_of(first), state_of(second)] == [S.READY] * 2
    pass_by(fleet, minutes=5)
    assert [state_of(first), state_of(second)] == [S.READY, S.TERMINATING]


def test_a_silent_worker_is_given_up_if_another_answers(fleet):
    """Their controller is down too: both are silent."""
    first, second = fleet.slot(), fleet.slot()
    away(fleet, second)
    pass_by(fleet, minutes=10)
    assert [state_of(first), state_of(second)] == [S.READY, S.TERMINATING]


def test_the_next_worker_of_a_slot_starts_without_labels_and_counts(fleet):
    slot = fleet.slot()
    away(fleet, slot)
    pass_by(fleet, minutes=12)
    assert (state_of(slot), slot.unanswered_since, slot.failed_probes) == (S.EMPTY, None, 0)
    assert not slot.failed_together


@pytest.mark.parametrize(
    ("asked", "expected"),
    [([], False), ([AWAY], False), ([AWAY, AWAY], True), ([AWAY, Health(True)], False)],
)
def test_several_that_do_not_answer(asked, expected):
    assert silent_workers.is_pool_unreachable(asked) is expected


def test_the_page_of_a_slot_shows_since_when_probes_fail(fleet, client, viewer):
    slot = fleet.slot()
    client.force_login(viewer)
    address = f"/slots/{slot.pk}/"
    assert "No response since" not in client.get(address).content.decode()
    Slot.objects.filter(pk=slot.pk).update(unanswered_since=fleet.clock() - timedelta(minutes=3))
    assert "No response since" in client.get(address).content.decode()
