"""Choice of a pool: never one that cannot hold the reservation, and one with its labels if there is one."""

from __future__ import annotations

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from lcm.models import LabletSession
from scheduling.models import Pool, Reservation, SlotState, SpotPolicy
from scheduling.services.pool_transfer import move_to_pool
from scheduling.services.pools import create_pool
from tests.support.factories import make_definition, make_session

SPOT_ONLY = {"spot_policy": SpotPolicy.ONLY, "runtime_settings": {"spot": True}}
NOTHING_ELSE = {
    "spot_policy": SpotPolicy.FALLBACK,
    "runtime_settings": {"offerings": [{"name": "a", "market": "spot"}]},
}
SAID = "The pool aaa-spot has spot slots only, and this session is not preemptible."


@pytest.fixture(params=[SPOT_ONLY, NOTHING_ELSE], ids=["by its policy", "for want of others"])
def spot(request, pool) -> Pool:
    """A pool that comes first by name."""
    return create_pool(name="aaa-spot", actor=SYSTEM, **request.param)


@pytest.fixture
def ask(pool, project, operator, clock):
    """`ask(preemptible=…, slot_labels=…)`: a session that waits in its chosen pool."""

    def make(pool="", **fields):
        definition = make_definition(**fields)
        Pool.objects.filter(name="cml-us").update(enabled=False)
        return make_session(definition, project, operator, now=clock(), pool=pool)

    return make


def test_non_preemptible_work_skips_a_spot_only_pool(spot, ask):
    assert ask().pool == "cml-eu"


def test_preemptible_work_does_not(spot, ask):
    assert ask(preemptible=True).pool == "aaa-spot"


def test_a_claim_without_a_session_goes_past_it_too(spot, fleet):
    assert fleet.reservation(pool="", system="cml").pool == fleet.pool


def test_a_pool_of_both_kinds_takes_everything(fleet, ask):
    create_pool(
        name="aaa-both", actor=SYSTEM, spot_policy=SpotPolicy.FALLBACK, runtime_settings={"spot": True}
    )
    assert ask().pool == "aaa-both"
    assert fleet.reservation(pool="aaa-both").pool.name == "aaa-both"


def test_named_it_is_refused_with_the_reason(spot, ask, fleet):
    with pytest.raises(InvalidInput) as error:
        ask(pool="aaa-spot")
    assert error.value.fields == {"pool": [SAID]}
    with pytest.raises(InvalidInput, match=SAID):
        fleet.reservation(pool="aaa-spot")
    assert not Reservation.objects.exists()
    assert not LabletSession.objects.exists()


def test_without_an_alternative_the_refusal_shows_the_reason(spot, fleet):
    Pool.objects.exclude(name="aaa-spot").update(enabled=False)
    with pytest.raises(InvalidInput, match=f"No pool for cml can hold this. {SAID}"):
        fleet.reservation(pool="", system="cml")


def test_a_session_is_not_moved_there(spot, ask, clock):
    session = ask()
    with pytest.raises(InvalidInput, match=SAID):
        move_to_pool(session=session, pool="aaa-spot", reason="cheap", actor=SYSTEM, now=clock())


RACK = {"rack": "b"}
LISTED = [{"name": "w", "endpoint": "https://w.example.org", "labels": {**RACK, "gpu": "a10"}}]


@pytest.mark.parametrize(
    "fields",
    [
        {"runtime_settings": {"labels": RACK}},
        {"runtime": "static", "runtime_settings": {"workers": LISTED}, "max_slots": 1},
    ],
    ids=["by its settings", "by a worker"],
)
def test_labels_prefer_a_pool_that_has_them_however_many_wait_there(ask, clock, fleet, fields):
    create_pool(name="zzz", actor=SYSTEM, **fields)
    for _ in range(3):
        fleet.reservation(pool="zzz")
    assert ask(slot_labels=RACK).pool == "zzz"
    assert ask().pool == "cml-eu"


def test_labels_of_a_slot_that_was_labelled_by_hand_count(ask, fleet):
    create_pool(name="aaa", actor=SYSTEM)
    slot = fleet.slot(labels=RACK)
    assert ask(slot_labels=RACK).pool == "cml-eu"
    type(slot).objects.update(state=SlotState.TERMINATING)
    assert ask(slot_labels=RACK).pool == "aaa"


def test_labels_that_no_pool_has_refuse_nothing(ask, fleet):
    create_pool(name="zzz", actor=SYSTEM, runtime_settings={"labels": {"rack": "a"}})
    assert ask(slot_labels=RACK).pool == "cml-eu"
    assert ask(slot_labels=RACK, pool="zzz").pool == "zzz"
