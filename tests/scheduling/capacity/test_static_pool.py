"""A pool of listed workers: two launches never get the same one."""

from __future__ import annotations

from functools import partial

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.services.definitions import update_definition
from scheduling.capacity import launcher
from scheduling.capacity.launcher import perform_launch
from scheduling.capacity.resources import resources_of
from scheduling.capacity.runtimes.base import Health
from scheduling.capacity.runtimes.static import StaticRuntime
from scheduling.models import AttemptOutcome, LaunchAttempt, Phase, Slot, SlotState
from scheduling.selectors.wait_reasons import explain_session
from scheduling.services.slots import label_slot
from tests.support.fleet import Fleet, active_reservation, phases

S = SlotState


@pytest.fixture
def static(configure_pool) -> Fleet:
    """Three listed workers that answer at once."""
    names = ("a", "b", "c")
    listed = [{"name": name, "endpoint": f"https://{name}.example.org"} for name in names]
    fleet = configure_pool(runtime="static", runtime_settings={"workers": listed}, max_slots=3)
    fleet.runtime = StaticRuntime("cml-eu", fleet.pool.runtime_settings)
    fleet.runtime.probe = lambda _: Health(True, version="2.9.1")
    return fleet


def answering(fleet, *names):
    """Only these workers answer."""
    fleet.runtime.probe = lambda instance: Health(instance.id in names, "off")


@pytest.mark.parametrize("dead", [1, 2])
def test_a_worker_that_does_not_answer_lets_the_next_one_be_tried(static, dead):
    """One after the other; failed workers come last."""
    answering(static, *"abc"[dead:])
    claim = static.reservation(16, ttl=86_400)
    for _ in range(5 * (dead + 1)):
        static.round()
    tried = LaunchAttempt.objects.order_by("requested_at").values_list("instance_id", flat=True)
    assert (phases([claim]), list(tried)) == ([Phase.READY], list("abc"[: dead + 1]))
    assert sorted(static.reload_pool().failed_workers) == list("abc"[:dead])


def test_workers_that_all_fail_are_tried_in_turn_and_one_that_answers_is_forgiven(static):
    answering(static)
    claim = static.reservation(16, ttl=86_400)
    for _ in range(25):
        static.round()
    tried = list(LaunchAttempt.objects.order_by("requested_at").values_list("instance_id", flat=True))
    assert tried == (list("abc") * 9)[: len(tried)]
    assert len(tried) > 4
    answering(static, "b")
    for _ in range(16):
        static.round()
    assert (phases([claim]), sorted(static.reload_pool().failed_workers)) == ([Phase.READY], ["a", "c"])


def test_a_worker_that_falls_silent_comes_after_the_others_as_well(configure_pool, static):
    configure_pool(min_slots=1)
    for _ in range(3):
        static.round()
    assert [slot.instance_id for slot in static.slots(S.READY)] == ["a"]
    answering(static, "b", "c")
    for _ in range(20):
        static.round()
    assert list(static.reload_pool().failed_workers) == ["a"]
    assert [slot.instance_id for slot in static.slots(S.READY)] == ["b"]


@pytest.fixture
def shifted(static) -> Fleet:
    """The third slot has the first worker, so that both other slots choose the second."""
    static.reload_pool()
    size = {**vars(resources_of(static.pool)), "max_leases": static.pool.max_leases}
    Slot.objects.create(pool=static.pool, number=3, state=S.READY, instance_id="a", **size)
    return static


def test_two_launches_that_choose_the_same_worker_give_it_to_one_and_the_other_gets_another(
    shifted, monkeypatch
):
    """The second chooses before the first has recorded its choice."""
    claims = [shifted.reservation(16, ttl=9999) for _ in range(3)]
    first, second = shifted.tick().attempts
    LaunchAttempt.objects.update(worker="b")
    real = launcher._request

    def choose_early(attempt, offering):
        request = real(attempt, offering)
        monkeypatch.setattr(launcher, "_request", real)
        perform_launch(second, shifted.runtime, shifted.clock)
        return request

    monkeypatch.setattr(launcher, "_request", choose_early)
    perform_launch(first, shifted.runtime, shifted.clock)
    outcomes = dict(LaunchAttempt.objects.values_list("pk", "outcome"))
    assert outcomes == {first: AttemptOutcome.REFUSED, second: AttemptOutcome.LAUNCHED}
    assert "b was given to another slot" in LaunchAttempt.objects.get(pk=first).error
    assert shifted.reload_pool().backoff_until is None
    for _ in range(4):
        shifted.round(5)
    assert phases(claims) == [Phase.READY] * 3
    assert sorted(slot.instance_id for slot in shifted.slots(S.READY)) == ["a", "b", "c"]


def test_all_workers_are_used_and_none_twice(static):
    claims = [static.reservation(16, ttl=9999) for _ in range(3)]
    for _ in range(4):
        static.round(5)
    assert phases(claims) == [Phase.READY] * 3
    assert sorted(slot.instance_id for slot in static.slots(S.READY)) == ["a", "b", "c"]


def test_every_launch_intends_a_different_worker(shifted):
    """The worker of the slot's number if it is free."""
    for _ in range(3):
        shifted.reservation(16, ttl=9999)
    shifted.tick()
    assert [(slot.number, slot.attempts.get().worker) for slot in shifted.slots(S.LAUNCHING)] == [
        (1, "c"),
        (2, "b"),
    ]


@pytest.fixture
def labelled(static) -> Fleet:
    """The second and third worker have labels of their own."""
    listed = static.pool.runtime_settings["workers"]
    listed[1]["labels"], listed[2]["labels"] = {"rack": "b"}, {"rack": "c"}
    type(static.pool).objects.update(runtime_settings={"workers": listed})
    static.runtime = StaticRuntime("cml-eu", {"workers": listed})
    static.runtime.probe = lambda _: Health(True, version="2.9.1")
    return static


@pytest.fixture
def asks(labelled, new_session, active_definition):
    """`asks(rack)`: a session for slots with this label."""

    def ask(rack, **fields):
        update_definition(definition=active_definition, slot_labels={"rack": rack}, actor=SYSTEM)
        return new_session(**fields)

    return ask


@pytest.mark.parametrize("minimum", [0, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_worker_with_its_own_labels_is_launched_for_matching_sessions(configure_pool, asks, minimum, most):
    """Whatever slots are kept warm, and even with fewer slots than workers."""
    fleet = configure_pool(min_slots=min(minimum, most - 1), max_slots=most)
    session = asks("c")
    for _ in range(10):
        fleet.tick_without_errors()
        session.refresh_from_db()
        if session.status != SessionStatus.PENDING:
            break
        found = explain_session(session, now=fleet.clock())
        assert (found.outcome, active_reservation(session).verdict.split(":")[0]) == ("waiting", "waiting")
        fleet.launch()
        fleet.reconcile()
        fleet.clock.advance(seconds=5)
    assert session.status == SessionStatus.SCHEDULED
    assert fleet.slots()[0].pool.slots.get(lease_count=1).instance_id == "c"


def test_no_more_is_launched_than_there_are_workers_with_the_labels(labelled, asks):
    sessions = [asks("b") for _ in range(6)]
    for _ in range(6):
        labelled.round(5)
    assert labelled.states() == [S.READY]
    assert {session.status for session in LabletSession.objects.all()} == {"PENDING", "SCHEDULED"}
    (waits,) = [each for each in sessions if active_reservation(each).phase == Phase.PENDING][:1]
    found = explain_session(waits, now=labelled.clock())
    assert [step.text for step in found.steps] == ["Every worker of cml-eu that suits it is already in use."]


def test_each_session_gets_a_matching_worker_in_any_order(labelled, asks, new_session):
    plain = labelled.reservation(16, ttl=9999)
    racks = {rack: asks(rack) for rack in ("c", "b")}
    labelled.tick()
    assert [slot.attempts.get().worker for slot in labelled.slots(S.LAUNCHING)] == ["a", "b", "c"]
    for _ in range(3):
        labelled.round(5)
    assert {rack: active_reservation(each).slot.instance_id for rack, each in racks.items()} == {
        "b": "b",
        "c": "c",
    }
    plain.refresh_from_db()
    assert plain.slot.instance_id == "a"


def test_a_label_given_by_hand_to_a_slot_that_boots_makes_it_possible(fleet, new_session, active_definition):
    slot = fleet.slot(S.BOOTING)
    update_definition(definition=active_definition, slot_labels={"rack": "b"}, actor=SYSTEM)
    session = new_session()
    fleet.tick()
    assert active_reservation(session).verdict.startswith("impossible")
    label_slot(slot=slot, labels={"rack": "b"}, reason="moved", actor=SYSTEM, now=fleet.clock())
    report = fleet.tick_without_errors()
    assert active_reservation(session).verdict.startswith("waiting")
    assert "launched_for_demand" not in report.counts


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_launches_at_the_same_moment_share_the_workers_out(shifted, at_once):
    for _ in range(3):
        shifted.reservation(16, ttl=9999)
    for _ in range(3):
        attempts = shifted.tick().attempts
        work = [partial(perform_launch, key, shifted.runtime, shifted.clock) for key in attempts]
        assert not work or at_once(*work) == [None] * len(work)
    assert sorted(slot.instance_id for slot in shifted.slots(S.BOOTING)) == ["b", "c"]
