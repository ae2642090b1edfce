"""Page of controllers and heartbeats."""

from datetime import datetime, timedelta
from decimal import Decimal
from html import unescape

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ApiToken
from observations.models import Presence, TargetKind
from observations.selectors.controllers import controller_statuses, heartbeats_by_pool
from observations.selectors.discovery import candidates, served_pools
from scheduling.models import Slot, SlotState
from scheduling.selectors.pool_overview import pool_overviews
from scheduling.services.controller_leases import acquire_leases, release_leases
from tests.support.factories import make_controller
from tests.support.observed_labs import on_slot

HOLDER = "controller-eu:1"


@pytest.fixture
def page(viewer):
    client = Client()
    client.force_login(viewer)
    return lambda path="/controllers/": client.get(path).content.decode()


@pytest.fixture
def worker(session_in, now):
    """A READY slot of cml-eu with a recent heartbeat."""
    slot = on_slot(session_in(SessionStatus.RUNNING))
    Slot.objects.filter(pk=slot.pk).update(last_heartbeat=now, version="2.10.0+build.4")
    return slot


def hold(name, now, *pools, metrics="10.0.0.7:9108", skew=None):
    """Create a controller with its own token that takes the leases of these pools."""
    token = ApiToken.objects.filter(name=name).first()
    if token is None:
        token = make_controller(name, *(f"pool:{pool}" for pool in pools)).token
    acquire_leases(token=token, holder=name, now=now, metrics_address=metrics, clock_skew_seconds=skew)
    return token


def silent(name, now):
    """Create a controller that last reported five minutes ago."""
    address, seen_at = "10.0.0.8:9108", now - timedelta(minutes=5)
    Presence.objects.create(kind="controller", name=name, address=address, seen_at=seen_at)


def states(now):
    return {each.name: (each.state, each.pools) for each in controller_statuses(served_pools(now), now)}


def test_controllers_are_serving_on_standby_or_silent(worker, now):
    silent("gone", now)
    token = hold(HOLDER, now, "cml-eu")
    hold("spare", now, "cml-eu")
    assert states(now) == {
        HOLDER: ("serving", ("cml-eu",)),
        "gone": ("silent", ()),
        "spare": ("standing by", ()),
    }
    release_leases(token=token, holder=HOLDER, now=now)
    assert HOLDER not in states(now)
    assert "gone" not in states(now + timedelta(days=1))


def test_a_controller_without_metrics_is_listed_by_its_lease(worker, now):
    hold(HOLDER, now, "cml-eu", metrics="")
    (found,) = controller_statuses(served_pools(now), now)
    assert (found.state, found.address, found.seen_at) == ("serving", "", now)


@pytest.mark.parametrize(
    ("skew", "text"),
    [
        (None, ""),
        ("-4.999", ""),
        ("5", "The clock of controller-eu:1 is 5 s ahead of LCM's."),
        ("600.25", "The clock of controller-eu:1 is 10 min ahead of LCM's."),
        ("-7.5", "The clock of controller-eu:1 is 7 s behind LCM's."),
    ],
)
@pytest.mark.parametrize("metrics", ["", "10.0.0.7:9108"])
def test_a_wrong_clock_is_shown(page, worker, now, metrics, skew, text):
    hold(HOLDER, now, "cml-eu", metrics=metrics, skew=skew and Decimal(skew))
    shown = unescape(page())
    assert text in shown
    assert ("Clock off by" in shown) == bool(text)
    assert [each.address for each in candidates(TargetKind.CONTROLLER, now)] == [metrics][: len(metrics)]


def test_a_controller_reports_its_clock_skew(api, controller, worker):
    body = {"holder": HOLDER, "metrics_address": "10.0.0.7:9108", "clock_skew_seconds": 12.5}
    response = api(controller).post("/api/internal/leases/hold", body)
    assert response.status_code == 200
    assert abs(datetime.fromisoformat(response["X-LCM-Time"]) - timezone.now()) < timedelta(minutes=1)
    assert Presence.objects.get(name=HOLDER).clock_skew == Decimal("12.5")
    for wrong in ("NaN", "far", 1e12):
        refused = api(controller).post("/api/internal/leases/hold", {**body, "clock_skew_seconds": wrong})
        assert refused.status_code == 400


def test_a_pool_shows_its_controller_and_the_heartbeats_of_its_workers(worker, now):
    hold(HOLDER, now, "cml-eu")
    eu, us = heartbeats_by_pool(served_pools(now), now)
    assert (eu.state, eu.controller, eu.workers, eu.silent) == ("serving", HOLDER, 1, 0)
    assert (eu.oldest, eu.versions) == (now, ("2.10.0+build.4",))
    assert (us.state, us.workers, us.oldest) == ("unserved", 0, None)
    late = timedelta(seconds=settings.CONFIG["HEARTBEAT_TIMEOUT"])
    assert heartbeats_by_pool({}, now + late)[0].silent == 0
    assert heartbeats_by_pool({}, now + late + timedelta(seconds=1))[0].silent == 1


@pytest.mark.parametrize(
    ("serves", "is_gone", "sentence"),
    [
        (False, False, "No controller serves cml-eu."),
        (True, False, "1 serving controller · 1 served pool · 1 ready worker · 0 silent."),
        (True, True, "No heartbeat for more than a minute: gone."),
    ],
)
def test_the_lead_names_the_most_important_problem(page, worker, now, serves, is_gone, sentence):
    if serves:
        hold(HOLDER, now, "cml-eu")
    if is_gone:
        silent("gone", now)
    assert sentence in page()
    assert sentence in page("/controllers/board")


def test_a_pool_without_ready_workers_is_shown(page, worker, now):
    hold(HOLDER, now, "cml-eu", "cml-us")
    Slot.objects.update(state=SlotState.EMPTY, lease_count=0)
    assert "1 serving controller · 2 served pools · 0 ready workers · 0 silent." in page()


def test_workers_without_heartbeats_are_counted(page, worker, now):
    hold(HOLDER, now, "cml-eu")
    Slot.objects.update(last_heartbeat=None, last_state_change=now)
    assert "silent for" not in page(), "it may not have a controller yet"
    Slot.objects.update(last_state_change=now - timedelta(minutes=3))
    assert "1 worker is silent for more than 2 min." in page()


def test_pages_agree_on_silent_workers(page, worker, now):
    """The column links to the slots it counts, and the overview has the same count."""
    hold(HOLDER, now, "cml-eu")
    long_ago = now - timedelta(minutes=3)
    kinds = [(long_ago, long_ago), (None, long_ago), (None, now), (now, now)]
    for number, (heartbeat, ready) in enumerate(kinds, 2):
        Slot.objects.create(
            pool=worker.pool,
            number=number,
            state=SlotState.READY,
            last_heartbeat=heartbeat,
            last_state_change=ready,
            max_leases=1,
            cpu_cores=1,
            memory_gb=1,
            storage_gb=1,
        )
    link = '<a class="text-bad" href="/slots/?pool=cml-eu&amp;silent=true">2</a>'
    assert link in page()
    assert "Overdue" not in page()
    rows = page("/slots/?pool=cml-eu&silent=true")
    assert ["cml-eu-02" in rows, "cml-eu-03" in rows, "cml-eu-04" in rows] == [True, True, False]
    (line,) = [line for line in pool_overviews(now) if line.silent]
    assert (line.silent, line.silent_since) == (2, long_ago)


def test_without_controllers_the_page_has_instructions(page, admin):
    assert "No controllers" in page()
    assert "An administrator can create a token" in page()
    client = Client()
    client.force_login(admin)
    assert "New token" in client.get("/controllers/").content.decode()


def test_many_controllers_cost_few_queries(page, worker, now, django_assert_max_num_queries):
    for number in range(20):
        Presence.objects.create(kind="controller", name=f"c{number}", address="10.0.0.1:1", seen_at=now)
    page()
    with django_assert_max_num_queries(12):
        page()
