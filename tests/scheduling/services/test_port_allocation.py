"""Ports of a worker: the first free ones, all or none."""

from __future__ import annotations

import pytest

from scheduling.models import Pool, PortAllocation, SlotState
from scheduling.services.port_allocation import choose_ports, free_ports, release_ports, taken_ports

SMALL = Pool(first_port=2000, last_port=2005)


@pytest.mark.parametrize(
    ("taken", "count", "chosen"),
    [
        (set(), 2, [2000, 2001]),
        (set(), 0, []),
        ({2000, 2002}, 2, [2001, 2003]),
        ({2000, 2001, 2002, 2003}, 2, [2004, 2005]),
        ({1999, 9000}, 6, [2000, 2001, 2002, 2003, 2004, 2005]),
    ],
    ids=["the first", "none", "around what is taken", "to the last", "others outside the range"],
)
def test_the_first_free_ports_are_chosen_and_taken_from_then_on(taken, count, chosen):
    now_taken = set(taken)
    assert choose_ports(SMALL, now_taken, count) == chosen
    assert now_taken == taken | set(chosen)
    assert free_ports(SMALL, now_taken) == free_ports(SMALL, taken) - count


def test_too_few_ports_give_none_at_all():
    taken = {2000, 2001, 2002, 2003, 2004}
    with pytest.raises(ValueError, match="2 ports requested, 1 free"):
        choose_ports(SMALL, taken, 2)
    assert taken == {2000, 2001, 2002, 2003, 2004}


def ports(slot, **fields):
    return list(PortAllocation.objects.filter(slot=slot, **fields).values_list("port", flat=True))


def test_a_session_gets_its_ports_with_its_slot_by_the_names_of_its_template(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    rows = PortAllocation.objects.filter(session=session).values_list("slot", "port", "name")
    assert list(rows) == [(slot.pk, 2000, "r1_serial"), (slot.pk, 2001, "host_pat")]


def test_ports_that_leaked_are_skipped_and_stay_taken_when_the_lab_is_gone(fleet, session_on):
    slot = fleet.slot()
    PortAllocation.objects.create(slot=slot, port=2000, name="found", leaked=True)
    session = session_on(slot)
    assert ports(slot, session=session) == [2001, 2002]
    PortAllocation.objects.filter(session=session, port=2001).update(leaked=True)
    release_ports([session.pk])
    assert ports(slot) == [2000, 2001]


def test_each_slot_has_its_own_ports(fleet, session_on):
    first, second = fleet.slot(), fleet.slot()
    session_on(first)
    session_on(second)
    assert ports(first) == ports(second) == [2000, 2001]
    assert taken_ports([first.pk]) == {first.pk: {2000, 2001}}


def test_a_slot_without_enough_ports_gets_no_session(configure_pool, new_session):
    fleet = configure_pool(first_port=2000, last_port=2002)
    slot = fleet.slot()
    first, second = new_session(), new_session()
    report = fleet.tick_without_errors()
    assert report.counts["placed"] == 1
    assert ports(slot) == [2000, 2001]
    assert {first.port_allocations.count(), second.port_allocations.count()} == {0, 2}


def test_two_slots_serve_sessions_that_exceed_the_ports_of_one(configure_pool, new_session):
    fleet = configure_pool(first_port=2000, last_port=2002)
    slots = [fleet.slot(), fleet.slot()]
    new_session(), new_session()
    assert fleet.tick_without_errors().counts["placed"] == 2
    assert [ports(slot) for slot in slots] == [[2000, 2001]] * 2


def leak(slot, port=2100):
    return PortAllocation.objects.create(slot=slot, port=port, name="found there", leaked=True)


def vanish(fleet, slot):
    fleet.runtime.vanish(slot.instance_id)


def drain(fleet, slot):
    fleet.clock.advance(hours=1)
    fleet.tick_without_errors()


@pytest.mark.parametrize("end", [vanish, drain])
def test_a_leaked_port_goes_with_its_instance(fleet, end):
    slot, other = fleet.slot(), fleet.slot(SlotState.BOOTING)
    leak(slot), leak(other)
    end(fleet, slot)
    for _ in range(3):
        fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, ports(slot), ports(other)) == (SlotState.EMPTY, [], [2100])


def test_a_leaked_port_of_a_vanished_worker_with_a_session_goes_too(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    PortAllocation.objects.filter(session=session, port=2000).update(leaked=True)
    vanish(fleet, slot)
    fleet.reconcile()
    assert ports(slot) == []


def test_a_leaked_port_stays_while_its_instance_does(fleet, session_on):
    slot = fleet.slot()
    leak(slot)
    for _ in range(3):
        fleet.round(10)
    assert ports(slot) == [2100]


def test_a_worker_that_exists_already_keeps_its_leaked_ports(fleet):
    """The worker does not terminate with its slot, so its leaked ports stay in use."""
    slot = fleet.slot()
    leak(slot)
    fleet.runtime.launches = False
    drain(fleet, slot)
    for _ in range(2):
        fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, ports(slot)) == (SlotState.EMPTY, [2100])
