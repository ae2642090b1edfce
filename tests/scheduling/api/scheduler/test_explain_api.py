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
def why(api, viewer):
    """`why(session)`: the wait reasons of a session in the API."""

    def ask(session, query="", status=200):
        answer = api(viewer).get(f"/api/lablet-sessions/{session.pk}/explain/{query}")
        assert answer.status_code == status, answer.json()
        return answer.json()

    return ask


def kinds(found):
    return [step["kind"] for step in found["next_steps"]]


def step(found, kind):
    return next(each for each in found["next_steps"] if each["kind"] == kind)


def test_position_and_how_many_are_ahead(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    low, high = new_session(priority=10), new_session(priority=90)
    fleet.tick_without_errors()
    found = why(low)
    assert (found["position"], found["ahead"], found["waiting"]) == (2, 1, 2)
    assert why(high)["position"] == 1
    new = why(new_session())
    assert (new["position"], new["ahead"]) == (None, None)


def test_the_reason_is_a_sentence_with_numbers(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=4)
    for free in (1, 2, 3):
        fleet.slot(cpu_cores=free)
    fleet.slot(cordoned=True)
    session = new_session()
    fleet.tick_without_errors()
    found = why(session)
    assert found["message"] == (
        "None of 4 ready slots fits: 3 insufficient CPU (4 cores requested, at most 3 cores free); "
        "1 cordoned."
    )
    assert [(each["code"], each["slots"]) for each in found["reasons"]] == [("cpu_cores", 3), ("cordon", 1)]
    assert found["reasons"][0]["example_slots"] == ["cml-eu-01", "cml-eu-02", "cml-eu-03"]
    assert found["by_slot"] == []


def test_all_reasons_by_slot_on_demand(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cpu_cores=1, memory_gb=2)
    fleet.slot(cordoned=True)
    session = new_session()
    found = why(session, "?slots=true")
    by_name = {each["name"]: each["reasons"] for each in found["by_slot"]}
    assert by_name["cml-eu-01"] == [
        "CPU: 4 cores requested, 1 core free",
        "memory: 3.5 GB requested, 2 GB free",
    ]
    assert len(by_name["cml-eu-02"]) == 1


def test_a_smaller_requirement_that_fits_is_named(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=3)
    fleet.slot(cpu_cores=3)
    fleet.slot(cpu_cores=3)
    fleet.slot(cpu_cores=1)
    found = why(new_session())
    assert step(found, "smaller")["text"] == "With 3 cores of CPU instead of 4 it would fit 2 slots now."
    assert step(found, "full")["text"].startswith("cml-eu is at its maximum of 3 slots")


def test_a_slot_that_boots_and_will_take_it(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    booting = fleet.slot(SlotState.BOOTING)
    found = why(new_session())
    coming = step(found, "booting")
    assert (coming["slot"], coming["slot_name"]) == (str(booting.pk), "cml-eu-02")
    assert coming["text"] == "cml-eu-02 is booting and will hold it."
    assert coming["at"] is not None


def test_a_booting_slot_goes_to_the_sessions_ahead(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    fleet.slot(SlotState.BINDING)
    for _ in range(4):
        new_session(priority=90)
    last = new_session(priority=10)
    fleet.tick_without_errors()
    assert step(why(last), "booting")["text"] == "cml-eu-02 is binding and fits it, after the sessions ahead."


def test_a_slot_that_boots_and_does_not_fit_is_not_promised(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    fleet.slot(SlotState.BOOTING, cpu_cores=1)
    assert "booting" not in kinds(why(new_session()))


@pytest.mark.parametrize(
    ("fields", "kind", "text"),
    [
        ({}, "launch", "cml-eu can launch more slots"),
        ({"enabled": False}, "off", "is disabled"),
        ({"stopped_reason": "no such image"}, "stopped", "launches nothing: no such image."),
        ({"max_slots": 1}, "full", "maximum of 1 slot"),
    ],
)
def test_whether_a_slot_can_be_launched_for_it(fields, kind, text, configure_pool, new_session, why):
    fleet = configure_pool(max_slots=4)
    fleet.slot(cordoned=True)
    session = new_session()
    configure_pool(**fields)
    assert text in step(why(session), kind)["text"]


def test_space_that_is_being_cleared_is_explained(configure_pool, new_session, why):
    fleet = configure_pool(max_slots=2)
    fleet.slot(cordoned=True)
    fleet.slot(SlotState.DRAINING)
    assert step(why(new_session()), "full")["text"] == (
        "cml-eu is at its maximum of 2 slots. An idle slot terminates to make room."
    )


def test_a_session_that_no_slot_can_ever_hold(fleet, new_session, why):
    session = new_session()
    Pool.objects.filter(pk=fleet.pool.pk).update(memory_gb=2)
    fleet.slot(memory_gb=2)
    fleet.tick_without_errors()
    found = why(session)
    assert found["outcome"] == "impossible"
    assert kinds(found) == ["impossible"]
    assert found["next_steps"][0]["text"] == (
        "No slot of cml-eu can ever hold it, even when empty: "
        "insufficient memory (3.5 GB requested, at most 2 GB free)."
    )


def test_a_session_that_spreads_over_more_slots_than_there_can_be(configure_pool, why):
    fleet = configure_pool(cpu_cores=3, max_slots=1)
    fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    fleet.tick_without_errors()
    found = why(session)
    assert found["outcome"] == "impossible"
    assert "of its 3 kernels placed, the only ready slot does not fit: insufficient CPU" in found["message"]
    assert [each["text"] for each in found["next_steps"]] == [
        "No slot of cml-eu can ever hold it: its kernels need more than all slots have."
    ]
    configure_pool(max_slots=2)
    assert why(session)["outcome"] == "waiting"


def test_it_is_its_turn_later(fleet, new_session, why, now):
    fleet.slot()
    session = new_session(starts_at=now + timedelta(hours=1), ends_at=now + timedelta(hours=2))
    fleet.tick_without_errors()
    found = why(session)
    at = now + timedelta(minutes=45)
    assert found["outcome"] == "refused"
    assert found["message"] == "Advance booking. It joins the queue 15 minutes before its timeslot."
    assert (
        step(found, "turn")["text"] == "It is placed as soon as it has joined the queue and a slot has space."
    )
    assert step(found, "turn")["at"].startswith(f"{at:%Y-%m-%dT%H:%M}")


def test_a_quota_that_is_used_up(configure_pool, why):
    limits = "  - name: quota\n    arguments: {limits: {academy: {sessions: 1}}}\n"
    fleet = configure_pool(scheduler=DEFAULT_CONFIGURATION.replace("  - name: quota\n", limits))
    slot = fleet.slot()
    party = SessionRequester(fleet, "one", make_definition(pool="cml-eu"))
    party.request_on(slot)
    found = why(party.request())
    assert found["message"] == "academy has the only session it may have at once."
    assert kinds(found) == ["quota"]


def test_a_session_that_fits_is_placed_by_the_next_tick(fleet, new_session, why):
    fleet.slot()
    found = why(new_session())
    assert (found["outcome"], found["next_steps"]) == ("placed", [])
    assert found["message"] == "It fits on cml-eu-01: the next tick places it."


def test_space_is_being_cleared(configure_pool, why):
    fleet = configure_pool(max_slots=1, scheduler=RECLAIM)
    slot = fleet.slot()
    many = SessionRequester(fleet, "many", make_definition(pool="cml-eu", preemptible=True))
    for _ in range(4):
        many.request_on(slot)
    waiting = SessionRequester(fleet, "few", make_definition(pool="cml-eu")).request()
    assert why(waiting)["message"] == "The next tick stops a session to make room for it."
    fleet.tick_without_errors()
    found = why(waiting)
    assert found["message"] == "Space is being cleared for it on cml-eu-01: sessions there are stopping."
    assert step(found, "held")["slot"] == str(slot.pk)


def test_the_node_of_a_spread_session_that_finds_no_place(configure_pool, why):
    fleet = configure_pool(cpu_cores=3, max_slots=1)
    fleet.slot(cpu_cores=1)
    found = why(
        SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    )
    assert found["message"].startswith(
        "Node r1 fits no slot. The only ready slot does not fit: insufficient CPU (2 cores"
    )


def test_the_reasons_by_slot_of_a_spread_session_match_the_sentence(configure_pool, why):
    """Two nodes of 10 cores and one slot of 16: the second does not fit beside the first."""
    fleet = configure_pool(max_slots=1, max_leases=4)
    fleet.slot()
    big = make_definition(pool="cml-eu", topology=TWO_BIG_NODES, placement="spread")
    found = why(SessionRequester(fleet, "apart", big).request(), "?slots=true")
    assert (
        "With 1 of its 2 kernels placed, the only ready slot does not fit: insufficient CPU"
        in found["message"]
    )
    assert [each["reasons"] for each in found["by_slot"]] == [["CPU: 10 cores requested, 6 cores free"]]


def test_a_plugin_that_fails_is_named(configure_pool, new_session, why):
    fleet = configure_pool(scheduler=FAILING, max_slots=1)
    fleet.slot(cordoned=True)
    (failure,) = why(new_session())["failures"]
    assert failure["plugin"] == "failing_in_tests"
    assert "the licence server does not answer" in failure["text"]


def test_an_invalid_scheduler_is_reported(configure_pool, new_session, why):
    session = new_session()
    configure_pool(scheduler="actions: [allocate]\nplugins: [gone]\n")
    assert "There is no plugin “gone”" in why(session)["message"]


def test_only_waiting_sessions_can_be_explained(session_in, why):
    found = why(session_in(SessionStatus.RUNNING), status=409)
    assert "it is not waiting for a slot" in found["message"]


def test_explaining_writes_nothing(fleet, new_session, why):
    fleet.slot()
    session = new_session()
    before = list(Reservation.objects.values()), list(Slot.objects.values())
    why(session, "?slots=true")
    assert (list(Reservation.objects.values()), list(Slot.objects.values())) == before
