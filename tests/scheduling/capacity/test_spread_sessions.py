"""A spread session: all of its kernels are placed on several slots, or none."""

from decimal import Decimal
from uuid import UUID

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_session
from scheduling.models import Decision, EndedPart, Phase, PortAllocation, Reservation, ReservationPart, Slot
from scheduling.placement.framework.configuration import read_configuration
from scheduling.selectors.pools import figures_of
from scheduling.selectors.slots import slot_allocations
from scheduling.selectors.snapshots import snapshot_of
from scheduling.services.lost_slots import fail_sessions_on_slot
from tests.support.factories import make_definition
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import RECLAIM, SessionRequester, check_leases, status_of


@pytest.fixture
def spread_fleet(configure_pool):
    """Two slots of three cores: r1 (2 cores), r2 and host (1 each) need both."""
    fleet = configure_pool(cpu_cores=3, max_slots=2)
    slots = [fleet.slot(), fleet.slot()]
    requester = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread"))
    return fleet, slots, requester


def parts_of(session):
    rows = ReservationPart.objects.filter(reservation__session=session).order_by("slot__number")
    return [(part.slot_id, part.kernels) for part in rows]


def test_a_spread_session_gets_a_lease_and_its_ports_on_each_slot(spread_fleet):
    fleet, (first, second), requester = spread_fleet
    session = requester.request()
    fleet.tick_without_errors()
    assert status_of(session) == S.SCHEDULED
    assert [slot_id for slot_id, _ in parts_of(session)] == [first.pk, second.pk]
    where = {kernel: slot_id for slot_id, kernels in parts_of(session) for kernel in kernels}
    ports = {port.name: port.slot_id for port in PortAllocation.objects.filter(session=session)}
    assert {name: ports[name] for name in ports if name.startswith("r1")} == {"r1_serial": where["r1"]}
    assert all(where[name.split("_")[0]] == slot_id for name, slot_id in ports.items())
    assert len(ports) == 2
    assert [slot.lease_count for slot in Slot.objects.order_by("number")] == [1, 1]
    total = ReservationPart.objects.values_list("cpu_cores", flat=True)
    assert sum(total) == active_reservation(session).cpu_cores == Decimal(4)
    check_leases()


def test_the_parts_of_a_spread_session_are_allocated_on_each_slot(spread_fleet):
    fleet, slots, requester = spread_fleet
    requester.request()
    fleet.tick_without_errors()
    used = slot_allocations(fleet.pool, slots)
    assert sorted(use.allocated.cpu_cores for use in used.values()) == [1, 3]
    assert figures_of(fleet.pool, fleet.clock()).allocated.cpu_cores == 4


def test_a_second_spread_session_is_not_partially_placed(spread_fleet):
    fleet, _, requester = spread_fleet
    first, second = requester.request(), requester.request()
    fleet.tick_without_errors()
    assert sorted((status_of(first), status_of(second))) == [S.PENDING, S.SCHEDULED]
    assert ReservationPart.objects.count() == 2
    check_leases()


def test_a_running_spread_session_is_in_the_snapshot_for_evictions(spread_fleet, configure_pool):
    """Its parts and ports are subtracted from the slots in the snapshot with running jobs."""
    fleet, _, requester = spread_fleet
    requester.request()
    fleet.tick_without_errors()
    configure_pool(scheduler=RECLAIM, first_port=2000, last_port=2001)
    other = SessionRequester(fleet, "other", make_definition(pool="cml-eu", placement="spread"))
    waiting = other.request()
    fleet.tick_without_errors()
    assert status_of(waiting) == S.PENDING


def test_every_task_of_a_live_cycle_has_a_name(spread_fleet, configure_pool):
    """Kernels of a spread session have their labels; a task for an undivided reservation has its id."""
    fleet, _, requester = spread_fleet
    running = requester.request()
    fleet.tick_without_errors()
    configure_pool(scheduler=RECLAIM, max_slots=3, cpu_cores=4)
    fleet.slot()
    other_requester = SessionRequester(fleet, "beside", make_definition(pool="cml-eu"))
    packed = other_requester.request()
    fleet.tick_without_errors()
    waiting, waiting_packed = requester.request(), other_requester.request()
    snapshot = snapshot_of(fleet.pool, read_configuration(RECLAIM), now=fleet.clock(), limit=10)
    named = {UUID(job.id): {task.name for task in job.tasks} for job in snapshot.waiting}
    named |= {
        UUID(job.id): {task.name for part in job.parts for task in part.tasks} for job in snapshot.running
    }
    assert named[active_reservation(waiting).pk] == {"host", "r1", "r2"}
    assert {name for each in named[active_reservation(running).pk] for name in each.split(", ")} == {
        "host",
        "r1",
        "r2",
    }
    for session in (packed, waiting_packed):
        key = active_reservation(session).pk
        assert [UUID(name) for name in named[key]] == [key]


@pytest.mark.parametrize("end", ["cancelled", "terminated"])
def test_an_ended_spread_session_releases_all_leases_and_ports(spread_fleet, end):
    fleet, _, requester = spread_fleet
    session = requester.request()
    fleet.tick_without_errors()
    session.refresh_from_db()
    if end == "cancelled":
        cancel_session(session=session, reason="enough", actor=SYSTEM, now=fleet.clock())
    else:
        for step in (S.INSTANTIATING, S.STOPPING, S.TERMINATED):
            transition_session(session=session, to=step, actor=SYSTEM, now=fleet.clock())
    assert [slot.lease_count for slot in Slot.objects.all()] == [0, 0]
    assert (ReservationPart.objects.count(), PortAllocation.objects.count()) == (0, 0)
    assert {part.slot for part in EndedPart.objects.all()} == set(Slot.objects.all())


def test_a_spread_session_that_loses_a_slot_is_requeued(spread_fleet):
    fleet, (_, second), requester = spread_fleet
    session = requester.request()
    fleet.tick_without_errors()
    second = Slot.objects.select_related("pool").get(pk=second.pk)
    assert fail_sessions_on_slot(slot=second, reason="it vanished", now=fleet.clock()) == 1
    assert status_of(session) == S.PENDING
    assert [slot.lease_count for slot in Slot.objects.all()] == [0, 0]
    requeued = Reservation.objects.get(session=session, phase=Phase.PENDING)
    assert (requeued.attempt, requeued.spread) == (2, True)


def test_the_wait_reason_of_a_spread_session_shows_the_missing_resource(configure_pool):
    fleet = configure_pool(cpu_cores=3, max_slots=1)
    fleet.slot(cpu_cores=1)
    requester = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread"))
    requester.request()
    fleet.tick_without_errors()
    assert "insufficient CPU (2 cores requested, at most 1 core free)" in Decision.objects.get().why.message
