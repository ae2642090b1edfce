"""A pool with spot slots: non-preemptible work gets on-demand slots, and neither market blocks the other."""

from __future__ import annotations

import pytest

from lcm.domain.lifecycle import SessionStatus
from lcm.models import Priority
from scheduling.capacity.runtimes.base import Category, Market, QuotaExceeded
from scheduling.models import AttemptOutcome, LaunchAttempt, Phase, SlotState, SpotPolicy
from scheduling.selectors.wait_reasons import explain_session
from scheduling.services.slots import record_interruption
from tests.support.fleet import phases, requested_offerings

S = SlotState


def test_a_non_preemptible_session_is_placed_with_one_launch(mixed_fleet, new_session):
    session = new_session()
    for _ in range(90):
        mixed_fleet.round()
    session.refresh_from_db()
    assert session.status == SessionStatus.SCHEDULED
    assert requested_offerings(mixed_fleet) == ["sim-large"]


def test_a_reservation_without_a_session_is_placed_with_one_launch(mixed_fleet):
    reservation = mixed_fleet.reservation(ttl=86_400)
    for _ in range(12):
        mixed_fleet.round()
    assert (phases([reservation]), requested_offerings(mixed_fleet)) == ([Phase.READY], ["sim-large"])


def test_preemptible_work_gets_a_spot_slot(mixed_fleet, preemptible_requester):
    session = preemptible_requester.request()
    for _ in range(12):
        mixed_fleet.round()
    session.refresh_from_db()
    assert (session.status, requested_offerings(mixed_fleet)) == (SessionStatus.SCHEDULED, ["sim-large-spot"])


def test_each_market_launches_exactly_the_slots_it_needs(mixed_fleet, preemptible_requester):
    reservations = [mixed_fleet.reservation(16, ttl=86_400, priority=Priority.HIGH) for _ in range(2)]
    sessions = [preemptible_requester.request() for _ in range(2)]
    for _ in range(12):
        mixed_fleet.round()
    assert sorted(requested_offerings(mixed_fleet)) == [
        "sim-large",
        "sim-large",
        "sim-large-spot",
        "sim-large-spot",
    ]
    assert phases([*reservations, *(each.reservations.get() for each in sessions)]) == [Phase.READY] * 4


def test_a_slot_taken_by_another_session_is_launched_again(
    configure_pool, mixed_fleet, preemptible_requester
):
    """The preemptible session takes the other slot; its own slot is then drained as idle."""
    configure_pool(max_slots=2)
    session = preemptible_requester.request(priority=Priority.HIGH)
    reservation = mixed_fleet.reservation(16, ttl=86_400)
    for _ in range(20):
        mixed_fleet.round()
    assert phases([reservation, session.reservations.get()]) == [Phase.READY] * 2
    assert sorted(requested_offerings(mixed_fleet)) == ["sim-large", "sim-large", "sim-large-spot"]


def test_a_launch_that_may_become_spot_does_not_count_for_non_preemptible_work(mixed_fleet):
    mixed_fleet.slot(S.LAUNCHING)
    mixed_fleet.slot(S.BOOTING)
    mixed_fleet.reservation()
    mixed_fleet.tick()
    assert [attempt.on_demand_only for attempt in mixed_fleet.open_attempts()] == [False, True]
    assert mixed_fleet.tick().attempts == []


def test_warm_slots_use_the_preferred_market(configure_pool, mixed_fleet):
    configure_pool(warm_slots=2)
    for _ in range(3):
        mixed_fleet.round()
    assert requested_offerings(mixed_fleet) == ["sim-large-spot", "sim-large-spot"]


def test_without_on_demand_offerings_nothing_is_launched_and_the_reason_is_shown(
    configure_pool, mixed_fleet, new_session
):
    session = new_session()
    spot_offering_only = {"offerings": [{"name": "sim-large-spot", "market": "spot"}]}
    fleet = configure_pool(runtime_settings=spot_offering_only)
    fleet.runtime.available_offerings = fleet.runtime.available_offerings[:1]
    for _ in range(5):
        assert fleet.round().errors == {}
    assert requested_offerings(fleet) == []
    found = explain_session(session, now=fleet.clock())
    assert (found.outcome, [step.text for step in found.steps]) == (
        "impossible",
        ["No slot of cml-eu can ever hold it, even when empty: spot (the session is not preemptible)."],
    )


def test_refused_on_demand_capacity_does_not_block_spot(mixed_fleet, preemptible_requester, new_session):
    mixed_fleet.runtime.refused_offerings = {"sim-large"}
    session, other = new_session(), preemptible_requester.request()
    for _ in range(11):
        mixed_fleet.round()
    other.refresh_from_db()
    assert (other.status, requested_offerings(mixed_fleet).count("sim-large-spot")) == (
        SessionStatus.SCHEDULED,
        1,
    )
    # Every three minutes, without an attempt in between.
    assert requested_offerings(mixed_fleet).count("sim-large") == 4
    assert LaunchAttempt.objects.filter(on_demand_only=True).count() == 4
    found = explain_session(session, now=mixed_fleet.clock())
    step = next(each for each in found.steps if each.kind == "on-demand")
    assert step.at > mixed_fleet.clock()
    mixed_fleet.runtime.refused_offerings = set()
    for _ in range(6):
        mixed_fleet.round()
    session.refresh_from_db()
    assert session.status == SessionStatus.SCHEDULED


def exhaust_quota(fleet, *markets):
    """Let launches in these markets exceed the account's quota."""
    real = fleet.runtime.launch

    def launch(request):
        if request.offering.market in markets:
            fleet.runtime.calls.append(("launch", request.offering.name))
            raise QuotaExceeded(f"no more {request.offering.market}")
        return real(request)

    fleet.runtime.launch = launch


def test_an_exhausted_spot_quota_falls_back_to_on_demand(mixed_fleet):
    exhaust_quota(mixed_fleet, Market.SPOT)
    slot = mixed_fleet.slot(S.LAUNCHING)
    mixed_fleet.launch()
    slot.refresh_from_db()
    assert (slot.state, slot.offering) == (S.BOOTING, "sim-large")
    assert requested_offerings(mixed_fleet) == ["sim-large-spot", "sim-large"]
    assert (mixed_fleet.reload_pool().backoff_until, mixed_fleet.pool.failures) == (None, 0)
    # It is recorded like a refusal.
    mixed_fleet.slot(S.LAUNCHING)
    mixed_fleet.launch()
    assert requested_offerings(mixed_fleet)[2:] == ["sim-large"]


@pytest.mark.parametrize("policy", [SpotPolicy.FALLBACK, SpotPolicy.ONLY, SpotPolicy.NEVER])
def test_an_exhausted_quota_of_every_market_starts_a_back_off(configure_pool, mixed_fleet, policy):
    configure_pool(spot_policy=policy)
    exhaust_quota(mixed_fleet, Market.SPOT, Market.ON_DEMAND)
    slot = mixed_fleet.slot(S.LAUNCHING)
    mixed_fleet.launch()
    slot.refresh_from_db()
    assert (slot.state, mixed_fleet.reload_pool().failures) == (S.ERROR, 1)
    assert mixed_fleet.attempts() == [(AttemptOutcome.FAILED, Category.QUOTA)]


def test_demand_stays_if_the_spot_quota_is_exhausted_and_on_demand_is_refused(mixed_fleet):
    exhaust_quota(mixed_fleet, Market.SPOT)
    mixed_fleet.runtime.refused_offerings = {"sim-large"}
    slot = mixed_fleet.slot(S.LAUNCHING)
    mixed_fleet.launch()
    slot.refresh_from_db()
    assert (slot.state, mixed_fleet.reload_pool().failures) == (S.EMPTY, 0)
    assert mixed_fleet.pool.backoff_until > mixed_fleet.clock()


def test_an_exhausted_on_demand_quota_does_not_block_spot(mixed_fleet, preemptible_requester):
    exhaust_quota(mixed_fleet, Market.ON_DEMAND)
    mixed_fleet.reservation(ttl=86_400)
    session = preemptible_requester.request()
    for _ in range(7):
        mixed_fleet.round()
    session.refresh_from_db()
    assert session.status == SessionStatus.SCHEDULED
    assert requested_offerings(mixed_fleet).count("sim-large") == 3


def test_an_interruption_does_not_affect_non_preemptible_sessions(
    mixed_fleet, preemptible_requester, new_session
):
    """The spot slot terminates; the session on the other slot is not affected."""
    on_demand_session, other = new_session(), preemptible_requester.request()
    for _ in range(4):
        mixed_fleet.round()
    spot = next(slot for slot in mixed_fleet.slots(S.READY) if slot.is_spot)
    record_interruption(slot=spot, deadline=mixed_fleet.clock.advance(seconds=1), now=mixed_fleet.clock())
    for _ in range(6):
        mixed_fleet.round()
    on_demand_session.refresh_from_db(), other.refresh_from_db()
    assert (on_demand_session.status, other.status) == (SessionStatus.SCHEDULED,) * 2
