"""Dry runs in the API: affected sessions, and no changes."""

import pytest

from scheduling.models import Decision, QueueOrder, Reservation, Slot, TickRun
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from tests.support.factories import make_definition
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import RECLAIM, SessionRequester


@pytest.fixture
def dry_run(api, operator, fleet):
    """`dry_run(…)`: the response of a dry run of the pool."""

    def post(status=200, **body):
        response = api(operator).post(f"/api/pools/{fleet.pool.pk}/dry-run", body, format="json")
        assert response.status_code == status, response.json()
        return response.json()

    return post


def moved_reservations(result, kind):
    return {(each["reservation"], each["before"], each["after"]) for each in result[kind]}


def test_a_dry_run_without_changes_reports_no_moves(fleet, new_session, dry_run):
    fleet.slot()
    new_session()
    result = dry_run()
    assert (result["waiting"], result["placed_before"], result["placed_after"]) == (1, 1, 1)
    assert result["newly_placed"] == result["no_longer_placed"] == result["moved"] == []


def test_draining_a_slot_shows_the_sessions_that_lose_their_place(fleet, new_session, dry_run):
    first, second = fleet.slot(), fleet.slot(cpu_cores=4)
    reservations = [str(active_reservation(new_session()).pk) for _ in range(2)]
    result = dry_run(drain=[str(first.pk)])
    assert (result["placed_before"], result["placed_after"]) == (2, 1)
    displaced = [each for each in result["no_longer_placed"] if each["before"]]
    assert {each["reservation"] for each in displaced} < set(reservations)
    assert all("CPU" in each["reason"] for each in displaced)
    second.refresh_from_db()
    assert second.state == "READY"


def test_draining_a_slot_shows_the_new_slot_of_moved_sessions(fleet, new_session, dry_run):
    first = fleet.slot()
    fleet.slot()
    reservation = str(active_reservation(new_session()).pk)
    assert moved_reservations(dry_run(drain=[str(first.pk)]), "moved") == {
        (reservation, "cml-eu-01", "cml-eu-02")
    }


def test_added_slots_hold_more_sessions(fleet, new_session, dry_run):
    reservations = {str(active_reservation(new_session()).pk) for _ in range(5)}
    result = dry_run(add_slots=2)
    assert (result["placed_before"], result["placed_after"]) == (0, 5)
    assert {each["reservation"] for each in result["newly_placed"]} == reservations
    assert {each["after"] for each in result["newly_placed"]} == {"new slot 1", "new slot 2"}


def test_a_changed_requirement_of_a_definition_is_applied(fleet, new_session, active_definition, dry_run):
    fleet.slot(cpu_cores=6)
    for _ in range(3):
        new_session()
    smaller = {"definition": str(active_definition.pk), "resources": {"cpu_cores": "2"}}
    result = dry_run(requirements=[smaller])
    assert (result["placed_before"], result["placed_after"]) == (1, 3)


def test_a_changed_requirement_of_one_session_is_applied(fleet, new_session, dry_run):
    fleet.slot(cpu_cores=6)
    session, other = new_session(priority=90), new_session()
    larger = {"session": str(session.pk), "resources": {"cpu_cores": "7"}}
    result = dry_run(requirements=[larger])
    assert moved_reservations(result, "no_longer_placed") == {
        (str(active_reservation(session).pk), "cml-eu-01", "")
    }
    assert moved_reservations(result, "newly_placed") == {
        (str(active_reservation(other).pk), "", "cml-eu-01")
    }


def test_a_spread_session_divides_a_new_requirement(configure_pool, dry_run):
    fleet = configure_pool(cpu_cores=3)
    fleet.slot()
    session = SessionRequester(fleet, "apart", make_definition(pool="cml-eu", placement="spread")).request()
    result = dry_run(requirements=[{"session": str(session.pk), "resources": {"cpu_cores": "3"}}])
    assert (result["placed_before"], result["placed_after"]) == (0, 1)


def test_another_scheduler_moves_sessions(fleet, new_session, session_on_first_slot, dry_run):
    reservation = str(active_reservation(new_session()).pk)
    spread = DEFAULT_CONFIGURATION.replace("- name: binpack", "- name: spread")
    assert moved_reservations(dry_run(scheduler=spread), "moved") == {(reservation, "cml-eu-01", "cml-eu-02")}


@pytest.fixture
def session_on_first_slot(fleet, new_session):
    fleet.assign(new_session(), fleet.slot())
    fleet.slot()


def test_another_plugin_weight_moves_sessions(fleet, new_session, session_on_first_slot, dry_run):
    configuration = DEFAULT_CONFIGURATION + "  - name: spread\n    arguments: {weight: 10}\n"
    reservation = str(active_reservation(new_session()).pk)
    assert moved_reservations(dry_run(scheduler=configuration), "moved") == {
        (reservation, "cml-eu-01", "cml-eu-02")
    }


def test_reclaim_shows_the_sessions_that_it_would_evict(configure_pool, dry_run):
    fleet = configure_pool(max_slots=1)
    slot = fleet.slot()
    many = SessionRequester(fleet, "many", make_definition(pool="cml-eu", preemptible=True))
    for _ in range(4):
        many.request_on(slot)
    SessionRequester(fleet, "few", make_definition(pool="cml-eu")).request()
    result = dry_run(scheduler=RECLAIM)
    assert (result["evicted_before"], result["evicted_after"]) == (0, 1)
    assert result["newly_placed"][0]["after"] == "cml-eu-01, after evictions"


def test_a_dry_run_writes_nothing(fleet, new_session, dry_run):
    slot = fleet.slot()
    new_session()
    models = (Reservation, Slot, Decision, QueueOrder, TickRun)
    before = [list(model.objects.order_by("pk").values()) for model in models]
    dry_run(drain=[str(slot.pk)], add_slots=3, scheduler=RECLAIM)
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
def test_invalid_input_is_rejected(body, field, dry_run):
    assert any(name.startswith(field) for name in dry_run(status=400, **body)["details"])
