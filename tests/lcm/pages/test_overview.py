"""The overview: what needs a person, and the fleet."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from fairshare.models import UsageCheck
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.web.attention import FleetSnapshot, attention_items
from scheduling.models import ObserverRun, Pool, Reservation, Slot, SlotState, TickRun
from scheduling.services.pools import create_pool, stop_pool
from tests.support.factories import HUGE, UserFactory, make_definition, make_session

LIMIT = 12


@pytest.fixture
def pool(session):
    return Pool.objects.get(name="cml-eu")


@pytest.fixture
def on_time(db, now):
    """Every observer and handler has run a moment ago."""
    from scheduling.coordination.coordinator import coordinator

    names = [*coordinator.observers, *coordinator.handlers]
    ObserverRun.objects.bulk_create(
        ObserverRun(observer=name, started_at=now, duration_ms=1) for name in names
    )


def texts(now) -> list[str]:
    return [need.text for need in attention_items(FleetSnapshot(now))]


def make_slot(pool, now, number=1, **fields) -> Slot:
    sizes = {name: getattr(pool, name) for name in ("cpu_cores", "memory_gb", "storage_gb", "max_leases")}
    return Slot.objects.create(
        pool=pool, number=number, **{"last_state_change": now, "last_heartbeat": now, **sizes, **fields}
    )


def make_run(observer, started_at, **fields) -> ObserverRun:
    return ObserverRun.objects.create(observer=observer, started_at=started_at, duration_ms=1, **fields)


def test_a_quiet_fleet_needs_nobody(client, viewer, on_time, now):
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert "Nothing needs you." in page
    assert "Nothing waits for a person." in page
    assert "No session runs, 0 waiting." in page


def test_a_stopped_pool_is_named_with_its_reason(pool, on_time, now):
    stop_pool(pool=pool, reason="no such image", now=now - timedelta(hours=3))
    (need,) = attention_items(FleetSnapshot(now))
    assert (need.tone, need.text) == ("bad", "Pool **cml-eu** launches nothing")
    assert need.more.startswith("no such image.")
    assert need.since == now - timedelta(hours=3)
    stop_pool(pool=pool, reason="no such key", now=now)
    assert attention_items(FleetSnapshot(now)) == [need], "the first reason stays, and so does its time"


def test_a_pool_that_backs_off_says_when_it_goes_on(pool, on_time, now):
    since, until = now - timedelta(minutes=15), now + timedelta(minutes=5)
    Pool.objects.filter(pk=pool.pk).update(backoff_since=since, backoff_until=until, failures=3)
    (need,) = attention_items(FleetSnapshot(now))
    assert need.more == "3 launches failed. Launches resume in 5 min"
    assert need.since == since


def test_slots_in_error_overdue_and_silent(pool, on_time, now):
    make_slot(pool, now, 1, state=SlotState.ERROR, state_deadline=now - timedelta(hours=1))
    make_slot(pool, now, 2, state=SlotState.BOOTING, state_deadline=now - timedelta(minutes=1))
    make_slot(pool, now, 3, state=SlotState.DRAINING, state_deadline=now - timedelta(days=1), lease_count=1)
    make_slot(pool, now, 4, state=SlotState.READY, last_heartbeat=now - timedelta(minutes=5))
    make_slot(pool, now, 5, state=SlotState.READY)
    assert texts(now) == [
        "**1 slot** in error",
        "**1 slot** without heartbeat: check the controller",
        "**1 slot** past its deadline",
    ]
    assert [need.since for need in attention_items(FleetSnapshot(now))] == [
        now,
        now - timedelta(minutes=5),
        now - timedelta(minutes=1),
    ]


def test_a_line_about_slots_leads_to_those_it_counts(client, viewer, pool, on_time):
    now = timezone.now()
    past = {"state_deadline": now - timedelta(hours=1)}
    make_slot(pool, now, 1, state=SlotState.ERROR, **past)
    make_slot(pool, now, 2, state=SlotState.BOOTING, **past)
    make_slot(pool, now, 3, state=SlotState.BOOTING, state_deadline=now + timedelta(hours=1))
    make_slot(pool, now, 4, state=SlotState.DRAINING, lease_count=1, **past)
    make_slot(pool, now, 5, state=SlotState.DRAINING, **past)
    for number in (6, 7, 8):
        make_slot(pool, now, number, state=SlotState.READY, last_heartbeat=now - timedelta(hours=1))
    make_slot(pool, now, 9, state=SlotState.READY)
    make_slot(pool, now, 10, state=SlotState.READY, last_heartbeat=None)
    make_slot(pool, now - timedelta(hours=1), 11, state=SlotState.READY, last_heartbeat=None)
    client.force_login(viewer)
    found = {}
    for need in attention_items(FleetSnapshot(now)):
        answer = client.get(need.url)
        found[need.text] = sorted(slot.number for slot in answer.context["rows"].rows)
    assert found == {
        "**1 slot** in error": [1],
        "**2 slots** past their deadline": [2, 5],
        "**4 slots** without heartbeat: check the controller": [6, 7, 8, 11],
    }


@pytest.mark.parametrize("flag", ["overdue", "silent"])
def test_the_others_are_all_the_rest(client, viewer, pool, flag):
    now = timezone.now()
    long_ago = now - timedelta(hours=1)
    make_slot(pool, now, 1, state=SlotState.BOOTING, state_deadline=long_ago)
    make_slot(pool, now, 2, state=SlotState.READY, last_heartbeat=long_ago)
    make_slot(pool, now, 3, state=SlotState.EMPTY, last_heartbeat=None)
    client.force_login(viewer)
    rest = client.get(reverse("slot_list"), {flag: "false"}).context["rows"].rows
    assert sorted(slot.number for slot in rest) == ([2, 3] if flag == "overdue" else [1, 3])


def test_a_pool_that_breaks_its_promise_is_named(pool, on_time, now):
    ObserverRun.objects.update(started_at=now + timedelta(minutes=15))
    assert texts(now + timedelta(minutes=15)) == []
    later = now + timedelta(minutes=16)
    ObserverRun.objects.update(started_at=later)
    (need,) = attention_items(FleetSnapshot(later))
    assert need.text == "Pool **cml-eu** exceeds its wait target"
    assert need.more == "1 waiting, the oldest for 16 min; target: 15 min"


def test_late_and_failed_observers_are_named(on_time, now):
    ObserverRun.objects.filter(observer="usage-record").update(error="no disk")
    ObserverRun.objects.filter(observer="usage-aggregation").delete()
    assert texts(now) == ["Observer **usage-record** failed", "Observer **usage-aggregation** is late"]
    later = now + timedelta(seconds=1)
    make_run("usage-record", later)
    assert texts(later) == ["Observer **usage-aggregation** is late"]


def test_an_observer_that_stopped_long_ago_says_since_when(on_time, now):
    stopped = now - timedelta(days=2)
    ObserverRun.objects.filter(observer="usage-record").update(started_at=stopped)
    make_run("usage-record", stopped - timedelta(minutes=1))
    (need,) = attention_items(FleetSnapshot(now))
    assert (need.text, need.since) == ("Observer **usage-record** is late", stopped)


def test_an_observer_that_fails_says_since_when_and_its_newest_error(on_time, now):
    ObserverRun.objects.filter(observer="usage-record").delete()
    for minutes, error in ((40, "zeroth"), (30, ""), (20, "no disk"), (10, "slow disk"), (0, "a full disk")):
        make_run("usage-record", now - timedelta(minutes=minutes), error=error)
    (need,) = attention_items(FleetSnapshot(now))
    assert (need.more, need.since) == ("a full disk", now - timedelta(minutes=20))
    ObserverRun.objects.filter(observer="usage-record", error="").delete()
    (need,) = attention_items(FleetSnapshot(now))
    assert need.since == now - timedelta(minutes=40), "it was never well"


def test_usage_that_does_not_add_up_is_told(on_time, now):
    day = now.date()
    UsageCheck.objects.create(
        checked_at=now, first_day=day, last_day=day, record_count=9, difference_count=2, differences=["x"]
    )
    assert texts(now) == ["**2 usage buckets differ** from the records"]


def test_the_worst_comes_first_then_the_oldest(pool, on_time, now):
    make_slot(pool, now - timedelta(hours=2), 1, state=SlotState.READY)
    make_slot(pool, now, 2, state=SlotState.ERROR)
    assert [need.tone for need in attention_items(FleetSnapshot(now))] == ["bad", "warn"]


def test_sessions_are_counted_by_status(client, viewer, session, session_in):
    session_in(SessionStatus.RUNNING)
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert "1 session runs, 2 waiting." in page, "nobody placed the claim of the one that runs"
    assert f"{reverse('session_list')}?status=RUNNING" in page


def test_who_booked_ahead_is_told_beside_who_waits(client, viewer, session):
    Reservation.objects.update(turn_at=timezone.now() + timedelta(days=1))
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert "No session runs, 0 waiting, 1 booked." in page
    assert '<small>sessions</small><div class="sub">1 booked ahead</div>' in page


def test_how_many_slots_there_may_be_is_said_as_the_most(client, viewer, pool, now):
    make_slot(pool, now, 1, state=SlotState.READY)
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert f"1 ready, {pool.max_slots} at most" in page
    assert re.search(r"<dt>Ready slots</dt><dd>1 <small>\d+ at most</small>", page)


def test_htmx_gets_the_live_part_alone(client, viewer):
    client.force_login(viewer)
    page = client.get(reverse("home"), headers={"HX-Request": "true"}).content.decode()
    assert 'id="live"' in page
    assert "<html" not in page
    assert len(re.findall(r'<section [^>]*id="panel-\w+"[^>]* hx-preserve>', page)) == 3, (
        "they stay as they are"
    )


def test_a_large_fleet_costs_as_many_queries_as_a_small_one(client, viewer, session, pool, project):
    now = timezone.now()
    client.force_login(viewer)
    make_slot(pool, now, 1, state=SlotState.READY)
    with CaptureQueriesContext(connection) as few:
        client.get(reverse("home"))
    for number in range(8):
        other = create_pool(name=f"pool-{number}", actor=SYSTEM, **HUGE)
        make_slot(other, now, 1, state=SlotState.ERROR)
        make_slot(other, now, 2, state=SlotState.READY, last_heartbeat=now - timedelta(hours=1))
        definition = make_definition()
        definition.needs_review = True
        definition.save()
        owner = UserFactory()
        project.memberships.create(user=owner)
        make_session(definition, project, owner, now=now - timedelta(hours=1))
    with CaptureQueriesContext(connection) as many:
        client.get(reverse("home"))
    assert len(few) == len(many) <= LIMIT


@pytest.mark.parametrize(("name", "every"), [("overview_ticks", "10s"), ("overview_usage", "60s")])
def test_what_loads_later_is_a_panel_and_a_page_and_stays_fresh(name, every, client, viewer, pool):
    TickRun.objects.create(pool=pool, started_at=timezone.now(), duration_ms=70, counts={"placed": 2})
    client.force_login(viewer)
    with CaptureQueriesContext(connection) as captured:
        page = client.get(reverse(name)).content.decode()
    panel = client.get(reverse(name), headers={"HX-Request": "true"}).content.decode()
    assert "<html" in page
    assert "<html" not in panel
    assert 'class="panel"' in panel
    assert f'hx-get="{reverse(name)}" hx-trigger="every {every}"' in panel
    assert re.search(r"as of \d\d:\d\d:\d\d", panel)
    assert len(captured) <= LIMIT


def test_the_ticks_are_drawn_with_their_numbers(client, viewer, pool):
    TickRun.objects.create(pool=pool, started_at=timezone.now(), duration_ms=70, counts={"placed": 2})
    client.force_login(viewer)
    page = client.get(reverse("overview_ticks")).content.decode()
    assert "2 sessions were placed in this time. Quiet ticks in a row are drawn as one point." in page
    assert "70 ms" in page


@pytest.mark.parametrize("name", ["overview_ticks", "overview_usage"])
def test_a_panel_that_is_a_page_asks_for_its_lead_too(name, client, viewer, pool):
    client.force_login(viewer)
    asked = {"HX-Request": "true", "HX-Target": "live"}
    page, again = client.get(reverse(name)), client.get(reverse(name), headers=asked)
    assert "<html" not in again.content.decode()
    for answer in (page, again):
        body = answer.content.decode()
        assert body.count(f'hx-get="{reverse(name)}"') == 1, "the page or its panel, not both"
        assert '<p class="lead"><strong>N' in body


def test_a_panel_that_is_a_page_belongs_to_the_overview(client, viewer, pool):
    client.force_login(viewer)
    for name in ("home", "overview_ticks", "overview_usage"):
        body = client.get(reverse(name)).content.decode()
        (current,) = re.findall(r'<a href="([^"]*)" aria-current="page"', body)
        assert current == reverse("home")


def test_ticks_of_pools_are_lines_of_their_own_and_the_slowest_is_told(client, viewer, pool):
    now = timezone.now()
    other = create_pool(name="cml-asia", actor=SYSTEM, **HUGE)
    for each, ms, age in ((pool, 185, 2), (other, 20, 1), (pool, 7, 0)):
        TickRun.objects.create(
            pool=each, started_at=now - timedelta(seconds=age), duration_ms=ms, counts={"placed": 0}
        )
    client.force_login(viewer)
    page = client.get(reverse("overview_ticks"))
    assert page.context["sentence"] == f"**Last tick ({pool.name}): 7 ms; slowest: 185 ms.**"
    body = page.content.decode()
    assert body.count("<polyline") == 2
    assert "cml-eu, last <b>7 ms</b>" in body
    assert "cml-asia, last <b>20 ms</b>" in body
