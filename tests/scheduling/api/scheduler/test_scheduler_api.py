"""A pool's scheduler, ticks, decisions and labels in the API."""

import pytest

from lcm.models import ChangeLog
from scheduling.models import Pool
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import FAILING

LIMITED = DEFAULT_CONFIGURATION.replace(
    "  - name: quota\n",
    '  - name: quota\n    arguments: {limits: {academy: {sessions: 9}, "academy / unused": {sessions: 1}}}\n',
)


@pytest.fixture
def change(api, admin, pool):
    def patch(**body):
        return api(admin).patch(f"/api/pools/{pool.pk}/", body, format="json")

    return patch


def test_a_scheduler_is_saved_and_logged(change, pool):
    text = DEFAULT_CONFIGURATION.replace("[allocate]", "[allocate, preempt]")
    response = change(scheduler=text, reason="exams")
    assert (response.status_code, response.json()["scheduler"], response.json()["warnings"]) == (
        200,
        text,
        [],
    )
    entry = ChangeLog.objects.filter(event="pool.edited").latest("at")
    assert (entry.before["scheduler"], entry.after["scheduler"], entry.reason) == ("", text, "exams")


def test_the_default_scheduler_is_stored_as_empty_text(change, pool):
    assert change(scheduler=DEFAULT_CONFIGURATION.replace("\n", "\r\n")).json()["scheduler"] == ""


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("actions: [allocate]\nplugins:\n  - resurces\n", ["Line 3: There is no plugin “resurces”; did"]),
        ("actions: [evict]\nplugins: []\n", ["Line 1: There is no action “evict”"]),
        (
            "actions: [allocate]\nplugins:\n  - name: binpack\n    arguments:\n      weigth: 2\n",
            ["Line 5: There is no argument “weigth”; did you mean “weight”?"],
        ),
        ("actions: [allocate]\nplugins:\n\t- x\n", ["Line 3: This is not YAML"]),
        (
            "actions: [allocate]\nplugins: [nothing,\n  unknown]\n",
            ["Line 2: There is no plugin “nothing”", "Line 3: There is no plugin “unknown”"],
        ),
    ],
)
def test_an_invalid_scheduler_is_rejected_with_its_line_and_nothing_is_stored(change, pool, text, problems):
    response = change(scheduler=text, max_slots=9)
    assert response.status_code == 400
    result = response.json()["details"]["scheduler"]
    assert all(sentence.startswith(start) for sentence, start in zip(result, problems, strict=True))
    pool.refresh_from_db()
    assert (pool.scheduler, pool.max_slots) == ("", 4)


def test_a_new_pool_with_an_invalid_scheduler_is_not_created(api, admin):
    response = api(admin).post("/api/pools/", {"name": "cml-x", "scheduler": "plugins: []"}, format="json")
    assert response.status_code == 400
    assert not Pool.objects.filter(name="cml-x").exists()


def test_limits_of_unknown_queues_return_a_warning(change, project):
    (warning,) = change(scheduler=LIMITED, reason="exams").json()["warnings"]
    assert warning == "There is no queue “academy / unused”: its limit has no effect."


def test_limits_of_people_return_no_warning(change, project, operator):
    text = LIMITED.replace("academy / unused", "academy / ccna/otto")
    assert change(scheduler=text, reason="exams").json()["warnings"] == []


def test_a_tick_shows_its_plugins_and_its_decisions(configure_pool, new_session, api, viewer):
    fleet = configure_pool(scheduler=FAILING)
    fleet.slot()
    reservation = active_reservation(new_session())
    fleet.tick_without_errors()
    client = api(viewer)
    (tick,) = client.get("/api/ticks/").json()["results"]
    assert "RuntimeError" in tick["plugins"]["failing_in_tests"]["error"]
    assert client.get(f"/api/ticks/{tick['id']}/").json() == tick
    (decision,) = client.get(f"/api/ticks/{tick['id']}/decisions").json()["results"]
    assert (decision["reservation"], decision["outcome"]) == (str(reservation.pk), "placed")
    assert decision["slot_name"] == "cml-eu-01"
    assert decision["scores"]["spot"] > 0


def test_decisions_are_filtered_by_reservation(configure_pool, new_session, api, viewer):
    fleet = configure_pool(max_slots=1)
    fleet.slot(cordoned=True)
    one, other = active_reservation(new_session()), active_reservation(new_session())
    fleet.tick_without_errors()
    (result,) = api(viewer).get(f"/api/decisions/?reservation={one.pk}").json()["results"]
    assert (result["reservation"], result["message"]) == (
        str(one.pk),
        "The only ready slot does not fit: cordoned.",
    )
    assert result["reasons"][0] == {
        "code": "cordon", "plugin": "cordon", "text": "cordoned", "slots": 1,
        "example_slots": ["cml-eu-01"],
    }  # fmt: skip
    assert len(api(viewer).get("/api/decisions/?outcome=waiting").json()["results"]) == 2
    assert api(viewer).get(f"/api/reservations/{other.pk}/").json()["verdict"] == "waiting:cordon"


def test_labels_are_replaced_with_a_reason(fleet, api, operator):
    slot = fleet.slot(labels={"rack": "a"})
    client = api(operator)
    body = {"labels": {"rack": "b", "gpu": "a10"}, "reason": "moved"}
    response = client.post(f"/api/slots/{slot.pk}/labels", body, format="json")
    assert (response.status_code, response.json()["labels"]) == (200, {"rack": "b", "gpu": "a10"})
    entry = ChangeLog.objects.get(event="slot.labelled")
    assert (entry.before["labels"], entry.reason) == ({"rack": "a"}, "moved")


@pytest.mark.parametrize(
    ("labels", "status"), [({"": "x"}, 400), ({"n" * 64: "x"}, 400), ({str(n): "x" for n in range(21)}, 400)]
)
def test_invalid_labels_are_rejected(fleet, api, operator, labels, status):
    slot = fleet.slot()
    body = {"labels": labels, "reason": "moved"}
    response = api(operator).post(f"/api/slots/{slot.pk}/labels", body, format="json")
    assert response.status_code == status
    slot.refresh_from_db()
    assert slot.labels == {}


def test_a_slot_without_a_worker_cannot_be_labelled(fleet, api, operator):
    slot = fleet.slot("EMPTY")
    body = {"labels": {"rack": "b"}, "reason": "moved"}
    assert api(operator).post(f"/api/slots/{slot.pk}/labels", body, format="json").status_code == 409
