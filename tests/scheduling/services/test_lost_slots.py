"""Sessions on a slot that is interrupted or lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.lifecycle import SessionStatus
from scheduling.models import Phase, PortAllocation
from scheduling.services.lost_slots import fail_sessions_on_slot, stop_sessions_on_slot
from tests.support.fleet import active_reservation, phases

S = SessionStatus
ON_A_SLOT = [S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING]


@pytest.mark.parametrize("status", ON_A_SLOT)
@pytest.mark.parametrize("seconds_left", [44, 46])
def test_a_notice_requeues_sessions_that_have_not_started_and_lets_the_others_finish(
    fleet, session_on, status, seconds_left
):
    slot = fleet.slot()
    session = session_on(slot, status)
    deadline = fleet.clock() + timedelta(seconds=seconds_left)
    changed_count = stop_sessions_on_slot(
        slot=slot, deadline=deadline, reason="spot is gone soon", now=fleet.clock()
    )
    session.refresh_from_db()
    slot.refresh_from_db()
    new_statuses = {S.SCHEDULED: S.PENDING, S.INSTANTIATING: S.PENDING, S.READY: S.STOPPING}
    if seconds_left == 44:
        new_statuses[S.RUNNING] = S.COLLECTING
    assert session.status == new_statuses.get(status, status)
    assert changed_count == (status in new_statuses)
    assert slot.lease_count == (0 if session.status == S.PENDING else 1)


@pytest.mark.parametrize("status", ON_A_SLOT)
def test_a_loss_requeues_sessions_that_have_not_started_and_fails_the_others(fleet, session_on, status):
    slot = fleet.slot()
    session = session_on(slot, status)
    fail_sessions_on_slot(slot=slot, reason="its worker vanished", now=fleet.clock.advance(minutes=1))
    session.refresh_from_db()
    slot.refresh_from_db()
    is_requeued = status in (S.SCHEDULED, S.INSTANTIATING)
    assert session.status == (S.PENDING if is_requeued else S.FAILED)
    assert slot.lease_count == 0
    assert not PortAllocation.objects.filter(session=session).exists()
    assert session.transitions.last().reason == "its worker vanished"


def test_a_requeued_session_has_a_reservation_for_its_next_attempt(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    fail_sessions_on_slot(slot=slot, reason="gone", now=fleet.clock.advance(minutes=1))
    old, new = session.reservations.order_by("attempt")
    assert (old.attempt, old.phase, old.slot_id) == (1, Phase.RELEASED, slot.pk)
    assert (new.attempt, new.phase, new.slot_id) == (2, Phase.PENDING, None)
    assert active_reservation(session) == new


def test_sessions_on_other_slots_do_not_change(fleet, session_on):
    first, second = fleet.slot(), fleet.slot()
    lost, kept = session_on(first, S.RUNNING), session_on(second, S.RUNNING)
    fail_sessions_on_slot(slot=first, reason="gone", now=fleet.clock())
    lost.refresh_from_db(), kept.refresh_from_db()
    assert (lost.status, kept.status) == (S.FAILED, S.RUNNING)


def test_reservations_without_a_session_fail_with_the_slot_and_record_the_reason(fleet):
    slot = fleet.slot()
    reservations = [fleet.assign(fleet.reservation(), slot) for _ in range(3)]
    fail_sessions_on_slot(slot=slot, reason="its worker vanished", now=fleet.clock())
    assert phases(reservations) == [Phase.FAILED] * 3
    reservations[0].refresh_from_db()
    slot.refresh_from_db()
    assert (reservations[0].reason, slot.lease_count) == ("its worker vanished", 0)


def test_losing_a_slot_twice_has_no_further_effect(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, S.RUNNING)
    for _ in range(2):
        fail_sessions_on_slot(slot=slot, reason="gone", now=fleet.clock())
    assert session.transitions.filter(to_status=S.FAILED).count() == 1
