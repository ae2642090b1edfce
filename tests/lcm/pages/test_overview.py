"""The overview: items that need attention, and the fleet."""

from __future__ import annotations

import re
from datetime import timedelta
from zoneinfo import ZoneInfo

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
def nothing_overdue(db, now):
    """Every observer and handler has just run."""
    from scheduling.coordination.coordinator import coordinator

    names = [*coordinator.observers, *coordinator.handlers]
    ObserverRun.objects.bulk_create(
        ObserverRun(observer=name, started_at=now, duration_ms=1) for name in names
    )


def attention_texts(now) -> list[str]:
    return [item.text for item in attention_items(FleetSnapshot(now))]


def make_slot(pool, now, number=1, **fields) -> Slot:
    sizes = {name: getattr(pool, name) for name in ("cpu_cores", "memory_gb", "storage_gb", "max_leases")}
    return Slot.objects.create(
        pool=pool, number=number, **{"last_state_change": now, "last_heartbeat": now, **sizes, **fields}
    )


def add_ticks(pool, moments, ms=70) -> None:
    TickRun.objects.bulk_create(TickRun(pool=pool, started_at=at, duration_ms=ms) for at in moments)


def make_run(observer, started_at, **fields) -> ObserverRun:
    return ObserverRun.objects.create(observer=observer, started_at=started_at, duration_ms=1, **fields)


def test_a_healthy_fleet_needs_no_attention(client, viewer, nothing_overdue, now):
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert "No items need attention." in page
    assert "No items need attention." in page
    assert "0 running · 0 waiting" in page


def test_a_stopped_pool_is_named_with_its_reason(pool, nothing_overdue, now):
    stop_pool(pool=pool, reason="no such image", now=now - timedelta(hours=3))
    (item,) = attention_items(FleetSnapshot(now))
    assert (item.tone, item.text) == ("bad", "Pool **cml-eu** launches nothing")
    assert item.more.startswith("no such image.")
    assert item.since == now - timedelta(hours=3)
    stop_pool(pool=pool, reason="no such key", now=now)
    assert attention_items(FleetSnapshot(now)) == [item], "the first reason stays, and so does its time"


def test_a_pool_that_backs_off_shows_when_it_retries(pool, nothing_overdue, now):
    since, until = now - timedelta(minutes=15), now + timedelta(minutes=5)
    Pool.objects.filter(pk=pool.pk).update(backoff_since=since, backoff_until=until, failures=3)
    (item,) = attention_items(FleetSnapshot(now))
    assert item.more == "3 launches failed. Launches resume in 5 min"
    assert item.since == since


def test_slots_in_error_overdue_and_silent_need_attention(pool, nothing_overdue, now):
    make_slot(pool, now, 1, state=SlotState.ERROR, state_deadline=now - timedelta(hours=1))
    make_slot(pool, now, 2, state=SlotState.BOOTING, state_deadline=now - timedelta(minutes=1))
    make_slot(pool, now, 3, state=SlotState.DRAINING, state_deadline=now - timedelta(days=1), lease_count=1)
    make_slot(pool, now, 4, state=SlotState.READY, last_heartbeat=now - timedelta(minutes=5))
    make_slot(pool, now, 5, state=SlotState.READY)
    assert attention_texts(now) == [
        "**1 slot** in error",
        "**1 slot** without heartbeat: check the controller",
        "**1 slot** past its deadline",
    ]
    assert [item.since for item in attention_items(FleetSnapshot(now))] == [
        now,
        now - timedelta(minutes=5),
        now - timedelta(minutes=1),
    ]


def test_an_item_about_slots_links_to_the_slots_it_counts(client, viewer, pool, nothing_overdue):
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
    for item in attention_items(FleetSnapshot(now)):
        response = client.get(item.url)
        found[item.text] = sorted(slot.number for slot in response.context["rows"].rows)
    assert found == {
        "**1 slot** in error": [1],
        "**2 slots** past their deadline": [2, 5],
        "**4 slots** without heartbeat: check the controller": [6, 7, 8, 11],
    }


@pytest.mark.parametrize("flag", ["overdue", "silent"])
def test_a_negated_slot_filter_finds_the_remaining_slots(client, viewer, pool, flag):
    now = timezone.now()
    long_ago = now - timedelta(hours=1)
    make_slot(pool, now, 1, state=SlotState.BOOTING, state_deadline=long_ago)
    make_slot(pool, now, 2, state=SlotState.READY, last_heartbeat=long_ago)
    make_slot(pool, now, 3, state=SlotState.EMPTY, last_heartbeat=None)
    client.force_login(viewer)
    rest = client.get(reverse("slot_list"), {flag: "false"}).context["rows"].rows
    assert sorted(slot.number for slot in rest) == ([2, 3] if flag == "overdue" else [1, 3])


def test_a_pool_that_misses_its_wait_target_is_named(pool, nothing_overdue, now):
    ObserverRun.objects.update(started_at=now + timedelta(minutes=15))
    assert attention_texts(now + timedelta(minutes=15)) == []
    later = now + timedelta(minutes=16)
    ObserverRun.objects.update(started_at=later)
    (item,) = attention_items(FleetSnapshot(later))
    assert item.text == "Pool **cml-eu** exceeds its wait target"
    assert item.more == "1 waiting, the oldest for 16 min; target: 15 min"


def test_late_and_failed_observers_are_named(nothing_overdue, now):
    ObserverRun.objects.filter(observer="usage-record").update(error="no disk")
    ObserverRun.objects.filter(observer="usage-aggregation").delete()
    assert attention_texts(now) == [
        "Observer **usage-record** failed",
        "Observer **usage-aggregation** is late",
    ]
    later = now + timedelta(seconds=1)
    make_run("usage-record", later)
    assert attention_texts(later) == ["Observer **usage-aggregation** is late"]


def test_an_observer_that_stopped_long_ago_shows_since_when(nothing_overdue, now):
    stopped = now - timedelta(days=2)
    ObserverRun.objects.filter(observer="usage-record").update(started_at=stopped)
    make_run("usage-record", stopped - timedelta(minutes=1))
    (item,) = attention_items(FleetSnapshot(now))
    assert (item.text, item.since) == ("Observer **usage-record** is late", stopped)


def test_a_failing_observer_shows_since_when_and_its_latest_error(nothing_overdue, now):
    ObserverRun.objects.filter(observer="usage-record").delete()
    for minutes, error in ((40, "zeroth"), (30, ""), (20, "no disk"), (10, "slow disk"), (0, "a full disk")):
        make_run("usage-record", now - timedelta(minutes=minutes), error=error)
    (item,) = attention_items(FleetSnapshot(now))
    assert (item.more, item.since) == ("a full disk", now - timedelta(minutes=20))
    ObserverRun.objects.filter(observer="usage-record", error="").delete()
    (item,) = attention_items(FleetSnapshot(now))
    assert item.since == now - timedelta(minutes=40), "it was never well"


def test_inconsistent_usage_needs_attention(nothing_overdue, now):
    day = now.date()
    UsageCheck.objects.create(
        checked_at=now, first_day=day, last_day=day, record_count=9, difference_count=2, differences=["x"]
    )
    assert attention_texts(now) == ["**2 usage buckets differ** from the records"]


def test_items_are_sorted_by_severity_then_by_age(pool, nothing_overdue, now):
    make_slot(pool, now - timedelta(hours=2), 1, state=SlotState.READY)
    make_slot(pool, now, 2, state=SlotState.ERROR)
    assert [item.tone for item in attention_items(FleetSnapshot(now))] == ["bad", "warn"]


def test_sessions_are_counted_by_status(client, viewer, session, session_in):
    session_in(SessionStatus.RUNNING)
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert "1 running · 2 waiting" in page, "the running session has no placed reservation"
    assert f"{reverse('session_list')}?status=RUNNING" in page


def test_advance_bookings_are_counted_beside_waiting_sessions(client, viewer, session):
    Reservation.objects.update(joins_queue_at=timezone.now() + timedelta(days=1))
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert "0 running · 0 waiting, 1 booked" in page
    assert '<small>sessions</small><div class="sub">1 booked</div>' in page


def test_the_maximum_number_of_slots_is_shown(client, viewer, pool, now):
    make_slot(pool, now, 1, state=SlotState.READY)
    client.force_login(viewer)
    page = client.get(reverse("home")).content.decode()
    assert f"1 ready of max {pool.max_slots}" in page
    assert re.search(r"<dt>Ready slots</dt><dd>1 <small>of max \d+</small>", page)


def test_htmx_gets_only_the_live_part(client, viewer, settings):
    settings.CONFIG["PROMETHEUS_URL"] = "http://prometheus:9090"
    client.force_login(viewer)
    page = client.get(reverse("home"), headers={"HX-Request": "true"}).content.decode()
    assert 'id="live"' in page
    assert "<html" not in page
    assert len(re.findall(r'<section [^>]*id="panel-\w+"[^>]* hx-preserve>', page)) == 3, (
        "they stay as they are"
    )


def test_a_large_fleet_needs_as_many_queries_as_a_small_one(client, viewer, session, pool, project):
    now = timezone.now()
    client.force_login(viewer)
    make_slot(pool, now, 1, state=SlotState.READY)
    with CaptureQueriesContext(connection) as few:
        client.get(reverse("home"))
    for number in range(8):
        other_pool = create_pool(name=f"pool-{number}", actor=SYSTEM, **HUGE)
        make_slot(other_pool, now, 1, state=SlotState.ERROR)
        make_slot(other_pool, now, 2, state=SlotState.READY, last_heartbeat=now - timedelta(hours=1))
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
def test_lazy_panels_are_panels_and_pages_that_reload(name, every, client, viewer, pool):
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


def test_the_tick_chart_has_a_data_table(client, viewer, pool):
    TickRun.objects.create(pool=pool, started_at=timezone.now(), duration_ms=70, counts={"placed": 2})
    client.force_login(viewer)
    page = client.get(reverse("overview_ticks")).content.decode()
    assert "2 sessions placed. Each point is the slowest tick of a pool in 1 min." in page
    assert "70 ms" in page


@pytest.mark.parametrize(("name", "default"), [("overview_ticks", "1h"), ("overview_usage", "30d")])
def test_a_panel_shown_as_a_page_reloads_its_lead_too(name, default, client, viewer, pool):
    client.force_login(viewer)
    htmx_headers = {"HX-Request": "true", "HX-Target": "live"}
    page, again = client.get(reverse(name)), client.get(reverse(name), headers=htmx_headers)
    assert "<html" not in again.content.decode()
    for response in (page, again):
        body = response.content.decode()
        found = re.findall(rf'hx-get="{reverse(name)}([^"]*)"', body)
        assert found == [f"?range={default}"], "the page or its panel, not both"
        assert '<p class="lead"><strong>N' in body


def test_ticks_of_other_ranges_need_as_many_queries_and_keep_their_points_few(client, viewer, pool):
    now = timezone.now()
    client.force_login(viewer)
    add_ticks(pool, [now])
    with CaptureQueriesContext(connection) as few:
        client.get(reverse("overview_ticks"))
    for number in range(10):
        other = create_pool(name=f"cml-{number}", actor=SYSTEM, **HUGE)
        add_ticks(other, [now - timedelta(minutes=3 * each) for each in range(400)], ms=number)
    with CaptureQueriesContext(connection) as many:
        response = client.get(reverse("overview_ticks"), {"range": "24h"})
    assert len(few) == len(many) <= LIMIT
    series = response.context["chart"].series
    assert [each.name for each in series][-1] == "3 other pools"
    assert len(series) == 9
    assert sum(len(each.marks) for each in series) <= 9 * 60


@pytest.mark.parametrize("name", ["overview_ticks", "overview_usage", "fair_share", "usage_explorer"])
def test_a_wrong_range_is_explained_and_the_page_shows_the_default(name, client, viewer, pool):
    client.force_login(viewer)
    page = client.get(reverse(name), {"range": "1y", "pool": "cml-eu"})
    assert page.status_code == 200
    assert "The range “1y” is unknown. Choose one of" in page.content.decode()
    links = re.findall(
        r'href="[^"]*\?pool=cml-eu&amp;range=(\w+)"( aria-current="true")?', page.content.decode()
    )
    assert [bool(current) for _key, current in links].count(True) == 1
    assert ("7d" in dict(links)) == (name != "overview_ticks")


def test_a_custom_range_of_ticks_is_shown_in_the_time_zone_of_the_person(client, viewer, pool):
    viewer.time_zone = "Asia/Kathmandu"
    viewer.save()
    at = (timezone.now() - timedelta(hours=5)).replace(minute=15, second=0, microsecond=0)
    add_ticks(pool, [at + timedelta(minutes=1), at + timedelta(minutes=40)], ms=77)
    client.force_login(viewer)
    half_an_hour = {"range": "custom", "from": at.isoformat(), "to": (at + timedelta(minutes=30)).isoformat()}
    page = client.get(reverse("overview_ticks"), half_an_hour)
    assert len(page.context["chart"].series[0].marks) == 1
    local = at.astimezone(ZoneInfo("Asia/Kathmandu"))
    body = page.content.decode()
    assert f'name="from" value="{local:%Y-%m-%dT%H:%M}"' in body
    assert "In Asia/Kathmandu." in body
    assert 'hx-trigger="every 10s"' not in body, "the range does not move"


def test_a_panel_shown_as_a_page_belongs_to_the_overview(client, viewer, pool):
    client.force_login(viewer)
    for name in ("home", "overview_ticks", "overview_usage"):
        body = client.get(reverse(name)).content.decode()
        (current,) = re.findall(r'<a href="([^"]*)" aria-current="page"', body)
        assert current == reverse("home")


def test_each_pool_has_its_ticks_and_the_slowest_is_named(client, viewer, pool):
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
    assert len(re.findall(r'<g class="kind-\d" data-series', body)) == 2
    assert "<polyline" not in body, "quiet periods have no line"
    assert "cml-eu, max <b>185 ms</b>" in body
    assert "cml-asia, max <b>20 ms</b>" in body
