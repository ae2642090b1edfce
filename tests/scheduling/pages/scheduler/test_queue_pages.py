"""Pages of the queue, ticks, decisions and reservations."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus
from lcm.templatetags.lcm import status
from scheduling.models import Decision, Reservation, TickRun
from scheduling.pages.texts import position_text
from scheduling.selectors.fair_share import LevelFactors
from scheduling.selectors.queue import queue_snapshot
from tests.scheduling.pages.capacity.test_pool_pages import exported
from tests.support import extensions
from tests.support.factories import make_definition
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import FAILING, SessionRequester


@pytest.fixture
def blocked_fleet(configure_pool):
    """A pool whose only slot is cordoned: every session waits."""
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    return fleet


def row_ids(page):
    return [row.pk for row in page.context["rows"].rows]


def test_waiting_sessions_are_listed_in_scheduler_order(
    blocked_fleet, new_session, login_as, viewer, page_text
):
    low, high = new_session(priority=10), new_session(priority=90)
    blocked_fleet.tick_without_errors()
    new = new_session(priority=90)
    page = login_as(viewer).get(reverse("queue_list"))
    assert row_ids(page) == [active_reservation(session).pk for session in (high, low, new)]
    text = page_text(page)
    assert "3 waiting: 3 in cml-eu." in text
    assert "The only ready slot does not fit: cordoned." in text
    assert "1.000 · 1.000 · 1.000" in text
    assert "Not evaluated by a tick yet." in text


@pytest.fixture
def booked_session(new_session, now):
    """A session that is requested now and starts in three hours."""
    return new_session(starts_at=now + timedelta(hours=3), ends_at=now + timedelta(hours=4))


def test_an_advance_booking_does_not_wait(blocked_fleet, booked_session, login_as, viewer, page_text):
    blocked_fleet.tick_without_errors()
    client = login_as(viewer)
    page = client.get(reverse("queue_list"))
    text = page_text(page)
    assert "0 waiting. 1 booked." in text
    assert "0 reservations in the queue · 1 booked" in text
    assert queue_snapshot(blocked_fleet.pool).position_of(active_reservation(booked_session).pk) is None
    assert "booked joins the queue in 2 h 44 min" in text
    assert "Advance booking. It joins the queue 15 minutes before its timeslot." in text
    assert "decided just now" in text
    assert status("waiting", "Not yet") in page.content.decode()
    reservation = active_reservation(booked_session)
    assert "Advance booking. It joins the queue in 2 h 44 min ." in page_text(
        client.get(reverse("reservation_detail", args=[reservation.pk]))
    )
    assert "Pending booked" in page_text(client.get(reverse("reservation_list")))


def test_the_wait_reasons_of_an_advance_booking_evaluate_no_slots(
    blocked_fleet, booked_session, login_as, viewer, page_text
):
    blocked_fleet.tick_without_errors()
    text = page_text(login_as(viewer).get(reverse("session_wait_reasons", args=[booked_session.pk])))
    definition, owner, project = booked_session.definition, booked_session.owner, booked_session.project
    assert f"{definition.name} for {owner.username} in {project.path}." in text
    assert "Next steps It is placed as soon as it has joined the queue and a slot has space. in 2 h" in text
    assert "evaluated" not in text
    assert "All reasons by slot" not in text


def test_sessions_that_exceed_the_wait_target_are_marked(
    configure_pool, new_session, login_as, viewer, page_text
):
    configure_pool(target_wait_seconds=60)
    late = new_session()
    created = timezone.now() - timedelta(minutes=5)
    Reservation.objects.filter(session=late).update(created_at=created)
    new_session()
    page = login_as(viewer).get(reverse("queue_list"))
    marks = {row.session_id: row.exceeds_target_wait for row in page.context["rows"].rows}
    assert list(marks.values()).count(True) == 1
    assert marks[late.pk]
    assert "over target 5 min" in page_text(page)


def test_the_queue_reloads_with_its_filters_and_its_status_line(
    blocked_fleet, new_session, login_as, viewer, page_text
):
    new_session()
    client = login_as(viewer)
    address = f"{reverse('queue_list')}?pool=cml-eu&size=50"
    assert 'hx-get="?pool=cml-eu&amp;size=50" hx-trigger="every 10s"' in client.get(address).content.decode()
    again = client.get(address, headers={"HX-Request": "true"})
    assert 'id="lead" hx-swap-oob="true"' in again.content.decode()
    assert "1 waiting: 1 in cml-eu. as of " in page_text(again)
    # Other lists do not reload.
    assert "every 10s" not in client.get(reverse("decision_list")).content.decode()


def test_ended_reservations_show_time_and_reason(blocked_fleet, login_as, viewer, page_text):
    reservation = blocked_fleet.reservation(ttl=1)
    blocked_fleet.clock.advance(seconds=5)
    blocked_fleet.tick_without_errors()
    ended = timezone.now() - timedelta(hours=6)
    Reservation.objects.filter(pk=reservation.pk).update(released_at=ended, reason="not renewed")
    text = page_text(login_as(viewer).get(reverse("reservation_list")))
    assert "Expired not renewed" in text
    assert "ended 6 h ago" in text
    assert "0 placed · 0 waiting." in text


@pytest.mark.parametrize(
    ("position", "waiting", "text"),
    [
        (None, 3, "Waiting in cml-eu; not evaluated by a tick yet."),
        (1, 1, "Only session in the queue of cml-eu."),
        (1, 3, "Position 1 of 3 in the queue of cml-eu."),
        (2, 3, "Position 2 of 3 in the queue of cml-eu."),
    ],
)
def test_the_queue_position_is_written_as_text(position, waiting, text):
    assert position_text(position, waiting, "cml-eu") == text


def test_an_empty_queue_has_an_empty_state_and_one_primary_button(configure_pool, login_as, admin, page_text):
    configure_pool()
    page = login_as(admin).get(reverse("queue_list"))
    assert "No sessions are waiting New sessions appear here" in page_text(page)
    assert page.content.decode().count("button-primary") == 1


def test_the_queue_shows_the_registered_fair_share_factors(
    blocked_fleet, new_session, login_as, viewer, page_text
):
    new_session()
    factors = LevelFactors(0.5, 0.25, 0.125)
    with extensions.replaced(member_factors=[lambda subjects: dict.fromkeys(subjects, factors)]):
        assert "0.500 · 0.250 · 0.125" in page_text(login_as(viewer).get(reverse("queue_list")))


def test_the_queue_is_divided_into_pages(blocked_fleet, new_session, login_as, viewer):
    for _ in range(30):
        new_session()
    blocked_fleet.tick_without_errors()
    client = login_as(viewer)
    first = client.get(reverse("queue_list"))
    second = client.get(f"{reverse('queue_list')}?{first.context['next_query']}")
    assert (len(row_ids(first)), len(row_ids(second))) == (25, 5)
    assert [row.position for row in (*first.context["rows"].rows, *second.context["rows"].rows)] == [
        *range(1, 31)
    ]
    back = client.get(f"{reverse('queue_list')}?{second.context['previous_query']}")
    assert row_ids(back) == row_ids(first)
    assert client.get(f"{reverse('queue_list')}?cursor=nonsense").context["problem"]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("q=campus", 2), ("q=unknown", 0), ("q=a+class", 1), ("priority=90", 1), ("outcome=waiting", 3),
        ("outcome=impossible", 0), ("pool=cml-eu", 3), ("outcome=placed", 0),
    ],
)  # fmt: skip
def test_the_queue_can_be_searched_and_filtered(query, count, blocked_fleet, new_session, login_as, viewer):
    new_session(), new_session(priority=90)
    blocked_fleet.reservation()
    blocked_fleet.tick_without_errors()
    assert len(row_ids(login_as(viewer).get(f"{reverse('queue_list')}?{query}"))) == count


@pytest.mark.django_db(transaction=True)
def test_the_exported_queue_keeps_its_order(blocked_fleet, new_session, login_as, viewer):
    low, high = new_session(priority=10), new_session(priority=90)
    blocked_fleet.tick_without_errors()
    response = login_as(viewer).get(f"{reverse('queue_list')}?format=csv")
    lines = exported(response).splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["1", str(high.pk)], ["2", str(low.pk)]]


def test_the_list_of_ticks_shows_their_steps(blocked_fleet, new_session, login_as, viewer, page_text):
    new_session()
    blocked_fleet.tick_without_errors()
    client = login_as(viewer)
    for name in ("tick_list", "queue_ticks"):
        response = client.get(reverse(name))
        text = page_text(response)
        assert "1 new wait reason, 1 without a slot" in text
        assert "Place Launch Interruptions Other" in text
        assert re.search(r"place \d+\.\d", text)
        assert ("Queue", reverse("queue_list")) in response.context["crumbs"]


def test_a_tick_page_shows_decisions_and_scores(configure_pool, new_session, login_as, viewer, page_text):
    fleet = configure_pool(scheduler=FAILING)
    fleet.slot()
    new_session()
    fleet.tick_without_errors()
    text = page_text(login_as(viewer).get(reverse("tick_detail", args=[TickRun.objects.get().pk])))
    assert "1 placed , in " in text
    assert "binpack" in text
    assert "Reading and saving" in text
    assert "cml-eu-01" in text
    assert "RuntimeError: the licence server does not respond" in text


@pytest.fixture
def past_tick(pool, now):
    """`past_tick(…)`: a tick of 46.03 ms, most of it in placement."""

    def make(**fields):
        step_ms = {"keep_minimum": 0.0, "place": 41.94, "expire": 1.13, "scale_down": 2.96}
        values = {"pool": pool, "started_at": now, "duration_ms": 46, "step_ms": step_ms}
        return TickRun.objects.create(**(values | fields))

    return make


def test_a_tick_shows_its_steps_and_plugins_in_order(past_tick, login_as, viewer, page_text):
    figures = {"binpack": {"ms": 0.03}, "cordon": {"ms": 0.01}, "ports": {"ms": 0.0}, "spot": {"ms": 0.02}}
    tick = past_tick(plugins=figures | {"leases": {"ms": 0.0}})
    page = login_as(viewer).get(reverse("tick_detail", args=[tick.pk]))
    text = page_text(page)
    at = f"{timezone.localtime(tick.started_at):%H:%M:%S} UTC"
    assert f"Tick of cml-eu at {at}" in text
    assert page.context["crumbs"][-1] == (f"cml-eu, {at}", "")
    assert "Expire 1.13 ms Place 41.94 ms Keep minimum under 0.01 ms Scale down 2.96 ms" in text
    assert "Cordon 0.01 ms Spot 0.02 ms Binpack 0.03 ms" in text
    assert "Leases, ports under 0.01 ms each Reading and saving 41.88 ms" in text
    assert "Show all" not in text


def test_tick_steps_are_drawn_to_scale(past_tick, login_as, viewer, page_text):
    past_tick(), past_tick(step_ms={"place": 92.06}, duration_ms=92)
    page = login_as(viewer).get(reverse("queue_ticks"))
    assert "expire 1.1 · place 41.9 · scale down 3.0 ms" in page_text(page)
    assert "Steps, 0–92 ms" in page_text(page)
    bars = sorted(
        [(each.step.kind, each.x, each.width) for each in tick.steps.segments]
        for tick, _ in page.context["ticks"]
    )
    assert bars == [[(1, 0, 1000)], [(5, 0, 12.3), (1, 12.3, 455.6), (5, 467.8, 32.2)]]


def test_the_list_of_ticks_starts_with_the_last_hour(past_tick, pool, now, login_as, viewer, page_text):
    client = login_as(viewer)
    assert "No tick has run in the last hour." in page_text(client.get(reverse("tick_list")))
    past_tick(duration_ms=185), past_tick(started_at=now - timedelta(hours=2), duration_ms=900)
    assert "No tick failed in the last hour; slowest: 185 ms." in page_text(client.get(reverse("tick_list")))
    past_tick(errors={"place": "gone"})
    page = client.get(f"{reverse('tick_list')}?sort=-duration_ms")
    assert "1 tick failed in the last hour; slowest: 185 ms." in page_text(page)
    assert [row.duration_ms for row in page.context["rows"].rows] == [900, 185, 46]


def test_the_list_of_decisions_starts_with_the_last_hour(
    configure_pool, new_session, login_as, viewer, page_text
):
    fleet = configure_pool(max_slots=1)
    client = login_as(viewer)
    assert "No decisions in the last hour." in page_text(client.get(reverse("decision_list")))
    fleet.slot()
    new_session(), fleet.reservation(14)
    fleet.tick_without_errors()
    text = page_text(client.get(reverse("decision_list")))
    assert "Last hour: 1 placed, 1 not placed." in text


def test_decisions_are_filtered_by_reservation(blocked_fleet, new_session, login_as, viewer, page_text):
    one, other = active_reservation(new_session()), active_reservation(new_session())
    blocked_fleet.tick_without_errors()
    page = login_as(viewer).get(f"{reverse('decision_list')}?reservation={one.pk}")
    assert [row.reservation_id for row in page.context["rows"].rows] == [one.pk]
    assert "Cordoned: cml-eu-01" in page_text(page)
    assert Decision.objects.filter(reservation=other).exists()


@pytest.mark.parametrize("field", ["session", "reservation", "holder"])
def test_decisions_are_searched_by_session_and_holder(blocked_fleet, new_session, login_as, viewer, field):
    session = new_session()
    bare_reservation = blocked_fleet.reservation(holder="a class of 12")
    blocked_fleet.tick_without_errors()
    reservation = bare_reservation if field == "holder" else active_reservation(session)
    text = {"session": str(session.pk)[:12], "reservation": str(reservation.pk)[:12], "holder": "class of"}[
        field
    ]
    page = login_as(viewer).get(reverse("decision_list"), {"q": text})
    assert [row.reservation_id for row in page.context["rows"].rows] == [reservation.pk]


def test_a_decision_of_a_deleted_tick_is_still_shown(blocked_fleet, new_session, login_as, viewer):
    new_session()
    blocked_fleet.tick_without_errors()
    TickRun.objects.all().delete()
    client = login_as(viewer)
    assert client.get(reverse("decision_list")).status_code == 200
    gone = client.get(reverse("tick_detail", args=[Decision.objects.get().tick_id]))
    assert gone.status_code == 404


def test_a_reservation_page_shows_its_position_and_wait_reason(
    blocked_fleet, new_session, login_as, viewer, page_text
):
    reservation = active_reservation(new_session())
    blocked_fleet.tick_without_errors()
    text = page_text(login_as(viewer).get(reverse("reservation_detail", args=[reservation.pk])))
    assert "Only session in the queue of cml-eu." in text
    assert "The only ready slot does not fit: cordoned." in text


def test_a_spread_reservation_shows_its_parts(configure_pool, login_as, viewer, page_text):
    fleet = configure_pool(cpu_cores=3, max_slots=2)
    first, _ = fleet.slot(), fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    fleet.tick_without_errors()
    client = login_as(viewer)
    text = page_text(client.get(reverse("reservation_detail", args=[active_reservation(session).pk])))
    assert "The reservation has leases on 2 slots of cml-eu." in text
    assert "cml-eu-01" in text
    assert "cml-eu-02" in text
    panel = page_text(client.get(reverse("session_capacity", args=[session.pk])))
    assert "cml-eu-01" in panel
    assert "cml-eu-02" in panel
    page = client.get(reverse("slot_detail", args=[first.pk]))
    (reservation,) = page.context["claims"]
    assert (reservation.share.cpu_cores, reservation.others) == (3, 1)
    assert "· also on 1 other slot" in page_text(page)
    board = client.get(reverse("pool_detail", args=[fleet.pool.pk])).context["board"]
    assert sorted(tile.meters[0].used for tile in board.tiles) == [1, 3]


def test_the_panel_of_a_waiting_session_shows_its_wait_reasons(
    blocked_fleet, new_session, login_as, viewer, page_text
):
    session = new_session()
    blocked_fleet.tick_without_errors()
    client = login_as(viewer)
    address = reverse("session_wait_reasons", args=[session.pk])
    assert address in client.get(reverse("session_detail", args=[session.pk])).content.decode()
    text = page_text(client.get(address, headers={"HX-Request": "true"}))
    assert "1 of 1 in cml-eu" in text
    assert "The only ready slot does not fit: cordoned." in text
    assert "Cordoned 1 slot: cordoned" in text
    assert "Next steps and suggestions" in text
    assert "1 ready slot evaluated" in text
    assert "Slot Wait reason" not in text
    assert "Slot Wait reason" in page_text(client.get(f"{address}?by=slot"))


def test_a_session_that_is_not_waiting_has_no_panel(session_in, login_as, viewer, page_text):
    session = session_in(SessionStatus.RUNNING)
    client = login_as(viewer)
    address = reverse("session_wait_reasons", args=[session.pk])
    assert address not in client.get(reverse("session_detail", args=[session.pk])).content.decode()
    assert "it is not waiting for a slot" in page_text(client.get(address))
