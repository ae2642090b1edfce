"""A pool backs off or is at its maximum: one event when that begins, one when it has ended, no flood."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from lcm.domain.actors import SYSTEM
from lcm.models import ChangeLog
from scheduling.capacity.launcher import count_failure
from scheduling.capacity.runtimes.base import CapacityRefused, RuntimeFailure, Throttled
from scheduling.models import Pool, SlotState
from scheduling.services.pool_announcements import announce_launches_resumed, announce_maximum
from scheduling.services.pools import stop_pool, update_pool
from scheduling.services.reservations import release_reservation

S = SlotState
MINUTE = timedelta(minutes=1)


def events(*names):
    names = names or ("pool.backed_off", "pool.launches_resumed", "pool.at_maximum", "pool.below_maximum")
    return list(ChangeLog.objects.filter(event__in=names).order_by("pk").values_list("event", flat=True))


def request(fleet):
    """Reserve a whole slot for a day."""
    return fleet.reservation(cpu=16, ttl=86_400)


def pass_time(fleet, minutes, every=1.0):
    """Run the pool, and the task that looks for ended back-offs."""
    for _ in range(round(minutes / every)):
        fleet.round(seconds=60 * every)
        announce_launches_resumed(now=fleet.clock())


@pytest.mark.parametrize("error", [RuntimeFailure("boom"), CapacityRefused("none left"), Throttled("slow")])
def test_a_pool_that_backs_off_again_and_again_is_announced_once(error, fleet):
    request(fleet)
    fleet.runtime.error = error
    pass_time(fleet, 60, every=4)
    assert fleet.runtime.count("launch") > 1
    assert events() == ["pool.backed_off"]
    entry = ChangeLog.objects.get(event="pool.backed_off")
    assert (entry.object_id, entry.reason, entry.routed) == (str(fleet.pool.pk), str(error), False)
    assert "backoff_until" in entry.after


def test_the_end_is_announced_some_time_after_the_last_refusal(fleet):
    fleet.slot(S.LAUNCHING)
    fleet.runtime.error = CapacityRefused("none left")
    fleet.launch()
    until = fleet.reload_pool().backoff_until
    for minutes in (1, 14, 15, 16):
        announce_launches_resumed(now=until + minutes * MINUTE)
        assert ("pool.launches_resumed" in events()) == (minutes >= 15)
    assert len(events()) == 2


def test_the_end_is_announced_after_a_success_and_a_new_back_off_again(fleet):
    request(fleet)
    fleet.runtime.error = RuntimeFailure("boom")
    pass_time(fleet, 3)
    fleet.runtime.error = None
    pass_time(fleet, 30, every=3)
    assert S.READY in fleet.states()
    assert events() == ["pool.backed_off", "pool.launches_resumed"]
    count_failure(fleet.pool, fleet.clock(), reason="boom")
    assert events()[2:] == ["pool.backed_off"]
    assert fleet.reload_pool().backoff_announced_at == fleet.clock()


@pytest.mark.parametrize("change", [{"enabled": False}, {"stopped_reason": "no such image"}, {"failures": 1}])
def test_a_pool_that_still_launches_nothing_is_not_announced_as_launching(change, fleet):
    count_failure(fleet.pool, fleet.clock(), reason="boom")
    Pool.objects.update(backoff_until=None, failures=0)
    Pool.objects.update(**change)
    announce_launches_resumed(now=fleet.clock() + 60 * MINUTE)
    assert events() == ["pool.backed_off"]


def test_a_throttled_pool_that_flaps_is_announced_twice_in_fifteen_minutes_at_most(fleet):
    start = fleet.clock()
    for second in range(0, 3 * 3600, 60):
        moment = start + timedelta(seconds=second)
        count_failure(fleet.pool, moment, reason="throttled")
        Pool.objects.update(backoff_until=None, failures=0)
        announce_launches_resumed(now=moment + timedelta(seconds=15))
    assert 2 <= len(events()) <= 2 * 3 * 4


def test_sessions_that_wait_at_the_maximum_are_announced_once_and_later_the_end(configure_pool):
    fleet = configure_pool(max_slots=1)
    first = request(fleet)
    request(fleet)
    pass_time(fleet, 3)
    assert fleet.states() == ["READY"]
    pass_time(fleet, 5)
    entry = ChangeLog.objects.get(event="pool.at_maximum")
    assert entry.message == "pool cml-eu is at its maximum of 1 slot; 1 session waiting"
    release_reservation(reservation=first, actor=SYSTEM, now=fleet.clock())
    pass_time(fleet, 5)
    assert events() == ["pool.at_maximum"]
    pass_time(fleet, 10)
    assert events() == ["pool.at_maximum", "pool.below_maximum"]
    request(fleet)
    pass_time(fleet, 2)
    assert events()[2:] == ["pool.at_maximum"]


@pytest.mark.parametrize(
    ("states", "demand", "announced"),
    [
        ([S.READY, S.READY], 3, True),
        ([S.READY, S.READY], 2, False),
        ([S.READY, S.BOOTING], 3, False),
        ([S.READY, S.TERMINATING], 3, False),
        ([S.READY], 3, False),
    ],
    ids=["all in use", "all served", "one starts", "one becomes free", "one may be launched"],
)
def test_a_pool_is_at_its_maximum_only_if_nothing_will_change_by_itself(
    states, demand, announced, configure_pool
):
    fleet = configure_pool(max_slots=2)
    for state in states:
        fleet.slot(state)
    for _ in range(demand):
        request(fleet)
    fleet.tick_without_errors()
    assert events() == ["pool.at_maximum"] * announced


def test_a_higher_maximum_ends_the_condition(configure_pool, as_admin):
    fleet = configure_pool(max_slots=1)
    fleet.slot(S.READY)
    for _ in range(2):
        request(fleet)
    fleet.tick_without_errors()
    fleet.clock.advance(minutes=20)
    update_pool(pool=fleet.reload_pool(), max_slots=2, actor=as_admin)
    fleet.tick_without_errors()
    assert events() == ["pool.at_maximum", "pool.below_maximum"]


def test_an_announced_maximum_adds_no_query_to_a_tick(configure_pool):
    fleet = configure_pool(max_slots=1)
    fleet.slot(S.READY)
    for _ in range(2):
        request(fleet)

    def queries():
        with CaptureQueriesContext(connection) as captured:
            fleet.tick_without_errors()
        return len(captured)

    first, second, third = queries(), queries(), queries()
    Pool.objects.update(maximum_announced_at=fleet.clock())
    assert first > second == third
    assert events() == ["pool.at_maximum"]


def test_a_failed_placement_does_not_end_the_condition(configure_pool, monkeypatch):
    fleet = configure_pool(max_slots=1)
    fleet.slot(S.READY)
    for _ in range(2):
        request(fleet)
    fleet.tick_without_errors()
    fleet.clock.advance(minutes=20)
    monkeypatch.setattr("scheduling.capacity.steps.place.snapshot_of", None)
    assert "place" in fleet.tick().errors
    assert events() == ["pool.at_maximum"]


def test_a_stopped_pool_keeps_its_announced_maximum(configure_pool):
    fleet = configure_pool(max_slots=1)
    fleet.slot(S.READY)
    for _ in range(2):
        request(fleet)
    fleet.tick_without_errors()
    stop_pool(pool=fleet.pool, reason="no such image", now=fleet.clock())
    fleet.clock.advance(minutes=20)
    fleet.tick_without_errors()
    assert events() == ["pool.at_maximum"]


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_conditions_that_begin_and_end_in_several_processes_are_announced_once(fleet, at_once):
    now = fleet.clock()

    def fresh():
        return Pool.objects.get(pk=fleet.pool.pk)

    begins = [lambda: announce_maximum(fresh(), waiting=1, now=now)] * 2
    begins += [lambda: count_failure_alone(fresh(), now)] * 2
    assert at_once(*begins) == [None] * 4
    assert sorted(events()) == ["pool.at_maximum", "pool.backed_off"]
    Pool.objects.update(failures=0, backoff_until=None)
    assert at_once(*[lambda: announce_launches_resumed(now=now + 20 * MINUTE)] * 3) == [None] * 3
    assert events("pool.launches_resumed") == ["pool.launches_resumed"]


def count_failure_alone(pool, now):
    with transaction.atomic():
        count_failure(pool, now, reason="boom")
