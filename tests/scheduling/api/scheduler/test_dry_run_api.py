"""Dry runs in the API: affected sessions, and no changes."""

import pytest

from scheduling.models import Decision, QueueOrder, Reservation, Slot, TickRun
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from tests.support.factories import make_definition
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import RECLAIM, SessionRequester


@pytest.fixture
def run(api, operator, fleet):
    """`run(…)`: the response of a dry run of the pool."""

    def post(status=200, **body):
        answer = api(operator).post(f"/api/pools/{fleet.pool.pk}/dry-run", body, format="json")
        assert answer.status_code == status, answer.json()
        return answer.json()

    return post


def moves(found, kind):
    return {(each["reservation"], each["before"], each["after"]) for each in found[kind]}


def test_nothing_different_changes_nothing(fleet, new_session, run):
    fleet.slot()
    new_session()
    found = run()
    assert (found["waiting"], found["placed_before"], found["placed_after"]) == (1, 1, 1)
    assert found["newly_placed"] == found["no_longer_placed"] == found["moved"] == []


def test_a_slot_that_is_drained(fleet, new_session, run):
    first, second = fleet.slot(), fleet.slot(cpu_cores=4)
    claims = [str(active_reservation(new_session()).pk) for _ in range(2)]
    found = run(drain=[str(first.pk)])
    assert (found["placed_before"], found["placed_after"]) == (2, 1)
    gone = [each for each in found["no_longer_placed"] if each["before"]]
    assert {each["reservation"] for each in gone} < set(claims)
    assert all("CPU" in each["reason"] for each in gone)
    second.refresh_from_db()
    assert second.state == "READY"


def test_where_they_would_go_instead(fleet, new_session, run):
    first = fleet.slot()
    fleet.slot()
    claim = str(active_reservation(new_session()).pk)
    assert moves(run(drain=[str(first.pk)]), "moved") == {(claim, "cml-eu-01", "cml-eu-02")}


def test_slots_that_are_added(fleet, new_session, run):
    claims = {str(active_reservation(new_session()).pk) for _ in range(5)}
    found = run(add_slots=2)
    assert (found["placed_before"], found["placed_after"]) == (0, 5)
    assert {each["reservation"] for each in found["newly_placed"]} == claims
    assert {each["after"] for each in found["newly_placed"]} == {"new slot 1", "new slot 2"}


def test_another_requirement_of_a_definition(fleet, new_session, active_definition, run):
    fleet.slot(cpu_cores=6)
    for _ in range(3):
        new_session()
    smaller = {"definition": str(active_definition.pk), "resources": {"cpu_cores": "2"}}
    found = run(requirements=[smaller])
    assert (found["placed_before"], found["placed_after"]) == (1, 3)


def test_another_requirement_of_one_session(fleet, new_session, run):
    fleet.slot(cpu_cores=6)
    session, other = new_session(priority=90), new_session()
    larger = {"session": str(session.pk), "resources": {"cpu_cores": "7"}}
    found = run(requirements=[larger])
    assert moves(found, "no_longer_placed") == {(str(active_reservation(session).pk), "cml-eu-01", "")}
    assert moves(found, "newly_placed") == {(str(active_reservation(other).pk), "", "cml-eu-01")}


def test_a_spread_session_divides_a_new_requirement(configure_pool, run):
    fleet = configure_pool(cpu_cores=3)
    fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    found = run(requirements=[{"session": str(session.pk), "resources": {"cpu_cores": "3"}}])
    assert (found["placed_before"], found["placed_after"]) == (0, 1)


def test_another_scheduler_places_elsewhere(fleet, new_session, lab_on_first, run):
    claim = str(active_reservation(new_session()).pk)
    spread = DEFAULT_CONFIGURATION.replace("- name: binpack", "- name: spread")
    assert moves(run(scheduler=spread), "moved") == {(claim, "cml-eu-01", "cml-eu-02")}


@pytest.fixture
def lab_on_first(fleet, new_session):
    fleet.assign(new_session(), fleet.slot())
    fleet.slot()


def test_another_weight_is_another_answer(fleet, new_session, lab_on_first, run):
    both = DEFAULT_CONFIGURATION + "  - name: spread\n    arguments: {weight: 10}\n"
    claim = str(active_reservation(new_session()).pk)
    assert moves(run(scheduler=both), "moved") == {(claim, "cml-eu-01", "cml-eu-02")}


def test_actions_that_would_stop_others(configure_pool, run):
    fleet = configure_pool(max_slots=1)
    slot = fleet.slot()
    many = SessionRequester(fleet, "many", make_definition(pool="cml-eu", preemptible=True))
    for _ in range(4):
        many.request_on(slot)
    SessionRequester(fleet, "few", make_definition(pool="cml-eu")).request()
    found = run(scheduler=RECLAIM)
    assert (found["evicted_before"], found["evicted_after"]) == (0, 1)
    assert found["newly_placed"][0]["after"] == "cml-eu-01, after evictions"


def test_nothing_is_written(fleet, new_session, run):
    slot = fleet.slot()
    new_session()
    models = (Reservation, Slot, Decision, QueueOrder, TickRun)
    before = [list(model.objects.order_by("pk").values()) for model in models]
    run(drain=[str(slot.pk)], add_slots=3, scheduler=RECLAIM)
    assert [list(model.objects.order_by("pk").values()) for model in models] == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"drain": ["00000000-0000-0000-0000-000000000000"]}, "drain"),
        ({"add_slots": -1}, "add_slots"),
        ({"add_slots": 10_000}, "add_slots"),
        ({"scheduler": "plugins: []"}, "scheduler"),
        ({"requirements": [{"resources": {"gpu": "1"}}]}, "requirements"),
        ({"requirements": [{"resources": {"rum": "1"}}]}, "requirements"),
        ({"slots": 1}, "slots"),
    ],
)
def test_wrong_input_is_refused(body, field, run):
    assert any(name.startswith(field) for name in run(status=400, **body)["details"])
