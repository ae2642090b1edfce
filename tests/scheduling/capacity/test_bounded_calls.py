"""LCM limits its calls to a provider that fails or does not respond."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.capacity.launcher import attempts_to_redrive, perform_launch, redrive_wait
from scheduling.capacity.runtimes.base import (
    CapacityRefused,
    Offering,
    ResponseLost,
    RuntimeFailure,
    Throttled,
)
from scheduling.models import AttemptOutcome, LaunchAttempt, Phase, Pool, ProcessLease, SlotState
from tests.support.fleet import phases

S = SlotState


@pytest.mark.parametrize(
    ("redrives", "seconds"), [(0, 30), (1, 60), (2, 120), (3, 240), (4, 480), (5, 600), (99, 600)]
)
def test_the_retry_interval_of_an_attempt_doubles(redrives, seconds):
    assert redrive_wait(redrives) == timedelta(seconds=seconds)


def launch_request_times(fleet, seconds: int, every: int = 5) -> list[float]:
    """Run ticks and their tasks; return the times of the launch requests."""
    request_times, start = [], fleet.clock()
    while (passed := (fleet.clock() - start).total_seconds()) < seconds:
        before = fleet.runtime.count("launch")
        report = fleet.tick_without_errors()
        for attempt in [*report.attempts, *attempts_to_redrive(fleet.pool, now=fleet.clock())]:
            perform_launch(attempt, fleet.runtime, fleet.clock)
        fleet.reconcile()
        request_times += [passed] * (fleet.runtime.count("launch") - before)
        fleet.clock.advance(seconds=every)
    return request_times


def test_a_launch_without_a_response_is_retried_at_growing_intervals(fleet):
    fleet.reservation(ttl=86_400)
    fleet.runtime.error = ResponseLost("timed out")
    assert launch_request_times(fleet, 295) == [0, 30, 90, 210]


@pytest.mark.slow
def test_a_provider_that_never_responds_causes_a_growing_back_off(fleet):
    reservation = fleet.reservation(ttl=86_400)
    fleet.runtime.error = ResponseLost("timed out")
    start = fleet.clock()
    assert len(launch_request_times(fleet, 3600, every=30)) == 4 * 4
    requested_at = LaunchAttempt.objects.order_by("requested_at").values_list("requested_at", flat=True)
    assert [(moment - start).total_seconds() for moment in requested_at] == [0, 600, 1500, 3000]
    assert {outcome for outcome, _ in fleet.attempts()} == {"lost"}
    assert phases([reservation]) == [Phase.PENDING]
    fleet.runtime.error = None
    launch_request_times(fleet, 1900, every=30)
    assert phases([reservation]) == [Phase.READY]
    assert fleet.reload_pool().failures == 0


def test_concurrent_launch_failures_count_as_one(configure_pool):
    fleet = configure_pool(max_slots=6, min_slots=6)
    fleet.runtime.error = RuntimeFailure("strange")
    attempts = fleet.tick().attempts
    # As if all launches were requested before the first one failed.
    LaunchAttempt.objects.update(offering="large")
    for attempt in attempts:
        perform_launch(attempt, fleet.runtime, fleet.clock)
    assert fleet.runtime.count("launch") == 6
    assert fleet.reload_pool().failures == 1
    assert fleet.pool.backoff_until == fleet.clock() + timedelta(minutes=5)
    assert {slot.state_deadline for slot in fleet.slots(S.ERROR)} == {fleet.pool.backoff_until}


@pytest.mark.parametrize("error", [Throttled("slow down"), RuntimeFailure("strange")])
def test_an_extended_back_off_keeps_its_start_time(fleet, error):
    fleet.slot(S.LAUNCHING)
    LaunchAttempt.objects.update(offering="large")
    since = fleet.clock() - timedelta(minutes=4)
    Pool.objects.update(backoff_since=since, backoff_until=fleet.clock() + timedelta(seconds=1))
    fleet.runtime.error = error
    (attempt,) = LaunchAttempt.objects.all()
    perform_launch(attempt.pk, fleet.runtime, fleet.clock)
    assert fleet.reload_pool().backoff_until > fleet.clock() + timedelta(seconds=1)
    assert fleet.pool.backoff_since == since


@pytest.mark.parametrize("error", [Throttled("slow down"), CapacityRefused("none left")])
def test_a_short_back_off_does_not_replace_a_longer_one(fleet, error):
    slots = [fleet.slot(S.LAUNCHING), fleet.slot(S.LAUNCHING)]
    LaunchAttempt.objects.update(offering="large")
    until = fleet.clock() + timedelta(minutes=20)
    Pool.objects.update(backoff_until=until, failures=3)
    fleet.runtime.error = error
    fleet.launch()
    assert (fleet.reload_pool().backoff_until, len(slots)) == (until, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stopped_reason": "no such image"}, "no such image"),
        ({"enabled": False}, "is disabled"),
        ({"backoff_until": "2026-03-02T08:05:00Z"}, "backing off"),
    ],
)
def test_an_open_launch_is_not_requested_after_the_pool_stops(configure_pool, change, message):
    fleet = configure_pool(min_slots=3)
    fleet.tick()
    configure_pool(**change)
    fleet.launch()
    assert fleet.runtime.calls == []
    assert fleet.states() == [S.EMPTY] * 3
    assert all(message in attempt.error for attempt in LaunchAttempt.objects.all())


def test_an_attempt_that_may_have_an_instance_is_requested_during_a_back_off(configure_pool):
    fleet = configure_pool(min_slots=1)
    fleet.tick()
    fleet.runtime.loses_responses = True
    fleet.launch()
    fleet.runtime.loses_responses = False
    configure_pool(backoff_until=fleet.clock() + timedelta(minutes=5))
    fleet.launch()
    assert (fleet.states(), len(fleet.runtime.alive)) == ([S.BOOTING], 1)


def test_two_hundred_launches_of_a_throttled_pool_make_one_call(configure_pool):
    fleet = configure_pool(max_slots=200, min_slots=200)
    fleet.tick()
    fleet.runtime.error = Throttled("slow down")
    fleet.launch()
    assert fleet.runtime.count("launch") == 1


def test_a_launch_that_lost_its_lease_stops_requesting(fleet):
    fleet.runtime.available_offerings = [Offering("large-a"), Offering("large-b")]
    attempt = fleet.slot(S.LAUNCHING).attempts.get()

    def lose_lease(request):
        fleet.runtime.calls.append(("launch", request.offering.name))
        ProcessLease.objects.update(holder="someone else")
        raise CapacityRefused("none left")

    fleet.runtime.launch = lose_lease
    perform_launch(attempt.pk, fleet.runtime, fleet.clock)
    attempt.refresh_from_db()
    assert (fleet.runtime.calls, attempt.outcome) == ([("launch", "large-a")], AttemptOutcome.OPEN)


def test_an_abandoned_attempt_is_counted_once(fleet):
    from prometheus_client import REGISTRY

    from scheduling.capacity.launcher import abandon_attempt

    def lost_launches() -> float:
        return REGISTRY.get_sample_value("lcm_launches_total", {"pool": "cml-eu", "result": "lost"}) or 0

    attempt = fleet.slot(S.LAUNCHING).attempts.select_related("slot__pool").get()
    before = lost_launches()
    for _ in range(2):
        abandon_attempt(attempt, now=fleet.clock(), reason="no response")
    assert (lost_launches() - before, fleet.reload_pool().failures) == (1, 1)
