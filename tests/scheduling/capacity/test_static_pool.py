"""A pool of listed workers: no two launches get the same worker."""

from __future__ import annotations

from functools import partial

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.services.definitions import update_definition
from scheduling.capacity import launcher
from scheduling.capacity.launcher import perform_launch
from scheduling.capacity.runtimes.base import Health
from scheduling.capacity.runtimes.static import StaticRuntime
from scheduling.models import AttemptOutcome, LaunchAttempt, Phase, Slot, SlotState
from scheduling.selectors.wait_reasons import explain_session
from scheduling.services.slots import label_slot
from tests.support.fleet import Fleet, active_reservation, phases

S = SlotState


@pytest.fixture
def static_fleet(configure_pool) -> Fleet:
    """Three listed workers that are ready immediately."""
    names = ("a", "b", "c")
    listed = [{"name": name, "endpoint": f"https://{name}.example.org"} for name in names]
    fleet = configure_pool(runtime="static", runtime_settings={"workers": listed}, max_slots=3)
    fleet.runtime = StaticRuntime("cml-eu", fleet.pool.runtime_settings)
    fleet.runtime.probe = lambda _: Health(True, version="2.9.1")
    return fleet


def let_only_respond(fleet, *names):
    """Let only these workers respond."""
    fleet.runtime.probe = lambda instance: Health(instance.id in names, "off")


@pytest.mark.parametrize("silent_count", [1, 2])
def test_the_next_worker_is_tried_if_one_does_not_respond(static_fleet, silent_count):
    """Workers are tried one after the other; failed workers come last."""
    let_only_respond(static_fleet, *"abc"[silent_count:])
    reservation = static_fleet.reservation(16, ttl=86_400)
    for _ in range(5 * (silent_count + 1)):
        static_fleet.round()
    tried = LaunchAttempt.objects.order_by("requested_at").values_list("instance_id", flat=True)
    assert (phases([reservation]), list(tried)) == ([Phase.READY], list("abc"[: silent_count + 1]))
    assert sorted(static_fleet.reload_pool().failed_workers) == list("abc"[:silent_count])


def test_failed_workers_are_tried_in_turn_until_one_responds(static_fleet):
    let_only_respond(static_fleet)
    reservation = static_fleet.reservation(16, ttl=86_400)
    for _ in range(25):
        static_fleet.round()
    tried = list(LaunchAttempt.objects.order_by("requested_at").values_list("instance_id", flat=True))
    assert tried == (list("abc") * 9)[: len(tried)]
    assert len(tried) > 4
    let_only_respond(static_fleet, "b")
    for _ in range(16):
        static_fleet.round()
    assert (phases([reservation]), sorted(static_fleet.reload_pool().failed_workers)) == (
        [Phase.READY],
        ["a", "c"],
    )


def test_a_worker_that_stops_responding_is_tried_last(configure_pool, static_fleet):
    configure_pool(min_slots=1)
    for _ in range(3):
        static_fleet.round()
    assert [slot.instance_id for slot in static_fleet.slots(S.READY)] == ["a"]
    let_only_respond(static_fleet, "b", "c")
    for _ in range(20):
        static_fleet.round()
    assert list(static_fleet.reload_pool().failed_workers) == ["a"]
    assert [slot.instance_id for slot in static_fleet.slots(S.READY)] == ["b"]


@pytest.fixture
def shifted_fleet(static_fleet) -> Fleet:
    """The third slot has the first worker, so that both other slots choose the second."""
    static_fleet.reload_pool()
    size = {**static_fleet.pool.amounts.as_dict(), "max_leases": static_fleet.pool.max_leases}
    Slot.objects.create(pool=static_fleet.pool, number=3, state=S.READY, instance_id="a", **size)
    return static_fleet


def test_two_launches_that_choose_the_same_worker_get_different_workers(shifted_fleet, monkeypatch):
    """The second chooses before the first has recorded its choice."""
    reservations = [shifted_fleet.reservation(16, ttl=9999) for _ in range(3)]
    first, second = shifted_fleet.tick().attempts
    LaunchAttempt.objects.update(worker="b")
    real = launcher._launch_request

    def run_second_launch_first(attempt, offering):
        request = real(attempt, offering)
        monkeypatch.setattr(launcher, "_launch_request", real)
        perform_launch(second, shifted_fleet.runtime, shifted_fleet.clock)
        return request

    monkeypatch.setattr(launcher, "_launch_request", run_second_launch_first)
    perform_launch(first, shifted_fleet.runtime, shifted_fleet.clock)
    outcomes = dict(LaunchAttempt.objects.values_list("pk", "outcome"))
    assert outcomes == {first: AttemptOutcome.REFUSED, second: AttemptOutcome.LAUNCHED}
    assert "b was assigned to another slot" in LaunchAttempt.objects.get(pk=first).error
    assert shifted_fleet.reload_pool().backoff_until is None
    for _ in range(4):
        shifted_fleet.round(5)
    assert phases(reservations) == [Phase.READY] * 3
    assert sorted(slot.instance_id for slot in shifted_fleet.slots(S.READY)) == ["a", "b", "c"]


def test_each_worker_is_used_once(static_fleet):
    reservations = [static_fleet.reservation(16, ttl=9999) for _ in range(3)]
    for _ in range(4):
        static_fleet.round(5)
    assert phases(reservations) == [Phase.READY] * 3
    assert sorted(slot.instance_id for slot in static_fleet.slots(S.READY)) == ["a", "b", "c"]


def test_every_launch_intends_a_different_worker(shifted_fleet):
    """The worker of the slot's number if it is free."""
    for _ in range(3):
        shifted_fleet.reservation(16, ttl=9999)
    shifted_fleet.tick()
    assert [(slot.number, slot.attempts.get().worker) for slot in shifted_fleet.slots(S.LAUNCHING)] == [
        (1, "c"),
        (2, "b"),
    ]


@pytest.fixture
def labelled_fleet(static_fleet) -> Fleet:
    """The second and third worker have labels of their own."""
    listed = static_fleet.pool.runtime_settings["workers"]
    listed[1]["labels"], listed[2]["labels"] = {"rack": "b"}, {"rack": "c"}
    type(static_fleet.pool).objects.update(runtime_settings={"workers": listed})
    static_fleet.runtime = StaticRuntime("cml-eu", {"workers": listed})
    static_fleet.runtime.probe = lambda _: Health(True, version="2.9.1")
    return static_fleet


@pytest.fixture
def request_session(labelled_fleet, new_session, active_definition):
    """`request_session(rack)`: a session for slots with this label."""

    def request(rack, **fields):
        update_definition(definition=active_definition, slot_labels={"rack": rack}, actor=SYSTEM)
        return new_session(**fields)

    return request


@pytest.mark.parametrize("minimum", [0, 2, 3])
@pytest.mark.parametrize("maximum", [1, 2, 3])
def test_a_worker_with_its_own_labels_is_launched_for_matching_sessions(
    configure_pool, request_session, minimum, maximum
):
    """For any minimum of slots, and even with fewer slots than workers."""
    fleet = configure_pool(min_slots=min(minimum, maximum - 1), max_slots=maximum)
    session = request_session("c")
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


def test_launches_are_limited_to_the_workers_with_the_labels(labelled_fleet, request_session):
    sessions = [request_session("b") for _ in range(6)]
    for _ in range(6):
        labelled_fleet.round(5)
    assert labelled_fleet.states() == [S.READY]
    assert {session.status for session in LabletSession.objects.all()} == {"PENDING", "SCHEDULED"}
    (waiting,) = [each for each in sessions if active_reservation(each).phase == Phase.PENDING][:1]
    found = explain_session(waiting, now=labelled_fleet.clock())
    assert [step.text for step in found.steps] == ["Every worker of cml-eu that suits it is already in use."]


def test_each_session_gets_a_matching_worker_in_any_order(labelled_fleet, request_session, new_session):
    unlabelled = labelled_fleet.reservation(16, ttl=9999)
    racks = {rack: request_session(rack) for rack in ("c", "b")}
    labelled_fleet.tick()
    assert [slot.attempts.get().worker for slot in labelled_fleet.slots(S.LAUNCHING)] == ["a", "b", "c"]
    for _ in range(3):
        labelled_fleet.round(5)
    assert {rack: active_reservation(each).slot.instance_id for rack, each in racks.items()} == {
        "b": "b",
        "c": "c",
    }
    unlabelled.refresh_from_db()
    assert unlabelled.slot.instance_id == "a"


def test_labelling_a_booting_slot_makes_the_session_possible(fleet, new_session, active_definition):
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
def test_concurrent_launches_get_different_workers(shifted_fleet, at_once):
    for _ in range(3):
        shifted_fleet.reservation(16, ttl=9999)
    for _ in range(3):
        attempts = shifted_fleet.tick().attempts
        work = [partial(perform_launch, key, shifted_fleet.runtime, shifted_fleet.clock) for key in attempts]
        assert not work or at_once(*work) == [None] * len(work)
    assert sorted(slot.instance_id for slot in shifted_fleet.slots(S.BOOTING)) == ["b", "c"]
