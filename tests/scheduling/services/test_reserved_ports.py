"""Ports of labs that may still be on their worker: reserved until a later observation finds them free."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ChangeLog
from lcm.services.session_reports import report_failure
from lcm.services.session_transitions import transition_session
from scheduling.capacity.port_ranges import ranges
from scheduling.coordination.coordinator import coordinator
from scheduling.models import PortAllocation, SlotState
from scheduling.services.heartbeats import record_heartbeat
from scheduling.services.lost_slots import fail_sessions_on_slot, stop_sessions_on_slot
from scheduling.services.port_allocation import LEAK_HOLD
from tests.support.factories import make_definition
from tests.support.scheduler_setup import SessionRequester

STATUSES_WITH_LAB = [S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING]


def leaked_ports_of(slot):
    rows = PortAllocation.objects.filter(slot=slot, leaked=True, session=None)
    return list(rows.values_list("port", flat=True))


def allocated_ports_of(slot):
    return list(PortAllocation.objects.filter(slot=slot).values_list("port", flat=True))


def status_of(session):
    session.refresh_from_db()
    return session.status


def observe_free_ports(fleet, slot, *, age: float | None = 0, **later: float):
    """Record a heartbeat whose observation found every port free."""
    now = fleet.clock.advance(**later)
    record_heartbeat(slot=slot, actor=SYSTEM, now=now, leaked_ports=[], ports_observed_seconds_ago=age)


@pytest.mark.parametrize(
    ("handler", "status", "minutes", "new_status"),
    [
        ("finish-stopping", S.STOPPING, 20, S.FAILED),
        ("requeue-instantiating", S.INSTANTIATING, 30, S.PENDING),
    ],
)
def test_a_lab_whose_end_was_not_reported_keeps_its_ports(
    fleet, session_on, handler, status, minutes, new_status
):
    slot = fleet.slot()
    session = session_on(slot, status)
    ports_before = allocated_ports_of(slot)
    fleet.clock.advance(minutes=minutes)
    coordinator.process_handler(handler, fleet.clock)
    slot.refresh_from_db()
    assert (status_of(session), leaked_ports_of(slot), slot.lease_count) == (new_status, ports_before, 0)


def test_the_stop_timeout_of_the_controller_is_shorter_than_that_of_lcm(settings):
    from lcm.controller.config import Config

    assert settings.CONFIG["STOPPING_TIMEOUT"] > Config().stop_timeout_seconds + 60


def test_a_session_that_no_controller_started_releases_its_ports_immediately(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    fleet.clock.advance(minutes=15)
    coordinator.process_handler("requeue-scheduled", fleet.clock)
    assert (status_of(session), allocated_ports_of(slot)) == (S.PENDING, [])


@pytest.mark.parametrize("is_gone", [True, False])
@pytest.mark.parametrize("status", [S.INSTANTIATING, S.STOPPING])
def test_the_report_of_the_controller_decides_whether_ports_are_released(fleet, session_on, status, is_gone):
    slot = fleet.slot()
    session = session_on(slot, status)
    ports_before = allocated_ports_of(slot)
    report_failure(session=session, reason="no", lab_removed=is_gone, actor=SYSTEM, now=fleet.clock())
    assert status_of(session) == (S.PENDING if status == S.INSTANTIATING else S.FAILED)
    assert (leaked_ports_of(slot), allocated_ports_of(slot)) == (
        ([], []) if is_gone else (ports_before, ports_before)
    )


def test_a_removed_lab_releases_its_ports_immediately(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, S.STOPPING)
    transition_session(session=session, to=S.TERMINATED, actor=SYSTEM, now=fleet.clock())
    assert allocated_ports_of(slot) == []


def test_an_interruption_keeps_the_ports_of_a_lab_that_was_being_created(fleet, session_on):
    slot = fleet.slot()
    instantiating, scheduled = session_on(slot, S.INSTANTIATING), session_on(slot, S.SCHEDULED)
    ports_before = list(instantiating.port_allocations.values_list("port", flat=True))
    stop_sessions_on_slot(
        slot=slot,
        deadline=fleet.clock() + timedelta(minutes=2),
        reason="spot is gone soon",
        now=fleet.clock(),
    )
    assert (status_of(instantiating), status_of(scheduled), allocated_ports_of(slot)) == (
        S.PENDING,
        S.PENDING,
        ports_before,
    )


@pytest.mark.parametrize("status", STATUSES_WITH_LAB)
def test_ports_are_released_with_the_instance(fleet, session_on, status):
    slot = fleet.slot()
    session_on(slot, status)
    fleet.runtime.vanish(slot.instance_id)
    fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, allocated_ports_of(slot)) == (SlotState.EMPTY, [])


def test_a_spread_session_keeps_its_ports_on_the_remaining_worker(configure_pool):
    fleet = configure_pool(cpu_cores=3, max_slots=2)
    first, second = fleet.slot(), fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    fleet.tick_without_errors()
    session.refresh_from_db()
    transition_session(session=session, to=S.INSTANTIATING, actor=SYSTEM, now=fleet.clock())
    remaining_ports = allocated_ports_of(second)
    assert remaining_ports
    fleet.runtime.vanish(first.instance_id)
    fleet.reconcile()
    assert (status_of(session), allocated_ports_of(first), leaked_ports_of(second)) == (
        S.PENDING,
        [],
        remaining_ports,
    )


def test_the_next_session_on_the_slot_gets_other_ports(fleet, session_on):
    slot = fleet.slot()
    first = session_on(slot, S.INSTANTIATING)
    ports_before = allocated_ports_of(slot)
    report_failure(session=first, reason="no", lab_removed=False, actor=SYSTEM, now=fleet.clock())
    fleet.tick_without_errors()
    assert status_of(first) == S.SCHEDULED
    assert not set(ports_before) & set(first.port_allocations.values_list("port", flat=True))


@pytest.fixture
def slot_with_leaked_ports(fleet, session_on):
    """A slot with the ports of a lab whose teardown just failed."""
    slot = fleet.slot()
    session = session_on(slot, S.STOPPING)
    report_failure(session=session, reason="stuck", lab_removed=False, actor=SYSTEM, now=fleet.clock())
    return slot


# Seconds from the failure to the heartbeat, and the age of its port observation.
@pytest.mark.parametrize(
    ("seconds", "age", "is_released"),
    [
        (0, 0, False),
        (5, 30, False),
        (359, 0, False),
        (360, 0, True),
        (400, 60, False),
        (420, 60, True),
        (3600, 3601, False),
        (360, None, False),
        (660, None, True),
    ],
)
def test_only_a_late_enough_observation_releases_ports(
    fleet, slot_with_leaked_ports, seconds, age, is_released
):
    observe_free_ports(fleet, slot_with_leaked_ports, age=age, seconds=seconds)
    assert (leaked_ports_of(slot_with_leaked_ports) == []) is is_released


def test_a_lab_that_is_observed_again_keeps_its_ports(fleet, slot_with_leaked_ports):
    _, second = leaked_ports_of(slot_with_leaked_ports)
    now = fleet.clock.advance(minutes=7)
    observed = [{"port": second, "name": "old lab"}]
    record_heartbeat(
        slot=slot_with_leaked_ports,
        actor=SYSTEM,
        now=now,
        leaked_ports=observed,
        ports_observed_seconds_ago=3,
    )
    assert leaked_ports_of(slot_with_leaked_ports) == [second]
    observe_free_ports(fleet, slot_with_leaked_ports, minutes=1)
    assert leaked_ports_of(slot_with_leaked_ports) == []


def test_leaked_ports_of_an_observation_are_released_by_the_next(fleet):
    slot = fleet.slot()
    found = [{"port": 2100, "name": "someone's lab"}]
    record_heartbeat(
        slot=slot, actor=SYSTEM, now=fleet.clock(), leaked_ports=found, ports_observed_seconds_ago=1
    )
    assert leaked_ports_of(slot) == [2100]
    observe_free_ports(fleet, slot, seconds=60)
    assert leaked_ports_of(slot) == []


def test_ports_are_shown_as_ranges(fleet):
    slot = fleet.slot()
    found = [{"port": port, "name": "someone's lab"} for port in (2101, 2100, 2102, 2110)]
    record_heartbeat(
        slot=slot, actor=SYSTEM, now=fleet.clock(), leaked_ports=found, ports_observed_seconds_ago=1
    )
    observe_free_ports(fleet, slot, seconds=60)
    entries = ChangeLog.objects.filter(event="slot.ports_leaked").order_by("pk")
    assert [entry.message for entry in entries] == [
        "leaked ports found: 2100–2102, 2110",
        "leaked ports released: 2100–2102, 2110",
    ]


def test_a_long_list_of_ranges_is_truncated():
    assert ranges([1, 3, 5, 6], most=2) == "1, 3 …"
    assert ranges([1, 2, 3], most=1) == "1–3"


def test_leaked_ports_are_held_longer_than_a_controller_needs_to_remove_an_orphan():
    from lcm.controller.config import Config

    config = Config()
    assert timedelta(seconds=config.import_settle_seconds + config.orphan_grace_seconds) < LEAK_HOLD


def test_losing_a_listed_worker_keeps_the_ports_of_its_sessions(fleet, session_on):
    """As in the `static` runtime, where the worker does not terminate with its slot."""
    slot = fleet.slot()
    session_on(slot, S.INSTANTIATING), session_on(slot, S.RUNNING)
    ports_before = allocated_ports_of(slot)
    fail_sessions_on_slot(slot=slot, reason="it does not respond", now=fleet.clock())
    assert leaked_ports_of(slot) == ports_before
