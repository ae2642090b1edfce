"""An advance booking joins the queue lead_time before its timeslot."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.web.attention import FleetSnapshot
from scheduling.metrics import capacity_figures
from scheduling.models import Pool, TickRun
from scheduling.pages.overview import capacity_attention_items, queue_part, waiting_clause
from scheduling.pages.texts import pool_sentence
from scheduling.selectors.pools import figures_of, pools
from scheduling.services.lost_slots import fail_sessions_on_slot
from scheduling.services.pool_transfer import move_to_pool
from scheduling.services.pools import create_pool, update_pool, update_queue_entry_times
from tests.support.fleet import active_reservation

DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
EARLIER = """
actions: [allocate]
plugins:
  - name: timeslot
    arguments: {lead_minutes: 120}
"""
AT_ONCE = "actions: [allocate]\nplugins: [priority]\n"


@pytest.fixture
def booked(new_session, clock):
    """`booked(later)`: a session requested now, with a timeslot that much later."""

    def ask(later=DAY, **fields):
        return new_session(starts_at=clock() + later, ends_at=clock() + later + HOUR, **fields)

    return ask


def waits(now):
    row = pools(now).get(name="cml-eu")
    return row.waiting, row.oldest_waiting_since


@pytest.mark.parametrize(
    ("later", "turn"),
    [(timedelta(0), None), (15 * MINUTE, None), (16 * MINUTE, MINUTE), (DAY, DAY - 15 * MINUTE)],
)
def test_the_turn_comes_a_lead_before_the_timeslot(fleet, booked, later, turn):
    claim = active_reservation(booked(later))
    assert claim.joins_queue_at == (fleet.clock() + turn if turn else None)


@pytest.mark.parametrize(("scheduler", "before"), [(EARLIER, 2 * HOUR), (AT_ONCE, None), ("{", 15 * MINUTE)])
def test_the_lead_is_that_of_the_pool_s_scheduler(configure_pool, booked, scheduler, before):
    fleet = configure_pool(scheduler=scheduler)
    assert active_reservation(booked()).joins_queue_at == (fleet.clock() + DAY - before if before else None)


def test_one_that_is_booked_ahead_waits_from_its_turn_on(fleet, booked):
    booked()
    start = fleet.clock()
    turn = start + DAY - 15 * MINUTE
    assert waits(start + 12 * HOUR) == (0, None)
    assert waits(turn) == (1, turn)
    figures = figures_of(fleet.pool, start + HOUR)
    assert (figures.waiting, figures.ahead, figures.oldest_waiting_since) == (0, 1, None)
    figures = figures_of(fleet.pool, turn + HOUR)
    assert (figures.waiting, figures.ahead, figures.oldest_waiting_since) == (1, 0, turn)


def test_an_immediate_session_and_a_bare_reservation_wait_from_their_request(fleet, new_session, booked):
    start = fleet.clock()
    new_session(), fleet.reservation(ttl=86_400), booked()
    assert waits(start + MINUTE) == (2, start)


def test_the_overview_names_a_pool_only_if_a_queued_session_exceeds_the_wait_target(fleet, booked):
    booked()
    start = fleet.clock()
    named = [
        list(capacity_attention_items(FleetSnapshot(start + after))) for after in (HOUR, DAY, DAY + MINUTE)
    ]
    texts = [[need.more for need in needs if "wait" in need.text] for needs in named]
    assert texts == [[], [], ["1 waiting, the oldest for 16 min; target: 15 min"]]
    queue = queue_part(FleetSnapshot(start + HOUR))
    assert (queue["waiting"], queue["oldest"], queue["in_time"]) == (0, None, queue["pools"])
    assert [waiting_clause(FleetSnapshot(start + after)) for after in (HOUR, DAY)] == [
        "0 waiting, 1 booked",
        "1 waiting",
    ]
    assert (queue["ahead"], queue_part(FleetSnapshot(start + DAY))["ahead"]) == (1, 0)


def test_the_page_of_a_pool_counts_advance_bookings_separately(
    fleet, new_session, booked, client, viewer, time_machine
):
    time_machine.move_to(fleet.clock(), tick=False)
    new_session(), booked(), booked()
    figures = figures_of(fleet.pool, fleet.clock())
    pool = pools(fleet.clock()).get(name="cml-eu")
    assert "1 session waiting, for 0 s · 2 booked" in pool_sentence(pool, figures, now=fleet.clock())
    client.force_login(viewer)
    assert ", 2 booked" in client.get(f"/pools/{pool.pk}/").content.decode()
    assert "0 placed · 1 waiting · 2 booked" in client.get("/reservations/").content.decode()


def test_the_page_of_a_session_distinguishes_waiting_from_booked(
    fleet, new_session, booked, client, viewer, time_machine
):
    start, now, later = fleet.clock(), new_session(), booked()
    client.force_login(viewer)

    def said(session, at):
        time_machine.move_to(at, tick=False)
        return client.get(f"/sessions/{session.pk}/").content.decode()

    assert "Waiting for a slot for 0 s." in said(now, start)
    for ahead in (DAY, HOUR, MINUTE):
        assert " No slot assigned yet." in said(later, start + DAY - ahead)
    assert "Waiting for a slot. The timeslot started" in said(later, start + DAY + MINUTE)


def test_the_queue_shows_when_a_turn_comes(fleet, booked, new_session, client, viewer, time_machine):
    time_machine.move_to(fleet.clock(), tick=False)
    booked(3 * HOUR), booked(3 * HOUR)
    client.force_login(viewer)
    page = client.get("/queue/").content.decode()
    assert "0 waiting.</strong> 2 booked." in page
    assert page.count(">in 2 h</time>") == 2
    new_session()
    assert "1 waiting:</strong> 1 in cml-eu. 2 booked." in client.get("/queue/").content.decode()


def figure(name):
    found = {metric.name: metric for metric in capacity_figures()}[f"lcm_{name}"]
    return next(sample.value for sample in found.samples if sample.labels == {"pool": "cml-eu"})


def test_prometheus_exports_waiting_and_unplaced_reservations(fleet, booked, new_session, time_machine):
    time_machine.move_to(fleet.clock(), tick=False)
    booked(), booked()
    fleet.tick()
    time_machine.move_to(fleet.clock.advance(hours=2), tick=False)
    assert (figure("oldest_pending_seconds"), figure("unmet_demand")) == (0, 0)
    new_session()
    fleet.tick()
    time_machine.move_to(fleet.clock.advance(minutes=2), tick=False)
    assert (figure("oldest_pending_seconds"), figure("unmet_demand")) == (120, 1)


def test_the_counts_of_a_tick_are_reset_when_the_queue_is_empty(fleet, time_machine):
    time_machine.move_to(fleet.clock(), tick=False)
    TickRun.objects.create(
        pool=fleet.pool, started_at=fleet.clock() - HOUR, duration_ms=1, counts={"unmet": 7}
    )
    assert figure("unmet_demand") == 0


def test_advance_bookings_do_not_make_a_pool_look_full(fleet, booked):
    others = Pool.objects.exclude(pk=fleet.pool.pk)
    for _ in range(3):
        booked()
    for pool in others:
        fleet.reservation(pool=pool.name)
    assert fleet.reservation(pool="", system="cml").pool == fleet.pool
    fleet.clock.advance(days=1)
    assert fleet.reservation(pool="", system="cml", holder="later").pool in others


def test_in_another_pool_its_turn_is_that_pool_s(fleet, booked, as_operator):
    create_pool(name="cml-other", actor=SYSTEM, scheduler=EARLIER)
    session = booked()
    move_to_pool(session=session, pool="cml-other", reason="x", actor=as_operator, now=fleet.clock())
    assert active_reservation(session).joins_queue_at == session.starts_at - 2 * HOUR


def test_back_in_the_queue_its_turn_is_the_same(fleet, booked):
    slot, session = fleet.slot(), booked()
    turn = active_reservation(session).joins_queue_at
    fleet.assign(session, slot)
    fail_sessions_on_slot(slot=slot, reason="gone", now=fleet.clock.advance(minutes=1))
    assert active_reservation(session).joins_queue_at == turn


def test_another_scheduler_recomputes_the_queue_entries(fleet, booked, new_session, as_admin):
    ahead, soon, bare = booked(), new_session(), fleet.reservation()
    turns = []
    for scheduler in (EARLIER, AT_ONCE, ""):
        update_pool(pool=fleet.reload_pool(), actor=as_admin, scheduler=scheduler, reason="a try")
        turns.append(active_reservation(ahead).joins_queue_at)
    assert turns == [ahead.starts_at - 2 * HOUR, None, ahead.starts_at - 15 * MINUTE]
    bare.refresh_from_db()
    assert (active_reservation(soon).joins_queue_at, bare.joins_queue_at) == (None, None)


def test_turns_of_claims_that_ended_stay(fleet, booked, as_admin):
    slot, session = fleet.slot(), booked()
    fleet.assign(session, slot)
    told = active_reservation(session).joins_queue_at
    Pool.objects.update(scheduler=EARLIER)
    update_queue_entry_times(fleet.reload_pool())
    assert (session.status, active_reservation(session).joins_queue_at) == (SessionStatus.SCHEDULED, told)
