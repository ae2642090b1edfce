"""Pages of the queue, ticks, decisions and reservations."""

import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus
from lcm.templatetags.lcm import status
from scheduling.models import Decision, Reservation, TickRun
from scheduling.pages.texts import place_text
from scheduling.selectors.fair_share import LevelFactors
from tests.scheduling.pages.capacity.test_pool_pages import exported
from tests.support.factories import make_definition
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import FAILING, SessionRequester


@pytest.fixture
def standing_still(configure_pool):
    """A pool whose only slot is cordoned: every session waits."""
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    return fleet


def rows(page):
    return [row.pk for row in page.context["rows"].rows]


def test_waiting_sessions_are_listed_in_scheduler_order(
    standing_still, new_session, login_as, viewer, page_text
):
    low, high = new_session(priority=10), new_session(priority=90)
    standing_still.tick_without_errors()
    new = new_session(priority=90)
    page = login_as(viewer).get(reverse("queue_list"))
    assert rows(page) == [active_reservation(session).pk for session in (high, low, new)]
    said = page_text(page)
    assert "3 waiting: 3 in cml-eu." in said
    assert "The only ready slot does not fit: cordoned." in said
    assert "1.000 · 1.000 · 1.000" in said
    assert "Not evaluated by a tick yet." in said


@pytest.fixture
def booked(new_session, now):
    """A session that is requested now and begins in three hours."""
    return new_session(starts_at=now + timedelta(hours=3), ends_at=now + timedelta(hours=4))


def test_an_advance_booking_does_not_wait(standing_still, booked, login_as, viewer, page_text):
    standing_still.tick_without_errors()
    client = login_as(viewer)
    page = client.get(reverse("queue_list"))
    said = page_text(page)
    assert "0 waiting. 1 booked." in said
    assert "1 reservation in the queue" in said
    assert "booked joins the queue in 2 h" in said
    assert "Advance booking. It joins the queue 15 minutes before its timeslot." in said
    assert "decided just now" in said
    assert status("waiting", "Not yet") in page.content.decode()
    claim = active_reservation(booked)
    assert "Advance booking. It joins the queue in 2 h ." in page_text(
        client.get(reverse("reservation_detail", args=[claim.pk]))
    )
    assert "Pending booked" in page_text(client.get(reverse("reservation_list")))


def test_a_session_that_may_be_placed_nowhere_yet_is_held_against_no_slot(
    standing_still, booked, login_as, viewer, page_text
):
    standing_still.tick_without_errors()
    said = page_text(login_as(viewer).get(reverse("session_wait_reasons", args=[booked.pk])))
    assert f"{booked.definition.name} for {booked.owner.username} in {booked.project.path}." in said
    assert "Next steps It is placed as soon as it has joined the queue and a slot has space. in 2 h" in said
    assert "evaluated" not in said
    assert "All reasons by slot" not in said


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


def test_the_queue_reloads_with_its_filters_and_its_lead(
    standing_still, new_session, login_as, viewer, page_text
):
    new_session()
    client = login_as(viewer)
    address = f"{reverse('queue_list')}?pool=cml-eu&size=50"
    assert 'hx-get="?pool=cml-eu&amp;size=50" hx-trigger="every 10s"' in client.get(address).content.decode()
    again = client.get(address, headers={"HX-Request": "true"})
    assert 'id="lead" hx-swap-oob="true"' in again.content.decode()
    assert "1 waiting: 1 in cml-eu. as of " in page_text(again)
    # Other lists stay as they are.
    assert "every 10s" not in client.get(reverse("decision_list")).content.decode()


def test_ended_reservations_show_time_and_reason(standing_still, login_as, viewer, page_text):
    claim = standing_still.reservation(ttl=1)
    standing_still.clock.advance(seconds=5)
    standing_still.tick_without_errors()
    ended = timezone.now() - timedelta(hours=6)
    Reservation.objects.filter(pk=claim.pk).update(released_at=ended, reason="not renewed")
    said = page_text(login_as(viewer).get(reverse("reservation_list")))
    assert "Expired not renewed" in said
    assert "ended 6 h ago" in said
    assert "0 placed · 0 waiting." in said


@pytest.mark.parametrize(
    ("position", "waiting", "said"),
    [
        (None, 3, "Waiting in cml-eu; not evaluated by a tick yet."),
        (1, 1, "Only session in the queue of cml-eu."),
        (1, 3, "Position 1 of 3 in the queue of cml-eu."),
        (2, 3, "Position 2 of 3 in the queue of cml-eu."),
    ],
)
def test_a_place_in_the_queue_in_words(position, waiting, said):
    assert place_text(position, waiting, "cml-eu") == said


def test_an_empty_queue_has_an_empty_state_and_one_primary_button(configure_pool, login_as, admin, page_text):
    configure_pool()
    page = login_as(admin).get(reverse("queue_list"))
    assert "No sessions are waiting New sessions appear here" in page_text(page)
    assert page.content.decode().count("button-primary") == 1


def test_the_factor_is_that_of_the_registered_rule(
    standing_still, new_session, login_as, viewer, page_text, monkeypatch
):
    new_session()
    stands = LevelFactors(0.5, 0.25, 0.125)
    readers = (lambda _: {}, lambda subjects: dict.fromkeys(subjects, stands))
    monkeypatch.setattr("scheduling.selectors.fair_share._readers", [readers])
    assert "0.500 · 0.250 · 0.125" in page_text(login_as(viewer).get(reverse("queue_list")))


def test_pages_of_the_queue(standing_still, new_session, login_as, viewer):
    for _ in range(30):
        new_session()
    standing_still.tick_without_errors()
    client = login_as(viewer)
    first = client.get(reverse("queue_list"))
    second = client.get(f"{reverse('queue_list')}?{first.context['next_query']}")
    assert (len(rows(first)), len(rows(second))) == (25, 5)
    assert [row.position for row in (*first.context["rows"].rows, *second.context["rows"].rows)] == [
        *range(1, 31)
    ]
    back = client.get(f"{reverse('queue_list')}?{second.context['previous_query']}")
    assert rows(back) == rows(first)
    assert client.get(f"{reverse('queue_list')}?cursor=nonsense").context["problem"]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("q=campus", 2), ("q=nobody", 0), ("q=a+class", 1), ("priority=90", 1), ("outcome=waiting", 3),
        ("outcome=impossible", 0), ("pool=cml-eu", 3), ("outcome=placed", 0),
    ],
)  # fmt: skip
def test_the_queue_can_be_searched_and_filtered(query, count, standing_still, new_session, login_as, viewer):
    new_session(), new_session(priority=90)
    standing_still.reservation()
    standing_still.tick_without_errors()
    assert len(rows(login_as(viewer).get(f"{reverse('queue_list')}?{query}"))) == count


@pytest.mark.django_db(transaction=True)
def test_the_queue_as_a_file_is_in_its_order(standing_still, new_session, login_as, viewer):
    low, high = new_session(priority=10), new_session(priority=90)
    standing_still.tick_without_errors()
    response = login_as(viewer).get(f"{reverse('queue_list')}?format=csv")
    lines = exported(response).splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["1", str(high.pk)], ["2", str(low.pk)]]


def test_ticks_with_their_steps(standing_still, new_session, login_as, viewer, page_text):
    new_session()
    standing_still.tick_without_errors()
    client = login_as(viewer)
    for name in ("tick_list", "queue_ticks"):
        response = client.get(reverse(name))
        said = page_text(response)
        assert "1 new wait reason, 1 without a slot" in said
        assert re.search(r"place \d+\.\d", said)
        assert ("Queue", reverse("queue_list")) in response.context["crumbs"]


def test_one_tick_with_its_decisions_and_scores(configure_pool, new_session, login_as, viewer, page_text):
    fleet = configure_pool(scheduler=FAILING)
    fleet.slot()
    new_session()
    fleet.tick_without_errors()
    said = page_text(login_as(viewer).get(reverse("tick_detail", args=[TickRun.objects.get().pk])))
    assert "1 placed , in " in said
    assert "binpack" in said
    assert "Reading and saving" in said
    assert "cml-eu-01" in said
    assert "RuntimeError: the licence server does not answer" in said


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
    said = page_text(page)
    at = f"{timezone.localtime(tick.started_at):%H:%M:%S}"
    assert f"Tick of cml-eu at {at}" in said
    assert page.context["crumbs"][-1] == (f"cml-eu, {at}", "")
    assert "Expire 1.13 ms Place 41.94 ms Keep minimum under 0.01 ms Scale down 2.96 ms" in said
    assert "Cordon 0.01 ms Spot 0.02 ms Binpack 0.03 ms" in said
    assert "Leases, ports under 0.01 ms each Reading and saving 41.88 ms" in said
    assert "Show all" not in said


def test_steps_of_ticks_are_drawn_as_long_as_they_took(past_tick, login_as, viewer, page_text):
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
    said = page_text(client.get(reverse("decision_list")))
    assert "Last hour: 1 placed, 1 not placed." in said


def test_decisions_of_one_reservation(standing_still, new_session, login_as, viewer, page_text):
    one, other = active_reservation(new_session()), active_reservation(new_session())
    standing_still.tick_without_errors()
    page = login_as(viewer).get(f"{reverse('decision_list')}?reservation={one.pk}")
    assert [row.reservation_id for row in page.context["rows"].rows] == [one.pk]
    assert "Cordoned: cml-eu-01" in page_text(page)
    assert Decision.objects.filter(reservation=other).exists()


@pytest.mark.parametrize("by_what", ["session", "reservation", "holder"])
def test_decisions_are_searched_by_session_and_holder(standing_still, new_session, login_as, viewer, by_what):
    session = new_session()
    bare = standing_still.reservation(holder="a class of 12")
    standing_still.tick_without_errors()
    claim = bare if by_what == "holder" else active_reservation(session)
    text = {"session": str(session.pk)[:12], "reservation": str(claim.pk)[:12], "holder": "class of"}[by_what]
    page = login_as(viewer).get(reverse("decision_list"), {"q": text})
    assert [row.reservation_id for row in page.context["rows"].rows] == [claim.pk]


def test_a_decision_of_a_deleted_tick_is_still_shown(standing_still, new_session, login_as, viewer):
    new_session()
    standing_still.tick_without_errors()
    TickRun.objects.all().delete()
    client = login_as(viewer)
    assert client.get(reverse("decision_list")).status_code == 200
    gone = client.get(reverse("tick_detail", args=[Decision.objects.get().tick_id]))
    assert gone.status_code == 404


def test_a_reservation_with_its_verdict_and_decisions(
    standing_still, new_session, login_as, viewer, page_text
):
    claim = active_reservation(new_session())
    standing_still.tick_without_errors()
    said = page_text(login_as(viewer).get(reverse("reservation_detail", args=[claim.pk])))
    assert "Only session in the queue of cml-eu." in said
    assert "The only ready slot does not fit: cordoned." in said


def test_a_spread_reservation_shows_its_parts(configure_pool, login_as, viewer, page_text):
    fleet = configure_pool(cpu_cores=3, max_slots=2)
    first, _ = fleet.slot(), fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    fleet.tick_without_errors()
    client = login_as(viewer)
    said = page_text(client.get(reverse("reservation_detail", args=[active_reservation(session).pk])))
    assert "It has leases on 2 slots of cml-eu." in said
    assert "cml-eu-01" in said
    assert "cml-eu-02" in said
    panel = page_text(client.get(reverse("session_capacity", args=[session.pk])))
    assert "cml-eu-01" in panel
    assert "cml-eu-02" in panel
    page = client.get(reverse("slot_detail", args=[first.pk]))
    (claim,) = page.context["claims"]
    assert (claim.held.cpu_cores, claim.others) == (3, 1)
    assert "· also on 1 other slot" in page_text(page)
    board = client.get(reverse("pool_detail", args=[fleet.pool.pk])).context["board"]
    assert sorted(tile.meters[0].taken for tile in board.tiles) == [1, 3]


def test_the_panel_of_a_waiting_session(standing_still, new_session, login_as, viewer, page_text):
    session = new_session()
    standing_still.tick_without_errors()
    client = login_as(viewer)
    address = reverse("session_wait_reasons", args=[session.pk])
    assert address in client.get(reverse("session_detail", args=[session.pk])).content.decode()
    said = page_text(client.get(address, headers={"HX-Request": "true"}))
    assert "1 of 1 in cml-eu" in said
    assert "The only ready slot does not fit: cordoned." in said
    assert "Cordoned 1 slot: cordoned" in said
    assert "Next steps and suggestions" in said
    assert "1 ready slot evaluated" in said
    assert "Slot Wait reason" not in said
    assert "Slot Wait reason" in page_text(client.get(f"{address}?by=slot"))


def test_no_panel_for_a_session_that_does_not_wait(session_in, login_as, viewer, page_text):
    session = session_in(SessionStatus.RUNNING)
    client = login_as(viewer)
    address = reverse("session_wait_reasons", args=[session.pk])
    assert address not in client.get(reverse("session_detail", args=[session.pk])).content.decode()
    assert "it is not waiting for a slot" in page_text(client.get(address))
