"""The page of controllers and heartbeats."""

from datetime import timedelta

import pytest
from django.test import Client

from lcm.lifecycle import SessionStatus
from observations.models import Presence
from observations.selectors.controllers import controllers_seen, heartbeats_by_pool
from observations.selectors.discovery import served_pools
from scheduling.models import Slot
from scheduling.services.controller_leases import hold_pools, release_pools
from tests.observations.labs import on_slot

HOLDER = "controller-eu:1"


@pytest.fixture
def page(viewer):
    client = Client()
    client.force_login(viewer)
    return lambda path="/controllers/": client.get(path).content.decode()


@pytest.fixture
def worker(session_in, now):
    """A READY slot of cml-eu that was heard of just now."""
    slot = on_slot(session_in(SessionStatus.RUNNING))
    Slot.objects.filter(pk=slot.pk).update(last_heartbeat=now, version="2.10.0+build.4")
    return slot


def hold(name, now, *pools, metrics="10.0.0.7:9108"):
    hold_pools(pools=pools, holder=name, now=now, metrics_address=metrics)


def states(now):
    return {each.name: (each.state, each.pools) for each in controllers_seen(served_pools(now), now)}


def test_one_serves_another_stands_by_and_one_that_is_not_heard_of_is_silent(worker, now):
    hold("gone", now - timedelta(minutes=5))
    hold(HOLDER, now, "cml-eu")
    hold("spare", now, "cml-eu")
    assert states(now) == {
        HOLDER: ("serving", ("cml-eu",)),
        "gone": ("silent", ()),
        "spare": ("standing by", ()),
    }
    release_pools(pools=["cml-eu"], holder=HOLDER)
    assert HOLDER not in states(now)
    assert "gone" not in states(now + timedelta(days=1))


def test_a_controller_without_metrics_is_known_by_its_lease(worker, now):
    hold(HOLDER, now, "cml-eu", metrics="")
    (found,) = controllers_seen(served_pools(now), now)
    assert (found.state, found.address, found.seen_at) == ("serving", "", None)


def test_a_pool_says_who_serves_it_and_what_was_heard_of_its_workers(worker, now):
    hold(HOLDER, now, "cml-eu")
    eu, us = heartbeats_by_pool(served_pools(now), now)
    assert (eu.state, eu.controller, eu.workers, eu.silent) == ("serving", HOLDER, 1, 0)
    assert (eu.oldest, eu.versions) == (now, ("2.10.0+build.4",))
    assert (us.state, us.workers, us.oldest) == ("unserved", 0, None)
    assert heartbeats_by_pool({}, now + timedelta(minutes=4))[0].silent == 1


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        ([], "Nobody serves cml-eu."),
        ([(HOLDER, 0)], "1 controller at work."),
        ([(HOLDER, 0), ("gone", 5)], "Not heard of for more than a minute: gone."),
    ],
)
def test_the_page_begins_with_what_matters(page, worker, now, made, sentence):
    for name, minutes in made:
        hold(name, now - timedelta(minutes=minutes), *(["cml-eu"] if not minutes else []))
    assert sentence in page()
    assert sentence in page("/controllers/board")


def test_workers_without_heartbeats_are_counted(page, worker, now):
    hold(HOLDER, now, "cml-eu")
    Slot.objects.update(last_heartbeat=None)
    assert "1 worker without a heartbeat" in page()


def test_without_any_controller_it_says_what_to_do(page, admin):
    assert "No controller has been heard of" in page()
    assert "An administrator makes a token" in page()
    client = Client()
    client.force_login(admin)
    assert "New token" in client.get("/controllers/").content.decode()


def test_many_controllers_cost_few_queries(page, worker, now, django_assert_max_num_queries):
    for number in range(20):
        Presence.objects.create(kind="controller", name=f"c{number}", address="10.0.0.1:1", seen_at=now)
    page()
    with django_assert_max_num_queries(12):
        page()
