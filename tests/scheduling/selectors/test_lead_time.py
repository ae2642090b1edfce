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
def book_session(new_session, clock):
    """`book_session(later)`: a session requested now, with a timeslot that much later."""

    def book(later=DAY, **fields):
        return new_session(starts_at=clock() + later, ends_at=clock() + later + HOUR, **fields)

    return book


def waiting_in_pool(now):
    row = pools(now).get(name="cml-eu")
    return row.waiting, row.oldest_waiting_since


@pytest.mark.parametrize(
    ("later", "joins_at"),
    [(timedelta(0), None), (15 * MINUTE, None), (16 * MINUTE, MINUTE), (DAY, DAY - 15 * MINUTE)],
)
def test_a_booking_joins_the_queue_its_lead_time_before_the_timeslot(fleet, book_session, later, joins_at):
    reservation = active_reservation(book_session(later))
    assert reservation.joins_queue_at == (fleet.clock() + joins_at if joins_at else None)


@pytest.mark.parametrize(("scheduler", "before"), [(EARLIER, 2 * HOUR), (AT_ONCE, None), ("{", 15 * MINUTE)])
def test_the_lead_time_is_set_by_the_scheduler_of_the_pool(configure_pool, book_session, scheduler, before):
    fleet = configure_pool(scheduler=scheduler)
    assert active_reservation(book_session()).joins_queue_at == (
        fleet.clock() + DAY - before if before else None
    )


def test_an_advance_booking_waits_from_its_queue_entry_on(fleet, book_session):
    book_session()
    start = fleet.clock()
    joins_at = start + DAY - 15 * MINUTE
    assert waiting_in_pool(start + 12 * HOUR) == (0, None)
    assert waiting_in_pool(joins_at) == (1, joins_at)
    figures = figures_of(fleet.pool, start + HOUR)
    assert (figures.waiting, figures.booked, figures.oldest_waiting_since) == (0, 1, None)
    figures = figures_of(fleet.pool, joins_at + HOUR)
    assert (figures.waiting, figures.booked, figures.oldest_waiting_since) == (1, 0, joins_at)


def test_an_immediate_session_and_a_bare_reservation_wait_from_their_request(
    fleet, new_session, book_session
):
    start = fleet.clock()
    new_session(), fleet.reservation(ttl=86_400), book_session()
    assert waiting_in_pool(start + MINUTE) == (2, start)


def test_the_overview_names_a_pool_only_if_a_queued_session_exceeds_the_wait_target(fleet, book_session):
    book_session()
    start = fleet.clock()
    items_by_time = [
        list(capacity_attention_items(FleetSnapshot(start + after))) for after in (HOUR, DAY, DAY + MINUTE)
    ]
    texts = [[need.more for need in needs if "wait" in need.text] for needs in items_by_time]
    assert texts == [[], [], ["1 waiting, the oldest for 16 min; target: 15 min"]]
    queue = queue_part(FleetSnapshot(start + HOUR))
    assert (queue["waiting"], queue["oldest"], queue["in_time"]) == (0, None, queue["pools"])
    assert [waiting_clause(FleetSnapshot(start + after)) for after in (HOUR, DAY)] == [
        "0 waiting, 1 booked",
        "1 waiting",
    ]
    assert (queue["booked"], queue_part(FleetSnapshot(start + DAY))["booked"]) == (1, 0)


def test_the_page_of_a_pool_counts_advance_bookings_separately(
    fleet, new_session, book_session, client, viewer, time_machine
):
    time_machine.move_to(fleet.clock(), tick=False)
    new_session(), book_session(), book_session()
    figures = figures_of(fleet.pool, fleet.clock())
    pool = pools(fleet.clock()).get(name="cml-eu")
    assert "1 session waiting, for 0 s · 2 booked" in pool_sentence(pool, figures, now=fleet.clock())
    client.force_login(viewer)
    assert ", 2 booked" in client.get(f"/pools/{pool.pk}/").content.decode()
    assert "0 placed · 1 waiting · 2 booked" in client.get("/reservations/").content.decode()


def test_the_page_of_a_session_distinguishes_waiting_from_booked(
    fleet, new_session, book_session, client, viewer, time_machine
):
    start, now, later = fleet.clock(), new_session(), book_session()
    client.force_login(viewer)

    def page_of(session, at):
        time_machine.move_to(at, tick=False)
        return client.get(f"/sessions/{session.pk}/").content.decode()

    assert "Waiting for a slot for 0 s." in page_of(now, start)
    for ahead in (DAY, HOUR, MINUTE):
        assert " No slot assigned yet." in page_of(later, start + DAY - ahead)
    assert "Waiting for a slot. The timeslot started" in page_of(later, start + DAY + MINUTE)


def test_the_queue_shows_when_a_booking_joins(fleet, book_session, new_session, client, viewer, time_machine):
    time_machine.move_to(fleet.clock(), tick=False)
    book_session(3 * HOUR), book_session(3 * HOUR)
    client.force_login(viewer)
    page = client.get("/queue/").content.decode()
    assert "0 waiting.</strong> 2 booked." in page
    assert page.count(">in 2 h 45 min</time>") == 2
    new_session()
    assert "1 waiting:</strong> 1 in cml-eu. 2 booked." in client.get("/queue/").content.decode()


def metric_value(name):
    found = {metric.name: metric for metric in capacity_figures()}[f"lcm_{name}"]
    return next(sample.value for sample in found.samples if sample.labels == {"pool": "cml-eu"})


def test_prometheus_exports_waiting_and_unplaced_reservations(fleet, book_session, new_session, time_machine):
    time_machine.move_to(fleet.clock(), tick=False)
    book_session(), book_session()
    fleet.tick()
    time_machine.move_to(fleet.clock.advance(hours=2), tick=False)
    assert (metric_value("oldest_pending_seconds"), metric_value("unmet_demand")) == (0, 0)
    new_session()
    fleet.tick()
    time_machine.move_to(fleet.clock.advance(minutes=2), tick=False)
    assert (metric_value("oldest_pending_seconds"), metric_value("unmet_demand")) == (120, 1)


def test_the_counts_of_a_tick_are_reset_when_the_queue_is_empty(fleet, time_machine):
    time_machine.move_to(fleet.clock(), tick=False)
    TickRun.objects.create(
        pool=fleet.pool, started_at=fleet.clock() - HOUR, duration_ms=1, counts={"unmet": 7}
    )
    assert metric_value("unmet_demand") == 0


def test_advance_bookings_do_not_make_a_pool_look_full(fleet, book_session):
    others = Pool.objects.exclude(pk=fleet.pool.pk)
    for _ in range(3):
        book_session()
    for pool in others:
        fleet.reservation(pool=pool.name)
    assert fleet.reservation(pool="", system="cml").pool == fleet.pool
    fleet.clock.advance(days=1)
    assert fleet.reservation(pool="", system="cml", holder="later").pool in others


def test_a_moved_booking_uses_the_lead_time_of_its_new_pool(fleet, book_session, as_operator):
    create_pool(name="cml-other", actor=SYSTEM, scheduler=EARLIER)
    session = book_session()
    move_to_pool(session=session, pool="cml-other", reason="x", actor=as_operator, now=fleet.clock())
    assert active_reservation(session).joins_queue_at == session.starts_at - 2 * HOUR


def test_a_requeued_booking_keeps_its_queue_entry(fleet, book_session):
    slot, session = fleet.slot(), book_session()
    joins_at = active_reservation(session).joins_queue_at
    fleet.assign(session, slot)
    fail_sessions_on_slot(slot=slot, reason="gone", now=fleet.clock.advance(minutes=1))
    assert active_reservation(session).joins_queue_at == joins_at


def test_another_scheduler_recomputes_the_queue_entries(fleet, book_session, new_session, as_admin):
    ahead, soon, reservation = book_session(), new_session(), fleet.reservation()
    queue_entries = []
    for scheduler in (EARLIER, AT_ONCE, ""):
        update_pool(pool=fleet.reload_pool(), actor=as_admin, scheduler=scheduler, reason="a try")
        queue_entries.append(active_reservation(ahead).joins_queue_at)
    assert queue_entries == [ahead.starts_at - 2 * HOUR, None, ahead.starts_at - 15 * MINUTE]
    reservation.refresh_from_db()
    assert (active_reservation(soon).joins_queue_at, reservation.joins_queue_at) == (None, None)


def test_the_queue_entry_of_a_placed_reservation_does_not_change(fleet, book_session, as_admin):
    slot, session = fleet.slot(), book_session()
    fleet.assign(session, slot)
    joins_queue_at = active_reservation(session).joins_queue_at
    Pool.objects.update(scheduler=EARLIER)
    update_queue_entry_times(fleet.reload_pool())
    assert (session.status, active_reservation(session).joins_queue_at) == (
        SessionStatus.SCHEDULED,
        joins_queue_at,
    )
