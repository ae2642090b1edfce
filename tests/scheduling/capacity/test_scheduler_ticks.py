"""Labels, GPUs, quota and races, through ticks."""

from decimal import Decimal

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.services.definitions import update_definition
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_session
from scheduling.capacity.runtimes.static import StaticRuntime
from scheduling.capacity.steps import place
from scheduling.models import Decision, Slot, SlotState
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from scheduling.selectors.wait_reasons import explain_session
from scheduling.services.reservations import release_reservation
from scheduling.services.slots import label_slot, move_slot
from tests.support.factories import make_definition
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import (
    SessionRequester,
    check_leases,
    report_termination,
    slot_of,
    status_of,
)


def with_limits(text: str) -> str:
    return DEFAULT_CONFIGURATION.replace(
        "  - name: quota\n", f"  - name: quota\n    arguments: {{limits: {text}}}\n"
    )


# --- labels


@pytest.fixture
def labelled_requester(fleet):
    definition = make_definition(pool="cml-eu")
    update_definition(definition=definition, slot_labels={"rack": "b"}, actor=SYSTEM)
    return SessionRequester(fleet, "labelled", definition)


def test_a_definition_with_labels_goes_to_a_slot_that_has_them(fleet, labelled_requester):
    fleet.slot(labels={"rack": "a"})
    matching_slot = fleet.slot(labels={"rack": "b", "gpu": "a10"})
    session = labelled_requester.request()
    fleet.tick_without_errors()
    assert slot_of(session) == matching_slot.pk


def test_labels_that_no_slot_can_have_are_impossible_in_the_first_cycle(fleet, labelled_requester):
    fleet.slot()
    session = labelled_requester.request()
    report = fleet.tick_without_errors()
    decision = Decision.objects.get()
    assert (decision.outcome, active_reservation(session).verdict) == ("impossible", "impossible:labels")
    assert "not labelled rack=b" in decision.why.message
    # Nothing is launched for a session that would never fit.
    assert "launched_for_demand" not in report.counts


def test_a_slot_labelled_by_an_operator_gets_the_session(fleet, labelled_requester, as_operator):
    slot = fleet.slot()
    session = labelled_requester.request()
    fleet.tick_without_errors()
    label_slot(slot=slot, labels={"rack": "b"}, reason="moved", actor=as_operator, now=fleet.clock())
    fleet.tick_without_errors()
    assert slot_of(session) == slot.pk


def test_a_slot_is_launched_in_a_pool_with_matching_labels(configure_pool, labelled_requester):
    fleet = configure_pool(runtime_settings={"labels": {"rack": "b"}})
    session = labelled_requester.request()
    report = fleet.tick_without_errors()
    assert report.counts["launched_for_demand"] == 1
    assert active_reservation(session).verdict == "waiting:no-slots"
    fleet.launch()
    assert [slot.labels for slot in fleet.slots()] == [{"rack": "b"}]


@pytest.mark.parametrize("invalid_labels", [["a"], "a", 7, {"rack": 7}, {"rack": ["b"]}], ids=str)
@pytest.mark.parametrize("state", [SlotState.READY, SlotState.BOOTING])
def test_invalid_labels_count_as_none_and_do_not_stop_the_tick(
    configure_pool, labelled_requester, state, invalid_labels
):
    fleet = configure_pool(max_slots=2)
    slot_with_invalid_labels = fleet.slot(state, labels=invalid_labels)
    matching_slot = fleet.slot(labels={"rack": "b"})
    session = labelled_requester.request()
    fleet.tick_without_errors()
    assert slot_of(session) == matching_slot.pk
    full_slot = [fleet.reservation(16, ttl=600) for _ in range(2)]
    fleet.tick_without_errors()
    for each in full_slot:
        each.refresh_from_db()
    assigned_slots = [each.slot for each in full_slot if each.slot]
    assert assigned_slots == ([slot_with_invalid_labels] if state == SlotState.READY else [])
    sessions = [labelled_requester.request() for _ in range(4)]
    fleet.tick_without_errors()
    (waiting,) = [each for each in sessions if status_of(each) == S.PENDING]
    assert explain_session(waiting, now=fleet.clock()).reasons[0].code == "cpu_cores"


def test_the_next_worker_of_a_slot_starts_without_labels(fleet, as_operator):
    slot = fleet.slot()
    label_slot(slot=slot, labels={"rack": "b"}, reason="moved", actor=as_operator, now=fleet.clock())
    slot.refresh_from_db()
    for to in (SlotState.TERMINATING, SlotState.EMPTY):
        assert move_slot(slot=slot, to=to, now=fleet.clock())
    assert Slot.objects.get(pk=slot.pk).labels == {}


# --- impossible sessions


def test_a_job_that_no_slot_can_hold_is_impossible_in_the_first_cycle(configure_pool):
    fleet = configure_pool(cpu_cores=16)
    fleet.slot()
    reservation = fleet.reservation(cpu=12)
    configure_pool(cpu_cores=8)
    Slot.objects.update(cpu_cores=8)
    fleet.tick_without_errors()
    reservation.refresh_from_db()
    assert reservation.verdict == "impossible:cpu_cores"


def test_a_spot_only_pool_can_never_hold_non_preemptible_work(configure_pool, new_session):
    session = new_session()
    fleet = configure_pool(spot_policy="only")
    report = fleet.tick_without_errors()
    assert active_reservation(session).verdict.startswith("impossible:")
    assert "launched_for_demand" not in report.counts


# --- GPUs


def test_gpus_are_allocated_as_devices_and_released(configure_pool):
    fleet = configure_pool(gpu=2, max_slots=1)
    slot = fleet.slot()
    first, second = (fleet.reservation(resources={"gpu": Decimal("0.5")}) for _ in range(2))
    fleet.clock.advance(seconds=1)
    whole_gpu = fleet.reservation(resources={"gpu": Decimal(1)})
    fleet.tick_without_errors()
    for row in (first, second, whole_gpu):
        row.refresh_from_db()
    assert {row.slot_id for row in (first, second, whole_gpu)} == {slot.pk}
    assert first.devices == second.devices == [[0, 50]]
    assert whole_gpu.devices == [[1, 100]]
    late = fleet.reservation(resources={"gpu": Decimal(1)})
    fleet.tick_without_errors()
    late.refresh_from_db()
    assert (late.slot_id, late.verdict) == (None, "waiting:gpu")
    release_reservation(reservation=whole_gpu, actor=SYSTEM, now=fleet.clock())
    fleet.tick_without_errors()
    late.refresh_from_db()
    assert late.devices == [[1, 100]]


# --- quota


def test_a_quota_applies_across_ticks(configure_pool):
    fleet = configure_pool(max_slots=1, scheduler=with_limits('{"academy / one": {sessions: 2}}'))
    slot = fleet.slot()
    one, other = (SessionRequester(fleet, name, make_definition(pool="cml-eu")) for name in ("one", "other"))
    running = one.request_on(slot)
    own_sessions = [one.request(priority=90), one.request()]
    other_session = other.request()
    fleet.tick_without_errors()
    assert [status_of(session) for session in (*own_sessions, other_session)] == [
        S.SCHEDULED,
        S.PENDING,
        S.SCHEDULED,
    ]
    decision = Decision.objects.get(outcome="refused")
    assert decision.why.message == "academy / one has 2 of the 2 sessions it may have at once."
    transition_session(session=running, to=S.STOPPING, actor=SYSTEM, now=fleet.clock())
    report_termination(running, fleet)
    fleet.tick_without_errors()
    assert status_of(own_sessions[1]) == S.SCHEDULED


def test_a_quota_launches_no_slots(configure_pool):
    fleet = configure_pool(scheduler=with_limits("{academy: {memory_gb: 1}}"))
    SessionRequester(fleet, "one", make_definition(pool="cml-eu")).request()
    assert "launched_for_demand" not in fleet.tick_without_errors().counts


# --- a race


def test_a_session_that_is_cancelled_between_plan_and_commit_gets_no_slot(fleet, new_session, monkeypatch):
    fleet.slot()
    cancelled, remaining = new_session(), new_session()
    real = place.assign_slots

    def cancel_first(pool, verdicts, *, now):
        cancel_session(session=cancelled, reason="changed my mind", actor=SYSTEM, now=now)
        return real(pool, verdicts, now=now)

    monkeypatch.setattr(place, "assign_slots", cancel_first)
    report = fleet.tick_without_errors()
    assert report.counts["placed"] == 1
    assert (status_of(cancelled), status_of(remaining)) == (S.CANCELLED, S.SCHEDULED)
    assert list(Decision.objects.values_list("reservation__session", flat=True)) == [remaining.pk]
    check_leases()


def test_static_workers_have_their_own_labels():
    settings = {
        "labels": {"site": "lab", "rack": "a"},
        "workers": [
            {"name": "one", "endpoint": "https://one.example.org"},
            {"name": "two", "endpoint": "https://two.example.org", "labels": {"rack": "b"}},
        ],
    }
    runtime = StaticRuntime("cml-static", settings)
    assert runtime.labels_of("one") == {"site": "lab", "rack": "a"}
    assert runtime.labels_of("two") == {"site": "lab", "rack": "b"}
    assert StaticRuntime.problems({**settings, "labels": {"rack": 7}}).keys() == {"labels"}
