"""A pool with spot slots: non-preemptible work gets on-demand slots, and neither market blocks the other."""

from __future__ import annotations

import pytest

from lcm.domain.lifecycle import SessionStatus
from lcm.models import Priority
from scheduling.capacity.runtimes.base import Category, Market, QuotaExceeded
from scheduling.models import AttemptOutcome, LaunchAttempt, Phase, SlotState, SpotPolicy
from scheduling.selectors.wait_reasons import explain_session
from scheduling.services.slots import record_interruption
from tests.support.fleet import launches, phases

S = SlotState


def test_a_session_that_cannot_be_interrupted_is_placed_with_one_launch(mixed, lab):
    session = lab()
    for _ in range(90):
        mixed.round()
    session.refresh_from_db()
    assert session.status == SessionStatus.SCHEDULED
    assert launches(mixed) == ["sim-large"]


def test_so_is_a_claim_without_a_session(mixed):
    claim = mixed.reservation(ttl=86_400)
    for _ in range(12):
        mixed.round()
    assert (phases([claim]), launches(mixed)) == ([Phase.READY], ["sim-large"])


def test_preemptible_work_still_gets_spot(mixed, loose):
    session = loose.asks()
    for _ in range(12):
        mixed.round()
    session.refresh_from_db()
    assert (session.status, launches(mixed)) == (SessionStatus.SCHEDULED, ["sim-large-spot"])


def test_each_gets_its_own_and_nothing_is_launched_twice(mixed, loose):
    claims = [mixed.reservation(16, ttl=86_400, priority=Priority.HIGH) for _ in range(2)]
    mine = [loose.asks() for _ in range(2)]
    for _ in range(12):
        mixed.round()
    assert sorted(launches(mixed)) == ["sim-large", "sim-large", "sim-large-spot", "sim-large-spot"]
    assert phases([*claims, *(each.reservations.get() for each in mine)]) == [Phase.READY] * 4


def test_a_slot_taken_by_another_session_is_launched_again(tuned, mixed, loose):
    """Preemptible work takes other slots first; then its own slot is idle, drained, and makes room."""
    tuned(max_slots=2)
    session = loose.asks(priority=Priority.HIGH)
    claim = mixed.reservation(16, ttl=86_400)
    for _ in range(20):
        mixed.round()
    assert phases([claim, session.reservations.get()]) == [Phase.READY] * 2
    assert sorted(launches(mixed)) == ["sim-large", "sim-large", "sim-large-spot"]


def test_a_launch_that_may_become_spot_does_not_count_for_non_preemptible_work(mixed):
    mixed.slot(S.LAUNCHING)
    mixed.slot(S.BOOTING)
    mixed.reservation()
    mixed.tick()
    assert [attempt.on_demand_only for attempt in mixed.open_attempts()] == [False, True]
    assert mixed.tick().attempts == []


def test_slots_that_are_kept_come_from_the_first_choice(tuned, mixed):
    tuned(warm_slots=2)
    for _ in range(3):
        mixed.round()
    assert launches(mixed) == ["sim-large-spot", "sim-large-spot"]


def test_without_on_demand_offerings_nothing_is_launched_and_the_reason_is_shown(tuned, mixed, lab):
    session = lab()
    only = {"offerings": [{"name": "sim-large-spot", "market": "spot"}]}
    fleet = tuned(runtime_settings=only)
    fleet.runtime.on_offer = fleet.runtime.on_offer[:1]
    for _ in range(5):
        assert fleet.round().errors == {}
    assert launches(fleet) == []
    found = explain_session(session, now=fleet.clock())
    assert (found.outcome, [step.text for step in found.steps]) == (
        "impossible",
        ["No slot of cml-eu can ever hold it, even when empty: spot (the session is not preemptible)."],
    )


def test_refused_on_demand_capacity_does_not_block_spot(mixed, loose, lab):
    mixed.runtime.refused = {"sim-large"}
    session, other = lab(), loose.asks()
    for _ in range(11):
        mixed.round()
    other.refresh_from_db()
    assert (other.status, launches(mixed).count("sim-large-spot")) == (SessionStatus.SCHEDULED, 1)
    # Every three minutes, without an attempt in between.
    assert launches(mixed).count("sim-large") == 4
    assert LaunchAttempt.objects.filter(on_demand_only=True).count() == 4
    found = explain_session(session, now=mixed.clock())
    step = next(each for each in found.steps if each.kind == "on-demand")
    assert step.at > mixed.clock()
    mixed.runtime.refused = set()
    for _ in range(6):
        mixed.round()
    session.refresh_from_db()
    assert session.status == SessionStatus.SCHEDULED


def over_quota(fleet, *markets):
    """The account's quota for these is exhausted."""
    real = fleet.runtime.launch

    def launch(request):
        if request.offering.market in markets:
            fleet.runtime.calls.append(("launch", request.offering.name))
            raise QuotaExceeded(f"no more {request.offering.market}")
        return real(request)

    fleet.runtime.launch = launch


def test_an_exhausted_spot_quota_falls_back_to_on_demand(mixed):
    over_quota(mixed, Market.SPOT)
    slot = mixed.slot(S.LAUNCHING)
    mixed.launch()
    slot.refresh_from_db()
    assert (slot.state, slot.offering) == (S.BOOTING, "sim-large")
    assert launches(mixed) == ["sim-large-spot", "sim-large"]
    assert (mixed.fresh().backoff_until, mixed.pool.failures) == (None, 0)
    # It is recorded like a refusal.
    mixed.slot(S.LAUNCHING)
    mixed.launch()
    assert launches(mixed)[2:] == ["sim-large"]


@pytest.mark.parametrize("policy", [SpotPolicy.FALLBACK, SpotPolicy.ONLY, SpotPolicy.NEVER])
def test_a_quota_that_leaves_nothing_backs_off(tuned, mixed, policy):
    tuned(spot_policy=policy)
    over_quota(mixed, Market.SPOT, Market.ON_DEMAND)
    slot = mixed.slot(S.LAUNCHING)
    mixed.launch()
    slot.refresh_from_db()
    assert (slot.state, mixed.fresh().failures) == (S.ERROR, 1)
    assert mixed.attempts() == [(AttemptOutcome.FAILED, Category.QUOTA)]


def test_a_spot_quota_and_on_demand_refused_leave_the_demand(mixed):
    over_quota(mixed, Market.SPOT)
    mixed.runtime.refused = {"sim-large"}
    slot = mixed.slot(S.LAUNCHING)
    mixed.launch()
    slot.refresh_from_db()
    assert (slot.state, mixed.fresh().failures) == (S.EMPTY, 0)
    assert mixed.pool.backoff_until > mixed.clock()


def test_an_exhausted_on_demand_quota_does_not_block_spot(mixed, loose):
    over_quota(mixed, Market.ON_DEMAND)
    mixed.reservation(ttl=86_400)
    session = loose.asks()
    for _ in range(7):
        mixed.round()
    session.refresh_from_db()
    assert session.status == SessionStatus.SCHEDULED
    assert launches(mixed).count("sim-large") == 3


def test_an_interruption_does_not_affect_non_preemptible_sessions(mixed, loose, lab):
    """The spot slot terminates; the session on the other slot is not affected."""
    firm, other = lab(), loose.asks()
    for _ in range(4):
        mixed.round()
    spot = next(slot for slot in mixed.slots(S.READY) if slot.is_spot)
    record_interruption(slot=spot, deadline=mixed.clock.advance(seconds=1), now=mixed.clock())
    for _ in range(6):
        mixed.round()
    firm.refresh_from_db(), other.refresh_from_db()
    assert (firm.status, other.status) == (SessionStatus.SCHEDULED,) * 2
