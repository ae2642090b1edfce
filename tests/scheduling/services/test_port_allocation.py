"""Ports of a worker: the first free ports are allocated, all or none."""

from __future__ import annotations

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ChangeLog
from lcm.services.session_transitions import transition_session
from scheduling.models import Pool, PortAllocation, SlotState
from scheduling.services import port_allocation
from scheduling.services.assignment import assign_slots
from scheduling.services.port_allocation import choose_ports, release_ports, taken_ports
from tests.support.fleet import active_reservation, placement_verdict

SMALL = Pool(first_port=2000, last_port=2005)


def free_ports(pool: Pool, taken: set[int]) -> int:
    return len(set(range(pool.first_port, pool.last_port + 1)) - taken)


@pytest.mark.parametrize(
    ("allocated", "count", "chosen"),
    [
        (set(), 2, [2000, 2001]),
        (set(), 0, []),
        ({2000, 2002}, 2, [2001, 2003]),
        ({2000, 2001, 2002, 2003}, 2, [2004, 2005]),
        ({1999, 9000}, 6, [2000, 2001, 2002, 2003, 2004, 2005]),
    ],
    ids=["the first", "none", "between allocated ports", "to the last", "others outside the range"],
)
def test_the_first_free_ports_are_chosen_and_allocated(allocated, count, chosen):
    allocated_after = set(allocated)
    assert choose_ports(SMALL, allocated_after, count) == chosen
    assert allocated_after == allocated | set(chosen)
    assert free_ports(SMALL, allocated_after) == free_ports(SMALL, allocated) - count


def test_too_few_free_ports_raise_an_error_and_allocate_none():
    allocated = {2000, 2001, 2002, 2003, 2004}
    with pytest.raises(ValueError, match="2 ports requested, 1 free"):
        choose_ports(SMALL, allocated, 2)
    assert allocated == {2000, 2001, 2002, 2003, 2004}


def ports(slot, **fields):
    return list(PortAllocation.objects.filter(slot=slot, **fields).values_list("port", flat=True))


def test_a_session_gets_its_ports_with_its_slot_by_the_names_of_its_template(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    rows = PortAllocation.objects.filter(session=session).values_list("slot", "port", "name")
    assert list(rows) == [(slot.pk, 2000, "r1_serial"), (slot.pk, 2001, "host_pat")]


def test_leaked_ports_are_skipped_and_stay_reserved_after_the_lab_ends(fleet, session_on):
    slot = fleet.slot()
    PortAllocation.objects.create(slot=slot, port=2000, name="found", leaked=True)
    session = session_on(slot)
    assert ports(slot, session=session) == [2001, 2002]
    PortAllocation.objects.filter(session=session, port=2001).update(leaked=True)
    release_ports([session.pk], now=fleet.clock())
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


def add_leaked_port(slot, port=2100):
    return PortAllocation.objects.create(slot=slot, port=port, name="found there", leaked=True)


def vanish(fleet, slot):
    fleet.runtime.vanish(slot.instance_id)


def drain(fleet, slot):
    fleet.clock.advance(hours=1)
    fleet.tick_without_errors()


@pytest.mark.parametrize("end_instance", [vanish, drain])
def test_a_leaked_port_is_released_with_its_instance(fleet, end_instance):
    slot, other = fleet.slot(), fleet.slot(SlotState.BOOTING)
    add_leaked_port(slot), add_leaked_port(other)
    end_instance(fleet, slot)
    for _ in range(3):
        fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, ports(slot), ports(other)) == (SlotState.EMPTY, [], [2100])


def test_a_leaked_port_of_a_vanished_worker_with_a_session_is_released(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    PortAllocation.objects.filter(session=session, port=2000).update(leaked=True)
    vanish(fleet, slot)
    fleet.reconcile()
    assert ports(slot) == []


def test_a_leaked_port_stays_reserved_while_its_instance_exists(fleet, session_on):
    slot = fleet.slot()
    add_leaked_port(slot)
    for _ in range(3):
        fleet.round(10)
    assert ports(slot) == [2100]


def test_a_listed_worker_keeps_its_leaked_ports(fleet):
    """The worker does not terminate with its slot, so its leaked ports stay in use."""
    slot = fleet.slot()
    add_leaked_port(slot)
    fleet.runtime.launches = False
    drain(fleet, slot)
    for _ in range(2):
        fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, ports(slot)) == (SlotState.EMPTY, [2100])


@pytest.mark.parametrize(("end", "change"), [(S.CANCELLED, "released"), (S.FAILED, "leaked")])
def test_allocated_released_and_leaked_ports_are_logged_on_the_slot(fleet, session_on, end, change):
    slot = fleet.slot()
    session, other = session_on(slot), session_on(slot)
    if end == S.FAILED:
        for step in (S.INSTANTIATING, S.FAILED):
            transition_session(session=session, to=step, actor=SYSTEM, now=fleet.clock())
    else:
        transition_session(session=session, to=end, actor=SYSTEM, now=fleet.clock())
    entries = ChangeLog.objects.filter(event__startswith="slot.ports_", object_id=str(slot.pk)).order_by("pk")
    assert list(entries.values_list("event", "message")) == [
        ("slot.ports_allocated", f"Ports allocated: 2000–2001 of {session}"),
        ("slot.ports_allocated", f"Ports allocated: 2002–2003 of {other}"),
        (f"slot.ports_{change}", f"Ports {change}: 2000–2001 of {session}"),
    ]


def test_the_ports_of_many_sessions_are_logged_in_several_entries(fleet, new_session, monkeypatch):
    monkeypatch.setattr(port_allocation, "SESSIONS_PER_ENTRY", 2)
    slot, sessions = fleet.slot(), [new_session() for _ in range(3)]
    verdicts = [placement_verdict(fleet.pool, active_reservation(each), slot) for each in sessions]
    assert len(assign_slots(fleet.reload_pool(), verdicts, now=fleet.clock())) == 3
    messages = ChangeLog.objects.filter(event="slot.ports_allocated").values_list("message", flat=True)
    assert len(messages) == 2
    assert all(sum(str(each) in message for message in messages) == 1 for each in sessions)


def test_a_logged_message_names_all_its_sessions_however_scattered_their_ports_are(fleet, new_session):
    pool, slot = fleet.reload_pool(), fleet.slot()
    pool.first_port, pool.last_port = 50_000, 60_000
    sessions = [new_session() for _ in range(4)]
    names = [f"r{number}_serial" for number in range(16)]
    requests = [(each.pk, slot.pk, names) for each in sessions]
    taken = {slot.pk: set(range(50_000, 60_000, 3))}
    port_allocation.allocate_ports(pool, {slot.pk: slot.number}, requests, taken, now=fleet.clock())
    (message,) = ChangeLog.objects.filter(event="slot.ports_allocated").values_list("message", flat=True)
    assert all(str(each) in message for each in sessions)
