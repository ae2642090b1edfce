"""Assignments in the database: outdated plans are left to the next tick."""

from __future__ import annotations

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.services.sessions import cancel_session
from scheduling.models import Phase, PortAllocation, Slot, SlotState
from scheduling.services.assignment import assign_slots
from scheduling.services.reservations import release_reservation
from tests.support.fleet import active_reservation, phases, placement_verdict

S = SlotState


def assign_late(fleet, reservation, slot) -> int:
    """Return how many reservations get the planned slot in its current state."""
    return len(
        assign_slots(
            fleet.reload_pool(), [placement_verdict(fleet.pool, reservation, slot)], now=fleet.clock()
        )
    )


@pytest.mark.parametrize(("cpu", "placed"), [(10, 1), (10.01, 0)])
def test_no_slot_exceeds_its_capacity(fleet, cpu, placed):
    slot = fleet.slot()
    fleet.assign(fleet.reservation(6), slot)
    late_reservation = fleet.reservation(cpu)
    assert assign_late(fleet, late_reservation, slot) == placed
    slot.refresh_from_db()
    assert (phases([late_reservation]), slot.lease_count) == (
        [(Phase.PENDING, Phase.READY)[placed]],
        1 + placed,
    )


def test_only_one_of_two_plans_for_the_same_space_is_applied(fleet):
    slot = fleet.slot()
    both = [fleet.reservation(9), fleet.reservation(9)]
    plans = [placement_verdict(fleet.pool, each, slot) for each in both]
    assert len(assign_slots(fleet.reload_pool(), plans, now=fleet.clock())) == 1
    assert sorted(phases(both)) == [Phase.PENDING, Phase.READY]


def test_no_slot_exceeds_its_lease_limit(configure_pool):
    fleet = configure_pool(max_leases=1)
    slot = fleet.slot()
    fleet.assign(fleet.reservation(1), slot)
    late_reservation = fleet.reservation(1)
    assert (assign_late(fleet, late_reservation, slot), phases([late_reservation])) == (0, [Phase.PENDING])


def test_a_session_gets_all_of_its_ports_or_none(configure_pool, new_session):
    fleet = configure_pool(first_port=2000, last_port=2002)
    slot = fleet.slot()
    for port in (2000, 2002):
        PortAllocation.objects.create(slot=slot, port=port, name="?", leaked=True)
    session = new_session()
    assert assign_late(fleet, active_reservation(session), slot) == 0
    session.refresh_from_db()
    assert (session.status, slot.ports.count()) == (SessionStatus.PENDING, 2)


@pytest.mark.parametrize(
    "change", [{"cordoned": True}, {"state": S.DRAINING}, {"interruption_deadline": True}]
)
def test_nothing_is_placed_on_a_slot_that_accepts_no_sessions(fleet, change):
    slot = fleet.slot()
    late_reservation = fleet.reservation(1)
    fields = {
        name: fleet.clock() if name == "interruption_deadline" else value for name, value in change.items()
    }
    Slot.objects.filter(pk=slot.pk).update(**fields)
    assert (assign_late(fleet, late_reservation, slot), phases([late_reservation])) == (0, [Phase.PENDING])


def test_a_reservation_ended_meanwhile_gets_no_slot(fleet, new_session):
    slot, reservation, session = fleet.slot(), fleet.reservation(1), new_session()
    plans = [placement_verdict(fleet.pool, each, slot) for each in (reservation, active_reservation(session))]
    release_reservation(reservation=reservation, actor=SYSTEM, now=fleet.clock())
    cancel_session(session=session, reason="no more", actor=SYSTEM, now=fleet.clock())
    assert assign_slots(fleet.reload_pool(), plans, now=fleet.clock()) == []
    slot.refresh_from_db()
    assert (slot.lease_count, slot.ports.count()) == (0, 0)
