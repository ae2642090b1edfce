"""Ports of labs that may still be on their worker: reserved until a later observation finds them free."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ChangeLog
from lcm.services.session_reports import report_failure
from lcm.services.sessions import transition_session
from scheduling.capacity.port_ranges import ranges
from scheduling.coordination.coordinator import coordinator
from scheduling.models import PortAllocation, SlotState
from scheduling.services.heartbeats import record_heartbeat
from scheduling.services.lost_slots import fail_sessions_on_slot, stop_sessions_on_slot
from scheduling.services.port_allocation import LEAK_HOLD
from tests.support.factories import make_definition
from tests.support.scheduler_setup import SessionRequester

HAD_A_LAB = [S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING]


def held(slot):
    rows = PortAllocation.objects.filter(slot=slot, leaked=True, session=None)
    return list(rows.values_list("port", flat=True))


def taken(slot):
    return list(PortAllocation.objects.filter(slot=slot).values_list("port", flat=True))


def status_of(session):
    session.refresh_from_db()
    return session.status


def surveyed(fleet, slot, *, ago: float | None = 0, **later: float):
    """The heartbeat of an observation that found every port free."""
    now = fleet.clock.advance(**later)
    record_heartbeat(slot=slot, actor=SYSTEM, now=now, leaked_ports=[], ports_observed_seconds_ago=ago)


@pytest.mark.parametrize(
    ("handler", "status", "minutes", "after"),
    [
        ("finish-stopping", S.STOPPING, 20, S.FAILED),
        ("requeue-instantiating", S.INSTANTIATING, 30, S.PENDING),
    ],
)
def test_a_lab_whose_end_was_not_reported_keeps_its_ports(fleet, session_on, handler, status, minutes, after):
    slot = fleet.slot()
    session = session_on(slot, status)
    given = taken(slot)
    fleet.clock.advance(minutes=minutes)
    coordinator.process_handler(handler, fleet.clock)
    slot.refresh_from_db()
    assert (status_of(session), held(slot), slot.lease_count) == (after, given, 0)


def test_the_controller_gives_up_before_we_do(settings):
    from lcm.controller.config import Config

    assert settings.CONFIG["STOPPING_TIMEOUT"] > Config().stop_timeout_seconds + 60


def test_a_session_that_no_controller_took_up_gives_its_ports_back_at_once(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot)
    fleet.clock.advance(minutes=15)
    coordinator.process_handler("requeue-scheduled", fleet.clock)
    assert (status_of(session), taken(slot)) == (S.PENDING, [])


@pytest.mark.parametrize("is_gone", [True, False])
@pytest.mark.parametrize("status", [S.INSTANTIATING, S.STOPPING])
def test_the_controllers_report_decides(fleet, session_on, status, is_gone):
    slot = fleet.slot()
    session = session_on(slot, status)
    given = taken(slot)
    report_failure(session=session, reason="no", lab_removed=is_gone, actor=SYSTEM, now=fleet.clock())
    assert status_of(session) == (S.PENDING if status == S.INSTANTIATING else S.FAILED)
    assert (held(slot), taken(slot)) == (([], []) if is_gone else (given, given))


def test_a_lab_that_was_taken_down_gives_its_ports_back_at_once(fleet, session_on):
    slot = fleet.slot()
    session = session_on(slot, S.STOPPING)
    transition_session(session=session, to=S.TERMINATED, actor=SYSTEM, now=fleet.clock())
    assert taken(slot) == []


def test_an_interruption_keeps_the_ports_of_a_lab_that_was_being_made(fleet, session_on):
    slot = fleet.slot()
    made, waited = session_on(slot, S.INSTANTIATING), session_on(slot, S.SCHEDULED)
    given = list(made.port_allocations.values_list("port", flat=True))
    stop_sessions_on_slot(
        slot=slot,
        deadline=fleet.clock() + timedelta(minutes=2),
        reason="spot is gone soon",
        now=fleet.clock(),
    )
    assert (status_of(made), status_of(waited), taken(slot)) == (S.PENDING, S.PENDING, given)


@pytest.mark.parametrize("status", HAD_A_LAB)
def test_ports_go_with_the_instance(fleet, session_on, status):
    slot = fleet.slot()
    session_on(slot, status)
    fleet.runtime.vanish(slot.instance_id)
    fleet.reconcile()
    slot.refresh_from_db()
    assert (slot.state, taken(slot)) == (SlotState.EMPTY, [])


def test_a_session_that_is_spread_leaves_its_ports_where_the_worker_lives_on(configure_pool):
    fleet = configure_pool(cpu_cores=3, max_slots=2)
    first, second = fleet.slot(), fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    fleet.tick_without_errors()
    session.refresh_from_db()
    transition_session(session=session, to=S.INSTANTIATING, actor=SYSTEM, now=fleet.clock())
    there = taken(second)
    assert there
    fleet.runtime.vanish(first.instance_id)
    fleet.reconcile()
    assert (status_of(session), taken(first), held(second)) == (S.PENDING, [], there)


def test_the_next_session_there_gets_other_ports(fleet, session_on):
    slot = fleet.slot()
    first = session_on(slot, S.INSTANTIATING)
    given = taken(slot)
    report_failure(session=first, reason="no", lab_removed=False, actor=SYSTEM, now=fleet.clock())
    fleet.tick_without_errors()
    assert status_of(first) == S.SCHEDULED
    assert not set(given) & set(first.port_allocations.values_list("port", flat=True))


@pytest.fixture
def abandoned(fleet, session_on):
    """A slot with the ports of a lab whose teardown just failed."""
    slot = fleet.slot()
    session = session_on(slot, S.STOPPING)
    report_failure(session=session, reason="stuck", lab_removed=False, actor=SYSTEM, now=fleet.clock())
    return slot


# Seconds from the failure to the heartbeat, and the age of its port observation.
@pytest.mark.parametrize(
    ("seconds", "ago", "free"),
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
def test_only_a_late_enough_observation_releases_ports(fleet, abandoned, seconds, ago, free):
    surveyed(fleet, abandoned, ago=ago, seconds=seconds)
    assert (held(abandoned) == []) is free


def test_a_lab_that_is_seen_there_later_keeps_them(fleet, abandoned):
    _, second = held(abandoned)
    now = fleet.clock.advance(minutes=7)
    seen = [{"port": second, "name": "old lab"}]
    record_heartbeat(slot=abandoned, actor=SYSTEM, now=now, leaked_ports=seen, ports_observed_seconds_ago=3)
    assert held(abandoned) == [second]
    surveyed(fleet, abandoned, minutes=1)
    assert held(abandoned) == []


def test_leaked_ports_of_an_observation_are_released_by_the_next(fleet):
    slot = fleet.slot()
    found = [{"port": 2100, "name": "someone's lab"}]
    record_heartbeat(
        slot=slot, actor=SYSTEM, now=fleet.clock(), leaked_ports=found, ports_observed_seconds_ago=1
    )
    assert held(slot) == [2100]
    surveyed(fleet, slot, seconds=60)
    assert held(slot) == []


def test_ports_are_shown_as_ranges(fleet):
    slot = fleet.slot()
    found = [{"port": port, "name": "someone's lab"} for port in (2101, 2100, 2102, 2110)]
    record_heartbeat(
        slot=slot, actor=SYSTEM, now=fleet.clock(), leaked_ports=found, ports_observed_seconds_ago=1
    )
    surveyed(fleet, slot, seconds=60)
    told = ChangeLog.objects.filter(event="slot_leaked_ports").order_by("pk")
    assert [entry.message for entry in told] == [
        "leaked ports found taken: 2100–2102, 2110",
        "leaked ports free again: 2100–2102, 2110",
    ]


def test_of_many_ranges_the_first_are_shown():
    assert ranges([1, 3, 5, 6], most=2) == "1, 3 …"
    assert ranges([1, 2, 3], most=1) == "1–3"


def test_they_are_held_for_longer_than_a_controller_takes_to_remove_an_orphan():
    from lcm.controller.config import Config

    config = Config()
    assert timedelta(seconds=config.import_settle_seconds + config.orphan_grace_seconds) < LEAK_HOLD


def test_losing_a_listed_worker_keeps_the_ports_of_its_sessions(fleet, session_on):
    """As in the `static` runtime, where the worker does not terminate with its slot."""
    slot = fleet.slot()
    session_on(slot, S.INSTANTIATING), session_on(slot, S.RUNNING)
    given = taken(slot)
    fail_sessions_on_slot(slot=slot, reason="it does not answer", now=fleet.clock())
    assert held(slot) == given
