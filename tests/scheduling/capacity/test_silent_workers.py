"""Workers without a heartbeat are probed, and given up after a timeout."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog
from scheduling.capacity import reconciler, silent_workers
from scheduling.capacity.runtimes.base import Health
from scheduling.models import Slot, SlotState
from scheduling.services.heartbeats import record_heartbeat
from scheduling.services.slots import move_slot

S = SlotState
NO_RESPONSE = Health(False, "no route to host")
GIVEN_UP_REASON = "its worker no longer responds: no route to host"


def state_of(slot):
    slot.refresh_from_db()
    return slot.state


def status_of(session):
    session.refresh_from_db()
    return session.status


def let_time_pass(fleet, *, minutes: float, every: float = 30) -> None:
    """Let time pass, with a reconciliation at each interval."""
    for _ in range(round(minutes * 60 / every)):
        fleet.clock.advance(seconds=every)
        fleet.reconcile()


def make_silent(fleet, *slots: Slot) -> None:
    """Let these workers not respond and all others respond."""
    silent = {slot.instance_id for slot in slots}
    fleet.runtime.probe = lambda instance: NO_RESPONSE if instance.id in silent else Health(True)


def send_heartbeat(fleet, slot: Slot) -> None:
    record_heartbeat(slot=slot, actor=SYSTEM, now=fleet.clock())


def test_a_worker_that_is_unreachable_for_ten_minutes_is_given_up(fleet, session_on):
    slot = fleet.slot()
    waiting, running = session_on(slot), session_on(slot, SessionStatus.RUNNING)
    make_silent(fleet, slot)
    let_time_pass(fleet, minutes=9.5)
    assert (state_of(slot), slot.unanswered_since is not None) == (S.READY, True)
    let_time_pass(fleet, minutes=0.5)
    assert (state_of(slot), slot.reason, slot.lease_count) == (S.TERMINATING, GIVEN_UP_REASON, 0)
    assert (status_of(waiting), status_of(running)) == (SessionStatus.PENDING, SessionStatus.FAILED)


def test_one_failed_probe_has_no_effect(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, SessionStatus.RUNNING)
    fleet.clock.advance(minutes=5)
    make_silent(fleet, slot)
    fleet.reconcile()
    make_silent(fleet)
    let_time_pass(fleet, minutes=20)
    assert (state_of(slot), slot.unanswered_since, slot.failed_probes) == (S.READY, None, 0)
    assert (status_of(session), fleet.runtime.count("terminate")) == (SessionStatus.RUNNING, 0)


def test_a_worker_is_not_given_up_after_few_probes(fleet):
    """For example after LCM itself was down: the probes are few, but far apart."""
    slot = fleet.slot()
    make_silent(fleet, slot)
    for state in (S.READY, S.READY, S.TERMINATING):
        fleet.clock.advance(hours=1)
        fleet.reconcile()
        assert state_of(slot) == state


@pytest.mark.parametrize("sign", ["a heartbeat", "a response"])
def test_a_heartbeat_or_response_restarts_the_timeout(fleet, sign):
    slot = fleet.slot()
    make_silent(fleet, slot)
    let_time_pass(fleet, minutes=9)
    if sign == "a heartbeat":
        send_heartbeat(fleet, slot)
    else:
        make_silent(fleet)
        fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.unanswered_since, slot.failed_probes) == (None, 0)
    make_silent(fleet, slot)
    let_time_pass(fleet, minutes=5)
    assert state_of(slot) == S.READY
    let_time_pass(fleet, minutes=6)
    assert state_of(slot) == S.EMPTY


def test_a_heartbeat_during_the_probe_keeps_the_worker_and_its_sessions(fleet, session_on, monkeypatch):
    slot = fleet.slot()
    session = session_on(slot, SessionStatus.RUNNING)
    make_silent(fleet, slot)
    let_time_pass(fleet, minutes=9.5)

    def after_the_probes(probe_results):
        send_heartbeat(fleet, slot)
        return False

    monkeypatch.setattr(reconciler, "is_pool_unreachable", after_the_probes)
    fleet.clock.advance(seconds=30)
    fleet.reconcile()
    assert (state_of(slot), slot.failed_probes) == (S.READY, 0)
    assert (status_of(session), slot.lease_count) == (SessionStatus.RUNNING, 1)


@pytest.mark.parametrize(("has_heartbeat", "is_ready"), [(True, False), (False, True)])
def test_a_worker_that_its_controller_or_a_probe_can_reach_stays(fleet, has_heartbeat, is_ready):
    slot = fleet.slot()
    fleet.runtime.health = Health(is_ready, "no route to host")
    for _ in range(60):
        fleet.clock.advance(minutes=1)
        if has_heartbeat:
            send_heartbeat(fleet, slot)
        fleet.reconcile()
    assert state_of(slot) == S.READY


def test_sessions_continue_if_no_worker_of_the_pool_responds(fleet, session_on, caplog):
    slots = [fleet.slot(), fleet.slot()]
    sessions = [session_on(slot, SessionStatus.RUNNING) for slot in slots]
    fleet.runtime.health = NO_RESPONSE
    let_time_pass(fleet, minutes=34.5)
    assert [state_of(slot) for slot in slots] == [S.READY] * 2
    assert "silent_workers_unreachable" in caplog.messages
    fleet.runtime.health = Health(True)
    let_time_pass(fleet, minutes=1)
    assert [status_of(session) for session in sessions] == [SessionStatus.RUNNING] * 2
    assert [slot.unanswered_since for slot in fleet.slots()] == [None, None]


def test_an_unreachable_pool_is_given_up_after_a_longer_timeout(fleet, session_on):
    slots = [fleet.slot(), fleet.slot()]
    session = session_on(slots[0], SessionStatus.RUNNING)
    fleet.runtime.health = NO_RESPONSE
    let_time_pass(fleet, minutes=35)
    assert [state_of(slot) for slot in slots] == [S.TERMINATING] * 2
    assert status_of(session) == SessionStatus.FAILED


def test_a_worker_that_stays_silent_keeps_its_timeout_when_others_return(fleet):
    first, second = fleet.slot(), fleet.slot()
    fleet.runtime.health = NO_RESPONSE
    let_time_pass(fleet, minutes=20)
    make_silent(fleet, second)
    let_time_pass(fleet, minutes=10)
    assert [state_of(first), state_of(second)] == [S.READY] * 2
    let_time_pass(fleet, minutes=5)
    assert [state_of(first), state_of(second)] == [S.READY, S.TERMINATING]


def test_a_silent_worker_is_given_up_if_another_responds(fleet):
    """Their controller is down too: both are silent."""
    first, second = fleet.slot(), fleet.slot()
    make_silent(fleet, second)
    let_time_pass(fleet, minutes=10)
    assert [state_of(first), state_of(second)] == [S.READY, S.TERMINATING]


def test_the_next_worker_of_a_slot_starts_without_failed_probes(fleet):
    slot = fleet.slot()
    make_silent(fleet, slot)
    let_time_pass(fleet, minutes=12)
    assert (state_of(slot), slot.unanswered_since, slot.failed_probes) == (S.EMPTY, None, 0)
    assert not slot.failed_together


@pytest.mark.parametrize(
    ("probe_results", "expected"),
    [
        ([], False),
        ([NO_RESPONSE], False),
        ([NO_RESPONSE, NO_RESPONSE], True),
        ([NO_RESPONSE, Health(True)], False),
    ],
)
def test_a_pool_is_unreachable_if_several_probes_all_fail(probe_results, expected):
    assert silent_workers.is_pool_unreachable(probe_results) is expected


def test_the_page_of_a_slot_shows_since_when_probes_fail(fleet, client, viewer):
    slot = fleet.slot()
    client.force_login(viewer)
    address = f"/slots/{slot.pk}/"
    assert "No response since" not in client.get(address).content.decode()
    Slot.objects.filter(pk=slot.pk).update(unanswered_since=fleet.clock() - timedelta(minutes=3))
    assert "No response since" in client.get(address).content.decode()


@pytest.mark.parametrize("state", [S.READY, S.DRAINING])
def test_lost_and_returned_heartbeats_are_logged_once(fleet, session_on, state):
    slot = fleet.slot()
    session_on(slot, SessionStatus.RUNNING)
    if state == S.DRAINING:
        assert move_slot(slot=slot, to=state, now=fleet.clock())
    let_time_pass(fleet, minutes=4.5)
    assert heartbeat_events(slot) == []
    let_time_pass(fleet, minutes=3)
    assert heartbeat_events(slot) == ["slot.heartbeat_lost"]
    for _ in range(2):
        slot.refresh_from_db()
        send_heartbeat(fleet, slot)
    let_time_pass(fleet, minutes=1)
    assert heartbeat_events(slot) == ["slot.heartbeat_lost", "slot.heartbeat_back"]


def test_a_heartbeat_of_a_stale_copy_is_not_logged_as_lost(fleet):
    slot = fleet.slot()
    fleet.clock.advance(minutes=6)
    stale = Slot.objects.select_related("pool").get(pk=slot.pk)
    send_heartbeat(fleet, slot)
    silent_workers.record_lost_heartbeat(stale, fleet.clock())
    assert heartbeat_events(slot) == []


def heartbeat_events(slot: Slot) -> list[str]:
    found = ChangeLog.objects.filter(object_id=str(slot.pk), event__startswith="slot.heartbeat")
    return list(found.order_by("pk").values_list("event", flat=True))
