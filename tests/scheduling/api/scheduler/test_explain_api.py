"""Wait reasons in the API: position, reason with its numbers, next steps."""

from datetime import timedelta

import pytest

from lcm.domain.lifecycle import SessionStatus
from scheduling.models import Pool, Reservation, Slot, SlotState
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from tests.support.factories import make_definition
from tests.support.scheduler_setup import FAILING, RECLAIM, SessionRequester

TWO_BIG_NODES = """
lab: {title: Big, version: 0.2.1}
nodes:
  - {id: n0, label: a, node_definition: ubuntu, cpus: 10, ram: 512}
  - {id: n1, label: b, node_definition: ubuntu, cpus: 10, ram: 512}
links: []
"""


@pytest.fixture
def wait_reasons(api, viewer):
    """`wait_reasons(session)`: the wait reasons of a session in the API."""

    def get(session, query="", status=200):
        response = api(viewer).get(f"/api/lablet-sessions/{session.pk}/explain/{query}")
        assert response.status_code == status, response.json()
        return response.json()

    return get


def step_kinds(result):
    return [each["kind"] for each in result["next_steps"]]


def next_step(result, kind):
    return next(each for each in result["next_steps"] if each["kind"] == kind)


def test_position_and_number_of_sessions_ahead_are_returned(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    low, high = new_session(priority=10), new_session(priority=90)
    fleet.tick_without_errors()
    result = wait_reasons(low)
    assert (result["position"], result["ahead"], result["waiting"]) == (2, 1, 2)
    assert wait_reasons(high)["position"] == 1
    new = wait_reasons(new_session())
    assert (new["position"], new["ahead"]) == (None, None)


def test_the_reason_is_a_sentence_with_numbers(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=4)
    for free in (1, 2, 3):
        fleet.slot(cpu_cores=free)
    fleet.slot(cordoned=True)
    session = new_session()
    fleet.tick_without_errors()
    result = wait_reasons(session)
    assert result["message"] == (
        "None of 4 ready slots fits: 3 insufficient CPU (4 cores requested, at most 3 cores free); "
        "1 cordoned."
    )
    assert [(each["code"], each["slots"]) for each in result["reasons"]] == [("cpu_cores", 3), ("cordon", 1)]
    assert result["reasons"][0]["example_slots"] == ["cml-eu-01", "cml-eu-02", "cml-eu-03"]
    assert result["by_slot"] == []


def test_reasons_by_slot_are_returned_on_request(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cpu_cores=1, memory_gb=2)
    fleet.slot(cordoned=True)
    session = new_session()
    result = wait_reasons(session, "?slots=true")
    by_name = {each["name"]: each["reasons"] for each in result["by_slot"]}
    assert by_name["cml-eu-01"] == [
        "CPU: 4 cores requested, 1 core free",
        "memory: 3.5 GB requested, 2 GB free",
    ]
    assert len(by_name["cml-eu-02"]) == 1


def test_a_smaller_requirement_that_fits_is_suggested(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=3)
    fleet.slot(cpu_cores=3)
    fleet.slot(cpu_cores=3)
    fleet.slot(cpu_cores=1)
    result = wait_reasons(new_session())
    assert (
        next_step(result, "smaller")["text"]
        == "With a smaller request it would fit 2 slots now: 3 cores of CPU instead of 4."
    )
    assert next_step(result, "full")["text"].startswith("cml-eu is at its maximum of 3 slots")


def test_a_booting_slot_that_will_hold_the_session_is_named(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    booting = fleet.slot(SlotState.BOOTING)
    result = wait_reasons(new_session())
    booting_step = next_step(result, "booting")
    assert (booting_step["slot"], booting_step["slot_name"]) == (str(booting.pk), "cml-eu-02")
    assert booting_step["text"] == "cml-eu-02 is booting and will hold it."
    assert booting_step["at"] is not None


def test_a_booting_slot_goes_to_the_sessions_ahead(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    fleet.slot(SlotState.BINDING)
    for _ in range(4):
        new_session(priority=90)
    last = new_session(priority=10)
    fleet.tick_without_errors()
    assert (
        next_step(wait_reasons(last), "booting")["text"]
        == "cml-eu-02 is binding and fits it, after the sessions ahead."
    )


def test_a_booting_slot_that_does_not_fit_is_not_named(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    fleet.slot(SlotState.BOOTING, cpu_cores=1)
    assert "booting" not in step_kinds(wait_reasons(new_session()))


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({}, "launch", "cml-eu can launch more slots"),
        ({"enabled": False}, "off", "is disabled"),
        ({"stopped_reason": "no such image"}, "stopped", "launches nothing: no such image."),
        ({"max_slots": 1}, "full", "maximum of 1 slot"),
    ],
)
def test_the_next_step_shows_whether_a_slot_can_be_launched(
    fields, kind, text, configure_pool, new_session, wait_reasons
):
    fleet = configure_pool(max_slots=4)
    fleet.slot(cordoned=True)
    session = new_session()
    configure_pool(**fields)
    assert text in next_step(wait_reasons(session), kind)["text"]


def test_a_draining_slot_in_a_full_pool_is_explained(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    fleet.slot(SlotState.DRAINING)
    assert next_step(wait_reasons(new_session()), "full")["text"] == (
        "cml-eu is at its maximum of 2 slots. An idle slot terminates to make room."
    )


def test_a_session_larger_than_any_slot_is_impossible(fleet, new_session, wait_reasons):
    session = new_session()
    Pool.objects.filter(pk=fleet.pool.pk).update(memory_gb=2)
    fleet.slot(memory_gb=2)
    fleet.tick_without_errors()
    result = wait_reasons(session)
    assert result["outcome"] == "impossible"
    assert step_kinds(result) == ["impossible"]
    assert result["next_steps"][0]["text"] == (
        "No slot of cml-eu can ever hold it, even when empty: "
        "insufficient memory (3.5 GB requested, at most 2 GB free)."
    )


def test_a_spread_session_that_needs_too_many_slots_is_impossible(configure_pool, wait_reasons):
    fleet = configure_pool(cpu_cores=3, max_slots=1)
    fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    fleet.tick_without_errors()
    result = wait_reasons(session)
    assert result["outcome"] == "impossible"
    assert "of its 3 kernels placed, the only ready slot does not fit: insufficient CPU" in result["message"]
    assert [each["text"] for each in result["next_steps"]] == [
        "No slot of cml-eu can ever hold it: its kernels need more than all slots have."
    ]
    configure_pool(max_slots=2)
    assert wait_reasons(session)["outcome"] == "waiting"


def test_an_advance_booking_shows_when_it_joins_the_queue(fleet, new_session, wait_reasons, now):
    fleet.slot()
    session = new_session(starts_at=now + timedelta(hours=1), ends_at=now + timedelta(hours=2))
    fleet.tick_without_errors()
    result = wait_reasons(session)
    at = now + timedelta(minutes=45)
    assert result["outcome"] == "refused"
    assert result["message"] == "Advance booking. It joins the queue 15 minutes before its timeslot."
    assert (
        next_step(result, "turn")["text"]
        == "It is placed as soon as it has joined the queue and a slot has space."
    )
    assert next_step(result, "turn")["at"].startswith(f"{at:%Y-%m-%dT%H:%M}")


def test_an_exhausted_quota_is_explained(configure_pool, wait_reasons):
    limits = "  - name: quota\n    arguments: {limits: {academy: {sessions: 1}}}\n"
    fleet = configure_pool(scheduler=DEFAULT_CONFIGURATION.replace("  - name: quota\n", limits))
    slot = fleet.slot()
    requester = SessionRequester(fleet, "one", make_definition(pool="cml-eu"))
    requester.request_on(slot)
    result = wait_reasons(requester.request())
    assert result["message"] == "academy has the only session it may have at once."
    assert step_kinds(result) == ["quota"]


def test_a_session_that_fits_is_placed_by_the_next_tick(fleet, new_session, wait_reasons):
    fleet.slot()
    result = wait_reasons(new_session())
    assert (result["outcome"], result["next_steps"]) == ("placed", [])
    assert result["message"] == "It fits on cml-eu-01: the next tick places it."


def test_space_that_is_cleared_by_evictions_is_explained(configure_pool, wait_reasons):
    fleet = configure_pool(max_slots=1, scheduler=RECLAIM)
    slot = fleet.slot()
    many = SessionRequester(fleet, "many", make_definition(pool="cml-eu", preemptible=True))
    for _ in range(4):
        many.request_on(slot)
    waiting = SessionRequester(fleet, "few", make_definition(pool="cml-eu")).request()
    assert wait_reasons(waiting)["message"] == "The next tick stops a session to make room for it."
    fleet.tick_without_errors()
    result = wait_reasons(waiting)
    assert result["message"] == "Space is being cleared for it on cml-eu-01: sessions there are stopping."
    assert next_step(result, "held")["slot"] == str(slot.pk)


def test_the_node_of_a_spread_session_that_fits_no_slot_is_named(configure_pool, wait_reasons):
    fleet = configure_pool(cpu_cores=3, max_slots=1)
    fleet.slot(cpu_cores=1)
    result = wait_reasons(
        SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    )
    assert result["message"].startswith(
        "Node r1 fits no slot. The only ready slot does not fit: insufficient CPU (2 cores"
    )


def test_the_reasons_by_slot_of_a_spread_session_match_the_sentence(configure_pool, wait_reasons):
    """Two nodes of 10 cores and one slot of 16: the second does not fit beside the first."""
    fleet = configure_pool(max_slots=1, max_leases=4)
    fleet.slot()
    big = make_definition(pool="cml-eu", topology=TWO_BIG_NODES, placement="spread")
    result = wait_reasons(SessionRequester(fleet, "apart", big).request(), "?slots=true")
    assert (
        "With 1 of its 2 kernels placed, the only ready slot does not fit: insufficient CPU"
        in result["message"]
    )
    assert [each["reasons"] for each in result["by_slot"]] == [["CPU: 10 cores requested, 6 cores free"]]


def test_a_plugin_that_fails_is_named(configure_pool, new_session, wait_reasons):
    fleet = configure_pool(scheduler=FAILING, max_slots=1)
    fleet.slot(cordoned=True)
    (failure,) = wait_reasons(new_session())["failures"]
    assert failure["plugin"] == "failing_in_tests"
    assert "the licence server does not respond" in failure["text"]


def test_an_invalid_scheduler_is_reported(configure_pool, new_session, wait_reasons):
    session = new_session()
    configure_pool(scheduler="actions: [allocate]\nplugins: [gone]\n")
    assert "There is no plugin “gone”" in wait_reasons(session)["message"]


def test_only_waiting_sessions_can_be_explained(session_in, wait_reasons):
    result = wait_reasons(session_in(SessionStatus.RUNNING), status=409)
    assert "it is not waiting for a slot" in result["message"]


def test_explaining_writes_nothing(fleet, new_session, wait_reasons):
    fleet.slot()
    session = new_session()
    before = list(Reservation.objects.values()), list(Slot.objects.values())
    wait_reasons(session, "?slots=true")
    assert (list(Reservation.objects.values()), list(Slot.objects.values())) == before
