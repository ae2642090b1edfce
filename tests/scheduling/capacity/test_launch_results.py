"""Effects of a launch result on the slot, the attempt, the pool and the demand."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.models import ChangeLog
from scheduling.capacity.launcher import backoff, perform_launch, record_launch, record_refused_offering
from scheduling.capacity.offerings import open_offerings
from scheduling.capacity.runtimes.base import (
    Market,
    Misconfigured,
    Offering,
    QuotaExceeded,
    ResponseLost,
    RuntimeFailure,
    Throttled,
)
from scheduling.models import AttemptOutcome, Phase, SlotState, SpotPolicy
from scheduling.services.pools import update_pool
from scheduling.services.slots import terminate_slot
from tests.support.fleet import phases

S = SlotState
SPOT, ON_DEMAND = Offering("spot-a", Market.SPOT), Offering("large-a")


@pytest.mark.parametrize(
    ("failures", "minutes"), [(0, 5), (1, 5), (2, 10), (3, 20), (4, 30), (5, 30), (999, 30)]
)
def test_back_off_doubles_from_five_to_thirty_minutes(failures, minutes):
    assert backoff(failures) == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (SpotPolicy.NEVER, ["large-a", "large-b"]),
        (SpotPolicy.ONLY, ["spot-a"]),
        (SpotPolicy.FALLBACK, ["spot-a", "large-a", "large-b"]),
    ],
)
def test_offerings_follow_the_spot_policy_in_their_order(configure_pool, policy, names):
    fleet = configure_pool(spot_policy=policy)
    fleet.runtime.available_offerings = [ON_DEMAND, SPOT, Offering("large-b")]
    assert [each.name for each in open_offerings(fleet.pool, fleet.runtime, fleet.clock())] == names


def test_a_launch_boots_and_returns_its_instance(configure_pool):
    fleet = configure_pool(spot_policy=SpotPolicy.ONLY)
    fleet.runtime.available_offerings = [SPOT]
    slot = fleet.slot(S.LAUNCHING)
    fleet.launch()
    slot.refresh_from_db()
    attempt = slot.attempts.get()
    assert (slot.state, slot.offering, slot.is_spot) == (S.BOOTING, "spot-a", True)
    assert attempt.outcome == AttemptOutcome.LAUNCHED
    assert attempt.instance_id == slot.instance_id == fleet.runtime.alive[0].id
    assert fleet.runtime.alive[0].token == attempt.token


def test_launching_an_attempt_twice_calls_the_provider_once(fleet):
    fleet.slot(S.LAUNCHING)
    attempt = fleet.open_attempts()[0]
    for _ in range(2):
        perform_launch(attempt.pk, fleet.runtime, fleet.clock)
    assert fleet.runtime.count("launch") == 1


def test_a_capacity_refusal_requests_the_next_offering(fleet):
    fleet.runtime.available_offerings = [ON_DEMAND, Offering("large-b")]
    fleet.runtime.refused_offerings = {"large-a"}
    slot = fleet.slot(S.LAUNCHING)
    fleet.launch()
    slot.refresh_from_db()
    assert (slot.state, slot.offering) == (S.BOOTING, "large-b")
    assert fleet.runtime.calls == [("launch", "large-a"), ("launch", "large-b")]


def test_refused_spot_falls_back_to_on_demand_if_the_policy_allows_it(configure_pool):
    fleet = configure_pool(spot_policy=SpotPolicy.FALLBACK)
    fleet.runtime.available_offerings, fleet.runtime.refused_offerings = [SPOT, ON_DEMAND], {"spot-a"}
    slot = fleet.slot(S.LAUNCHING)
    fleet.launch()
    slot.refresh_from_db()
    assert (slot.offering, slot.is_spot) == ("large-a", False)


def test_a_refused_offering_is_remembered_for_three_minutes(fleet):
    fleet.runtime.available_offerings, fleet.runtime.refused_offerings = (
        [ON_DEMAND, Offering("large-b")],
        {"large-a"},
    )
    for seconds, expected in ((0, ["large-a", "large-b"]), (179, ["large-b"]), (1, ["large-a", "large-b"])):
        fleet.clock.advance(seconds=seconds)
        fleet.runtime.calls.clear()
        fleet.slot(S.LAUNCHING)
        fleet.launch()
        assert [name for _, name in fleet.runtime.calls] == expected


def test_demand_stays_while_every_offering_is_refused_and_is_then_satisfied(fleet):
    reservation = fleet.reservation(ttl=86_400)
    fleet.runtime.refused_offerings = {"large"}
    fleet.tick()
    fleet.launch()
    assert (fleet.attempts(), fleet.states()) == ([("refused", "capacity")], [S.EMPTY])
    assert (phases([reservation]), fleet.reload_pool().failures) == ([Phase.PENDING], 0)
    fleet.clock.advance(seconds=179)
    assert fleet.tick().attempts == []
    fleet.runtime.refused_offerings = set()
    fleet.clock.advance(seconds=1)
    for _ in range(4):
        fleet.round()
    assert phases([reservation]) == [Phase.READY]


def test_throttling_counts_no_failure_and_is_retried_soon(fleet):
    reservation = fleet.reservation(ttl=86_400)
    fleet.runtime.error = Throttled("slow down")
    fleet.tick()
    fleet.launch()
    assert (fleet.attempts(), fleet.states()) == ([("failed", "throttled")], [S.EMPTY])
    assert (fleet.reload_pool().failures, phases([reservation])) == (0, [Phase.PENDING])
    assert fleet.pool.backoff_since == fleet.clock()
    fleet.clock.advance(seconds=15)
    assert len(fleet.tick().attempts) == 1


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (QuotaExceeded("no more vCPUs"), "quota"),
        (RuntimeFailure("strange"), "unknown"),
        (KeyError("strange"), "unknown"),
    ],
)
def test_quota_and_unknown_errors_back_off_from_five_to_thirty_minutes(fleet, error, category):
    fleet.reservation(ttl=86_400)
    fleet.runtime.error = error
    back_offs = []
    for _ in range(5):
        assert len(fleet.tick().attempts) == 1
        fleet.launch()
        assert fleet.reload_pool().backoff_since == fleet.clock(), "each back-off has its own start"
        back_offs.append((fleet.reload_pool().backoff_until - fleet.clock()).total_seconds() / 60)
        slot = fleet.slots(S.ERROR)[-1]
        assert slot.state_deadline == fleet.pool.backoff_until
        fleet.clock.now = fleet.pool.backoff_until
        fleet.reconcile()
    assert back_offs == [5, 10, 20, 30, 30]
    assert {each_category for _, each_category in fleet.attempts()} == {category}
    assert fleet.runtime.count("launch") == 5


def test_a_successful_launch_ends_the_back_off_once_its_worker_is_ready(fleet):
    fleet.reservation(ttl=86_400)
    fleet.runtime.error = RuntimeFailure("strange")
    fleet.tick()
    fleet.launch()
    fleet.runtime.error = None
    fleet.clock.advance(minutes=5)
    fleet.tick()
    fleet.launch()
    assert fleet.reload_pool().failures == 1
    fleet.reconcile()
    assert (fleet.states(), fleet.reload_pool().failures) == ([S.EMPTY, S.BINDING], 1)
    fleet.reconcile()
    assert (fleet.reload_pool().failures, fleet.pool.backoff_until, fleet.pool.backoff_since) == (
        0,
        None,
        None,
    )


def test_a_worker_that_was_launched_before_the_failure_does_not_end_the_back_off(fleet):
    fleet.slot(S.BINDING), fleet.slot(S.LAUNCHING)
    fleet.runtime.error = QuotaExceeded("no more vCPUs")
    fleet.launch()
    fleet.reconcile()
    assert fleet.states() == [S.READY, S.ERROR]
    assert (fleet.reload_pool().failures, fleet.pool.backoff_until) == (
        1,
        fleet.clock() + timedelta(minutes=5),
    )


def test_an_invalid_configuration_stops_the_pool_until_it_is_corrected(fleet, as_admin):
    reservation = fleet.reservation(ttl=86_400)
    fleet.runtime.error = Misconfigured("There is no launch template “cml”.")
    fleet.tick()
    fleet.launch()
    assert fleet.reload_pool().stopped_reason == "There is no launch template “cml”."
    assert fleet.pool.stopped_at == fleet.clock()
    assert ChangeLog.objects.get(event="pool.stopped").reason == fleet.pool.stopped_reason
    fleet.clock.advance(hours=12)
    assert fleet.tick().attempts == []
    fleet.runtime.error = None
    corrected = {"runtime_settings": {"launch_seconds": 1}}
    update_pool(pool=fleet.reload_pool(), actor=as_admin, reason="mended", **corrected)
    for _ in range(4):
        fleet.round()
    assert phases([reservation]) == [Phase.READY]


def test_a_lost_response_is_requested_again_without_a_second_instance(fleet):
    slot = fleet.slot(S.LAUNCHING)
    fleet.runtime.loses_responses = True
    fleet.launch()
    slot.refresh_from_db()
    assert (slot.state, fleet.attempts()) == (S.LAUNCHING, [("open", "")])
    fleet.runtime.loses_responses = False
    fleet.launch()
    slot.refresh_from_db()
    assert slot.state == S.BOOTING
    assert len(fleet.runtime.alive) == 1


def test_an_attempt_without_a_response_requests_the_same_offering_again(fleet):
    fleet.runtime.available_offerings, fleet.runtime.refused_offerings = (
        [ON_DEMAND, Offering("large-b")],
        {"large-a"},
    )
    slot = fleet.slot(S.LAUNCHING)
    fleet.runtime.loses_responses = True
    fleet.launch()
    fleet.runtime.refused_offerings, fleet.runtime.loses_responses = set(), False
    fleet.clock.advance(seconds=200)
    fleet.launch()
    slot.refresh_from_db()
    assert slot.offering == "large-b"
    assert fleet.runtime.calls[-1] == ("launch", "large-b")


def test_a_lost_response_is_requested_again_even_if_the_offering_was_refused_to_others(fleet):
    fleet.runtime.available_offerings = [ON_DEMAND, Offering("large-b")]
    slot = fleet.slot(S.LAUNCHING)
    fleet.runtime.loses_responses = True
    fleet.launch()
    fleet.runtime.loses_responses = False
    record_refused_offering(fleet.reload_pool(), "large-a", until=fleet.clock() + timedelta(minutes=3))
    fleet.launch()
    slot.refresh_from_db()
    assert (slot.state, slot.offering, len(fleet.runtime.alive)) == (S.BOOTING, "large-a", 1)


def test_a_cancelled_attempt_is_not_launched(fleet, as_operator):
    slot = fleet.slot(S.LAUNCHING)
    attempt = fleet.open_attempts()[0]
    terminate_slot(slot=slot, reason="not now", actor=as_operator, now=fleet.clock())
    perform_launch(attempt.pk, fleet.runtime, fleet.clock)
    assert fleet.runtime.calls == []


def test_a_late_response_for_an_abandoned_slot_changes_nothing(fleet, as_operator):
    slot = fleet.slot(S.LAUNCHING)
    attempt = fleet.open_attempts()[0]
    late = fleet.runtime.add("i-late", token=attempt.token)
    terminate_slot(slot=slot, reason="not now", actor=as_operator, now=fleet.clock())
    assert not record_launch(attempt, late, now=fleet.clock())
    slot.refresh_from_db()
    assert (slot.state, slot.instance_id) == (S.TERMINATING, "")


@pytest.mark.parametrize(
    "error", [RuntimeFailure("x" * 900), Misconfigured("x" * 900), ResponseLost("x" * 900)]
)
def test_long_errors_are_truncated(fleet, error):
    fleet.slot(S.LAUNCHING)
    fleet.runtime.error = error
    fleet.launch()
    assert len(fleet.reload_pool().stopped_reason) in (0, 500)


def test_a_long_refusal_is_truncated(fleet):
    fleet.runtime.available_offerings, fleet.runtime.refused_offerings = [Offering("x" * 100)], {"x" * 100}
    slot = fleet.slot(S.LAUNCHING)
    fleet.runtime.launch = _refuse_with_long_message  # type: ignore[method-assign]
    fleet.launch()
    assert len(slot.attempts.get().error) == 500


def _refuse_with_long_message(request):
    from scheduling.capacity.runtimes.base import CapacityRefused

    raise CapacityRefused("x" * 900)
