"""Choice of a pool: it can hold the reservation, and has its labels if any pool has them."""

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
SPOT_OFFERINGS_ONLY = {
    "spot_policy": SpotPolicy.FALLBACK,
    "runtime_settings": {"offerings": [{"name": "a", "market": "spot"}]},
}
SPOT_ONLY_MESSAGE = "The pool aaa-spot has spot slots only, and this session is not preemptible."


@pytest.fixture(params=[SPOT_ONLY, SPOT_OFFERINGS_ONLY], ids=["by its policy", "by its offerings"])
def spot_pool(request, pool) -> Pool:
    """A pool that comes first by name."""
    return create_pool(name="aaa-spot", actor=SYSTEM, **request.param)


@pytest.fixture
def request_session(pool, project, operator, clock):
    """`request_session(preemptible=…, slot_labels=…)`: a session that waits in its chosen pool."""

    def make(pool="", **fields):
        definition = make_definition(**fields)
        Pool.objects.filter(name="cml-us").update(enabled=False)
        return make_session(definition, project, operator, now=clock(), pool=pool)

    return make


def test_non_preemptible_work_skips_a_spot_only_pool(spot_pool, request_session):
    assert request_session().pool == "cml-eu"


def test_preemptible_work_uses_a_spot_only_pool(spot_pool, request_session):
    assert request_session(preemptible=True).pool == "aaa-spot"


def test_a_reservation_without_a_session_skips_a_spot_only_pool(spot_pool, fleet):
    assert fleet.reservation(pool="", system="cml").pool == fleet.pool


def test_a_pool_with_both_markets_accepts_all_work(fleet, request_session):
    create_pool(
        name="aaa-both", actor=SYSTEM, spot_policy=SpotPolicy.FALLBACK, runtime_settings={"spot": True}
    )
    assert request_session().pool == "aaa-both"
    assert fleet.reservation(pool="aaa-both").pool.name == "aaa-both"


def test_a_spot_only_pool_requested_by_name_is_rejected_with_the_reason(spot_pool, request_session, fleet):
    with pytest.raises(InvalidInput) as error:
        request_session(pool="aaa-spot")
    assert error.value.fields == {"pool": [SPOT_ONLY_MESSAGE]}
    with pytest.raises(InvalidInput, match=SPOT_ONLY_MESSAGE):
        fleet.reservation(pool="aaa-spot")
    assert not Reservation.objects.exists()
    assert not LabletSession.objects.exists()


def test_without_an_alternative_the_error_shows_the_reason(spot_pool, fleet):
    Pool.objects.exclude(name="aaa-spot").update(enabled=False)
    with pytest.raises(InvalidInput, match=f"No pool for cml can hold this. {SPOT_ONLY_MESSAGE}"):
        fleet.reservation(pool="", system="cml")


def test_a_session_cannot_be_moved_to_a_spot_only_pool(spot_pool, request_session, clock):
    session = request_session()
    with pytest.raises(InvalidInput, match=SPOT_ONLY_MESSAGE):
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
def test_labels_select_a_matching_pool_even_with_a_longer_queue(request_session, clock, fleet, fields):
    create_pool(name="zzz", actor=SYSTEM, **fields)
    for _ in range(3):
        fleet.reservation(pool="zzz")
    assert request_session(slot_labels=RACK).pool == "zzz"
    assert request_session().pool == "cml-eu"


def test_labels_that_an_operator_set_on_a_slot_count(request_session, fleet):
    create_pool(name="aaa", actor=SYSTEM)
    slot = fleet.slot(labels=RACK)
    assert request_session(slot_labels=RACK).pool == "cml-eu"
    type(slot).objects.update(state=SlotState.TERMINATING)
    assert request_session(slot_labels=RACK).pool == "aaa"


def test_labels_that_no_pool_has_do_not_reject_a_session(request_session, fleet):
    create_pool(name="zzz", actor=SYSTEM, runtime_settings={"labels": {"rack": "a"}})
    assert request_session(slot_labels=RACK).pool == "cml-eu"
    assert request_session(slot_labels=RACK, pool="zzz").pool == "zzz"
