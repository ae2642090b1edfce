"""Observations API: permissions, responses and errors."""

import json
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, DefinitionRevision, LabletSession
from lcm.services.definitions import revise_definition
from lcm.services.session_transitions import transition_session
from observations.models import DriftReview, SessionObservation
from scheduling.models import PortAllocation
from tests.support.observed_labs import make_past_session, on_slot, post, seen

JSON = "application/json"


@pytest.fixture
def observations_path(collecting):
    return f"/api/internal/lablet-sessions/{collecting.pk}/resource-observations"


@pytest.fixture
def known(active_definition, observed):
    observed(active_definition, 10, cpu="2.00", memory=3000, storage=6500)
    return active_definition


def test_a_controller_posts_an_observation_and_gets_the_result(
    api, controller, observations_path, collecting, now
):
    on_slot(collecting, ports={"r1_serial": 5041})
    response = api(controller).post(observations_path, seen(now, ports={"r1_serial": 5041, "r9_vnc": 6001}))
    assert response.status_code == 200
    assert response.json() == {
        "session_id": str(collecting.pk),
        "observation_count": 1,
        "port_drift_detected": True,
        "port_drift_open": True,
        "drift": [{"kind": "extra", "name": "r9_vnc", "allocated": None, "observed": 6001, "other": ""}],
        "observed_at": response.json()["observed_at"],
    }
    entry = ChangeLog.objects.get(event="observation.resources_observed")
    assert (entry.actor, str(entry.token_id)) == ("controller controller-eu", str(controller.token.pk))


def test_sessions_of_another_pool_are_not_found(api, other_controller, observations_path, collecting, now):
    logged = ChangeLog.objects.count()
    assert api(other_controller).post(observations_path, seen(now)).status_code == 404
    read = f"/api/lablet-sessions/{collecting.pk}/resource-observations"
    assert api(other_controller).get(read).status_code == 404
    assert (SessionObservation.objects.exists(), ChangeLog.objects.count()) == (False, logged)
    collecting.refresh_from_db()
    assert collecting.observation_count == 0


def test_people_cannot_post_observations(api, admin, observations_path, now):
    assert api(admin).post(observations_path, seen(now)).status_code == 403
    assert not SessionObservation.objects.exists()


@pytest.mark.parametrize(
    ("body", "status"),
    [({"nodes": [{}] * 10_000}, 422), ({"observed_at": "then"}, 422), ({"padding": "x" * 6_000_000}, 422)],
)
def test_an_invalid_observation_is_422_and_stores_nothing(
    body, status, api, controller, observations_path, now
):
    response = api(controller).post(observations_path, {**seen(now), **body})
    assert (response.status_code, response.json()["code"]) == (status, "unprocessable")
    assert not SessionObservation.objects.exists()


@pytest.mark.parametrize(
    "more",
    [
        '"x": 1e400',
        '"simulation_stats": {"n0": {"cpu_usage": -1e400}}',
        '"x": 1e-20000',
        f'"x": 1.{"0" * 20_000}',
        '"x": NaN',
        '"used_cpu_cores": Infinity',
        '"x": "a\\u0000"',
        '"observer": "\\ud800"',
        f'"x": {"[" * 5_000}{"]" * 5_000}',
        f'"x": {"9" * 5_000}',
    ],
    ids=lambda more: more[:24],
)
def test_json_that_cannot_be_stored_is_400_and_stores_nothing(more, api, controller, observations_path, now):
    response = api(controller).generic(
        "POST", observations_path, with_more(seen(now), more), content_type=JSON
    )
    assert response.status_code == 400
    assert response.json()["message"]
    assert not SessionObservation.objects.exists()


@pytest.mark.parametrize("first", ['"a\\u0000b"', '"\\ud800"', "[]"])
def test_the_last_value_of_a_duplicate_key_is_stored(first, api, controller, observations_path, now):
    body = with_more(seen(now), f'"observer": {first}, "observer": "manual"')
    assert api(controller).generic("POST", observations_path, body, content_type=JSON).status_code == 200
    assert SessionObservation.objects.get().observed_resources["observer"] == "manual"


def test_an_unknown_charset_is_400(api, controller, observations_path, now):
    response = api(controller).generic(
        "POST", observations_path, json.dumps(seen(now)), content_type=f"{JSON}; charset=base64"
    )
    assert (response.status_code, response.json()["code"]) == (400, "parse_error")


def with_more(body, more):
    """Return a body as JSON followed by text that no encoder would produce."""
    return f"{json.dumps(body)[:-1]}, {more}}}"


def test_an_observation_of_a_session_that_is_not_running_is_409(api, controller, session, now):
    response = api(controller).post(
        f"/api/internal/lablet-sessions/{session.pk}/resource-observations", seen(now)
    )
    assert (response.status_code, response.json()["details"]["status"]) == (409, "PENDING")


def test_a_repeated_post_counts_once_with_and_without_a_key(
    api, controller, observations_path, collecting, now
):
    client, body = api(controller), seen(now)
    first = client.post(observations_path, body, headers={"Idempotency-Key": "o-1"})
    again = client.post(observations_path, body, headers={"Idempotency-Key": "o-1"})
    plain = client.post(observations_path, body)
    assert first.json() == again.json() == plain.json()
    collecting.refresh_from_db()
    assert collecting.observation_count == 1


def test_the_evidence_of_a_session_can_be_read(api, viewer, collecting, now):
    path = f"/api/lablet-sessions/{collecting.pk}/resource-observations"
    assert api(viewer).get(path).json()["observed_resources"] is None
    post(collecting, seen(now), now)
    response = api(viewer).get(path).json()
    assert (response["counted"], response["peak"]["cpu_cores"]) == (True, {"allocated": 4.0, "used": 2.0})
    assert len(response["observed_resources"]["nodes"]) == 3


def test_a_session_shows_planned_and_observed_resources(api, viewer, collecting, now, as_operator):
    planned, found = {"r1_serial": 5041, "host_pat": 2022}, {"r1_serial": 5999, "r9_vnc": 6001}
    client, path = api(viewer), f"/api/lablet-sessions/{collecting.pk}/"
    names = ("observed_ports", "observed_resources", "observation_count", "observed_at")
    on_slot(collecting, ports=planned)
    before = client.get(path).json()
    assert [before[name] for name in names] == [None, None, 0, None]
    assert (before["allocated_ports"], before["port_drift_detected"]) == (planned, False)
    body = seen(now, ports={**found, "host_pat": 2022})
    post(collecting, body, now)
    shown = client.get(path).json()
    assert (shown["allocated_ports"], shown["observed_ports"]) == (planned, {**found, "host_pat": 2022})
    assert shown["observed_resources"]["nodes"] == body["nodes"]
    assert (shown["observation_count"], shown["observed_at"]) == (1, client.get(path).json()["observed_at"])
    assert (shown["port_drift_detected"], shown["port_drift_open"]) == (True, True)
    for status in (SessionStatus.STOPPING, SessionStatus.TERMINATED):
        session = LabletSession.objects.get(pk=collecting.pk)
        transition_session(session=session, to=status, actor=as_operator, now=now)
    ended = client.get(path).json()
    assert not PortAllocation.objects.exists()
    assert (ended["allocated_ports"], ended["observed_ports"]) == (planned, {**found, "host_pat": 2022})
    assert (ended["port_drift_detected"], ended["port_drift_open"]) == (True, False)
    SessionObservation.objects.update(observed_ports=None)
    assert client.get(path).json()["allocated_ports"] is None
    SessionObservation.objects.all().delete()
    assert client.get(path).json()["allocated_ports"] is None


def test_sessions_are_listed_by_drift(api, viewer, collecting, running, now):
    def listed(query):
        return [row["id"] for row in api(viewer).get(f"/api/lablet-sessions/?{query}").json()["results"]]

    on_slot(running, ports={})
    post(running, seen(now - timedelta(minutes=1), ports={"r9_vnc": 6001}), now)
    assert listed("drift=true") == listed("drift_open=true") == [str(running.pk)]
    post(running, seen(now, ports={}), now)
    assert (listed("drift=true"), listed("drift_open=true")) == ([str(running.pk)], [])
    assert set(listed("drift_open=false")) == {str(running.pk), str(collecting.pk)}
    people = api(viewer)
    assert "Past drift" in people.get("/sessions/?drift=true").content.decode()
    assert "Past drift" not in people.get("/sessions/?drift_open=true").content.decode()


def test_an_operator_requests_an_observation(api, operator, viewer, running, session):
    path = f"/api/lablet-sessions/{running.pk}/observe-resources"
    assert api(viewer).get(path).status_code == 404
    first, again = api(operator).post(path), api(operator).post(path)
    assert (first.status_code, first.json()["state"]) == (202, "open")
    assert again.json()["id"] == first.json()["id"]
    assert api(viewer).get(path).json()["actor"] == "otto"
    pending = api(operator).post(f"/api/lablet-sessions/{session.pk}/observe-resources")
    assert (pending.status_code, pending.json()["code"]) == (409, "state_conflict")


def test_an_uncompleted_request_is_shown_as_timed_out(api, operator, viewer, running, time_machine):
    path = f"/api/lablet-sessions/{running.pk}/observe-resources"
    first = api(operator).post(path).json()
    time_machine.move_to(datetime.fromisoformat(first["expires_at"]) - timedelta(seconds=1), tick=False)
    assert api(viewer).get(path).json()["state"] == "open"
    time_machine.move_to(datetime.fromisoformat(first["expires_at"]), tick=False)
    assert api(viewer).get(path).json() == {**first, "state": "timed_out"}
    again = api(operator).post(path)
    assert (again.status_code, again.json()["state"]) == (202, "open")
    assert again.json()["id"] != first["id"]


def test_the_aggregate_of_a_definition_is_returned(api, viewer, known):
    response = api(viewer).get(f"/api/lablet-definitions/{known.pk}/resource-observations?by=node").json()
    assert (response["n"], response["class"], response["confidence"]) == (10, "over_provisioned", "medium")
    cpu = response["resources"]["cpu_cores"]
    assert (cpu["source"], cpu["max"], cpu["p95"]) == ("used", "2.00", "2.00")
    assert cpu["recommended"] == {
        "value": "2.50",
        "derivation": "decayed p95 2 used × 1.15 = 2.3, rounded up to 2.5 cores",
    }
    assert [node["label"] for node in response["nodes"]] == ["r1", "r2", "r3"]
    assert response["nodes"][0]["sessions"] == 10
    assert response["maximum_by_node"]["memory_gb"] == "2.93"


def test_the_aggregate_is_returned_for_another_source(api, viewer, known):
    path = f"/api/lablet-definitions/{known.pk}/resource-observations"
    held = api(viewer).get(f"{path}?cpu_cores=allocated").json()["resources"]["cpu_cores"]
    assert (held["source"], held["max"]) == ("allocated", "4.00")


def test_the_aggregate_of_a_revision_covers_its_sessions_only(
    api, viewer, known, observed, project, operator, as_admin, now
):
    revise_definition(
        definition=known,
        requirements={"cpu_cores": Decimal(3)},
        based_on=1,
        reason="less",
        actor=as_admin,
        now=now,
    )
    observed(known, 6, cpu="1.00", memory=1000, storage=6500)
    [odd] = observed(known, 1, cpu="1.00", memory=2000, storage=6500)
    short = make_past_session(known, project, operator, ended=now, length=timedelta(minutes=5))
    post(short, seen(now), now)
    path = f"/api/lablet-definitions/{known.pk}/resource-observations?by=node"
    first, second = (api(viewer).get(f"{path}&revision={number}").json() for number in (1, 2))
    assert (first["revision"], first["n"], first["resources"]["memory_gb"]["max"]) == (1, 10, "2.93")
    assert (second["revision"], second["n"], second["resources"]["memory_gb"]["max"]) == (2, 7, "1.96")
    assert [node["sessions"] for node in first["nodes"]] == [10, 10, 10]
    assert [(node["sessions"], node["max"]["memory_gb"]) for node in second["nodes"]] == [(7, "0.66")] * 3
    assert second["maximum_by_node"]["session"] == str(odd.pk)
    assert ([each["session"] for each in second["outliers"]], first["outliers"]) == ([str(odd.pk)], [])
    assert ([each["session"] for each in second["not_counted"]], first["not_counted"]) == (
        [str(short.pk)],
        [],
    )
    assert api(viewer).get(path).json()["n"] == 17


@pytest.mark.parametrize("number", [0, 2, 99])
def test_an_unknown_revision_is_404(number, api, viewer, known):
    response = api(viewer).get(f"/api/lablet-definitions/{known.pk}/resource-observations?revision={number}")
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
    assert response.json()["message"] == f"{known} has no revision {number}."


def test_unmeasured_waste_is_null(api, viewer, active_definition, observed):
    path = f"/api/lablet-definitions/{active_definition.pk}/resource-observations"
    observed(active_definition, 2, cpu="1.00", memory=None)
    waste = {"core_hours": "6.00", "gb_hours": None, "days": 30}
    source = {"core_hours": "used", "gb_hours": "allocated"}
    assert api(viewer).get(path).json()["waste"] == {**waste, "source": source}


def test_confidence_depends_on_the_day_of_the_request(api, viewer, known, now, time_machine):
    path = f"/api/lablet-definitions/{known.pk}/resource-observations"
    assert api(viewer).get(path).json()["confidence"] == "medium"
    time_machine.move_to(now + timedelta(days=90))
    assert api(viewer).get(path).json()["confidence"] == "low"


@pytest.mark.parametrize("query", ["revision=two", "revision=", "by=user", "cpu_cores=guessed", "page=2"])
def test_invalid_parameters_are_rejected(query, api, viewer, known):
    response = api(viewer).get(f"/api/lablet-definitions/{known.pk}/resource-observations?{query}")
    assert (response.status_code, list(response.json()["details"])) == (400, [query.split("=")[0]])


def test_preview_then_apply_then_revert(api, admin, known):
    path = f"/api/lablet-definitions/{known.pk}"
    choices = {"cpu_cores": {"basis": "recommended"}, "memory_gb": {"basis": "custom", "value": "3.25"}}
    preview = api(admin).post(f"{path}/preview", {"choices": choices}).json()
    assert (preview["resources"]["cpu_cores"]["after"], preview["resources"]["memory_gb"]["after"]) == (
        "2.50",
        "3.25",
    )
    assert (preview["risk"], preview["resources"]["cpu_cores"]["upper_bound"]) == ("medium", 0.2589)
    assert DefinitionRevision.objects.count() == 1
    body = {"choices": choices, "reason": "ten sessions", "token": preview["token"]}
    response = api(admin).post(f"{path}/apply", body)
    assert (response.status_code, response.json()["number"]) == (201, 2)
    back = api(admin).post(f"{path}/revisions/1/revert", {"based_on": 2, "reason": "no"})
    assert (back.status_code, back.json()["number"]) == (201, 3)


def test_a_stale_preview_is_412_with_what_changed(api, admin, known, observed):
    path = f"/api/lablet-definitions/{known.pk}"
    choices = {"cpu_cores": {"basis": "recommended"}}
    token = api(admin).post(f"{path}/preview", {"choices": choices}).json()["token"]
    observed(known, 1, cpu="3.00", memory=3000, storage=6500)
    response = api(admin).post(f"{path}/apply", {"choices": choices, "reason": "x", "token": token})
    assert (response.status_code, response.json()["code"]) == (412, "stale_preview")
    assert response.json()["details"]["changed"][0] == "CPU: the proposal was 2.5 cores and is now 3.5 cores."
    assert DefinitionRevision.objects.count() == 1


@pytest.mark.parametrize("action", ["preview", "apply"])
def test_an_unmeasured_resource_is_rejected(action, api, admin, known):
    choices = {"cpu_cores": {"basis": "max"}, "gpu": {"basis": "max"}}
    body = {"choices": choices, "token": "x", "reason": "x"}
    response = api(admin).post(f"/api/lablet-definitions/{known.pk}/{action}", body)
    assert (response.status_code, list(response.json()["details"]["choices"])) == (400, ["gpu"])
    assert DefinitionRevision.objects.count() == 1


def test_a_viewer_previews_and_cannot_apply(api, viewer, known):
    path = f"/api/lablet-definitions/{known.pk}"
    choices = {"cpu_cores": {"basis": "recommended"}}
    preview = api(viewer).post(f"{path}/preview", {"choices": choices})
    assert preview.status_code == 200
    body = {"choices": choices, "reason": "x", "token": preview.json()["token"]}
    assert api(viewer).post(f"{path}/apply", body).status_code == 403
    assert DefinitionRevision.objects.count() == 1


def test_a_review_is_snoozed_and_dismissed(api, admin, known, now):
    path = f"/api/lablet-definitions/{known.pk}/review"
    until = (now + timedelta(days=7)).isoformat()
    assert api(admin).post(f"{path}/snooze", {"until": until, "reason": "exams"}).json()["snoozed_until"]
    known.refresh_from_db()
    assert not known.needs_review
    response = api(admin).post(f"{path}/dismiss", {"reason": "as it should be"}).json()
    assert (response["snoozed_until"], response["dismissed"]) == (None, True)


def test_sessions_are_excluded_and_included_again(api, admin, viewer, collecting, now):
    post(collecting, seen(now), now)
    path = f"/api/lablet-sessions/{collecting.pk}/resource-observations"
    assert api(viewer).post(f"{path}/exclude", {"reason": "odd"}).status_code == 403
    out = api(admin).post(f"{path}/exclude", {"reason": "odd"}).json()
    assert (out["counted"], out["not_counted_reason"]) == (False, "excluded")
    assert api(admin).post(f"{path}/exclude", {"reason": "odd"}).status_code == 409
    assert api(admin).post(f"{path}/include").status_code == 400
    assert api(admin).post(f"{path}/include", {"reason": "right"}).json()["counted"] is True


def test_definitions_are_listed_by_class(api, viewer, known, definition):
    def names(query):
        rows = api(viewer).get(f"/api/lablet-definitions/?{query}").json()["results"]
        return [row["name"] for row in rows]

    assert names("class=over_provisioned") == ["campus"]
    assert names("class=not_enough_data") == ["branch-office"]
    assert names("observed=24h") == ["campus"]


def test_drift_is_listed_acknowledged_and_reopened(api, operator, viewer, running, now):
    on_slot(running, ports={})
    post(running, seen(now, ports={"r9_vnc": 6001}), now)
    [row] = api(viewer).get("/api/port-drift/?state=open").json()["results"]
    assert (row["name"], row["kind"], row["state"]) == ("r9_vnc", "extra", "open")
    path = f"/api/port-drift/{row['id']}"
    assert api(viewer).post(f"{path}/acknowledge", {"reason": "known"}).status_code == 403
    assert api(operator).post(f"{path}/acknowledge", {"reason": "known"}).json()["state"] == "acknowledged"
    assert api(viewer).get("/api/port-drift/?state=open").json()["results"] == []
    DriftReview.objects.update(acknowledged_until=now - timedelta(days=1))
    assert api(viewer).get(path).json()["state"] == "open"
    assert len(api(viewer).get("/api/port-drift/?state=open").json()["results"]) == 1
    assert api(operator).post(f"{path}/reopen").status_code == 400
    assert api(operator).post(f"{path}/reopen", {"reason": "it grew"}).json()["state"] == "open"


def test_a_session_is_observed_with_the_api_calls_of_a_controller(
    api, controller, active_definition, project, operator, now
):
    session = make_past_session(active_definition, project, operator, ended=now, until=SessionStatus.RUNNING)
    path = f"/api/internal/lablet-sessions/{session.pk}"
    client = api(controller)
    assert client.post(f"{path}/resource-observations", seen(now)).json()["observation_count"] == 1
    client.post(f"{path}/transitions", {"to_status": "COLLECTING"})
    later = now + timedelta(seconds=1)
    assert client.post(f"{path}/resource-observations", seen(later)).json()["observation_count"] == 2
