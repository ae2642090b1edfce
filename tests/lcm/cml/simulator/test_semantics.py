"""API semantics of CML: effects and rejections."""

import json
from pathlib import Path

import pytest

from lcm.cml.simulator.calls import respond
from lcm.cml.simulator.http_messages import Request
from lcm.cml.simulator.routing import ROUTES
from tests.support.cml_environment import TWO_ROUTERS, SimulatorClock, make_simulator, many_nodes
from tests.support.simulator_client import SimulatorClient, error

TOPOLOGIES = sorted(Path("lcm/demo/topologies").glob("*.yaml"))
NO_LAB = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def clock():
    return SimulatorClock()


@pytest.fixture
def controller(clock):
    return make_simulator(clock, users={"admin": "simulated", "teacher": "secret", "pupil": "secret"})


@pytest.fixture
def client(controller):
    return SimulatorClient(controller)


@pytest.mark.parametrize("path", TOPOLOGIES, ids=lambda path: path.stem)
def test_real_topologies_are_imported_completely(client, path):
    lab = client.import_lab(path.read_text(), title=path.stem)
    details = client.get(f"/labs/{lab}")
    topology = client.get(f"/labs/{lab}/topology")
    assert (details["lab_title"], details["state"]) == (path.stem, "DEFINED_ON_CORE")
    assert details["node_count"] == len(topology["nodes"]) > 0
    assert details["link_count"] == len(topology["links"])


def test_the_default_title_is_that_of_the_topology(client):
    assert client.get(f"/labs/{client.import_lab(TWO_ROUTERS, title='')}")["lab_title"] == "Two routers"


def test_an_invalid_topology_is_rejected_with_reasons(client, controller):
    status, description = error(client("POST", "/import", "nodes: [{id: n0}]"))
    assert status == 400
    assert "label is missing" in description
    assert controller.labs == {}


def test_two_imports_create_two_labs_with_different_ids(client):
    first, second = client.import_lab(TWO_ROUTERS), client.import_lab(TWO_ROUTERS)
    ids = [{node["id"] for node in client.get(f"/labs/{lab}/topology")["nodes"]} for lab in (first, second)]
    assert not ids[0] & ids[1]


def test_state_and_convergence_are_bare_json_and_actions_have_no_body(client):
    lab = client.import_lab(TWO_ROUTERS)
    assert client("GET", f"/labs/{lab}/state").body == b'"DEFINED_ON_CORE"'
    assert client("GET", f"/labs/{lab}/check_if_converged").body == b"true"
    for method, path in [("PUT", "start"), ("PUT", "stop"), ("PUT", "wipe")]:
        reply = client(method, f"/labs/{lab}/{path}")
        assert (reply.status, reply.body) == (204, b"")
    reply = client("DELETE", f"/labs/{lab}")
    assert (reply.status, reply.body) == (204, b"")


@pytest.mark.parametrize(
    ("actions", "method", "path", "refusal"),
    [
        (["start"], "PUT", "/wipe", "Lab is not stopped"),
        (["start"], "DELETE", "", "Lab is not stopped"),
        (["start", "stop"], "DELETE", "", "Lab is not wiped"),
        (["start", "stop", "wipe"], "DELETE", "", None),
        ([], "DELETE", "", None),
        ([], "PUT", "/wipe", None),
        ([], "PUT", "/stop", None),
    ],
)
def test_wipe_and_delete_require_the_right_state(client, actions, method, path, refusal):
    lab = client.import_lab(TWO_ROUTERS)
    for action in actions:
        assert client("PUT", f"/labs/{lab}/{action}").status == 204
    reply = client(method, f"/labs/{lab}{path}")
    if refusal is None:
        assert reply.status == 204
    else:
        status, description = error(reply)
        assert (status, refusal in description) == (400, True)


def route_id(route):
    return f"{route.method} {route.pattern.pattern}"


@pytest.mark.parametrize("route", [each for each in ROUTES if "lab" in each.pattern.groupindex], ids=route_id)
def test_a_missing_lab_is_named_in_the_404(client, route):
    ids = {"lab": NO_LAB, "node": "n", "link": "l", "interface": "i"}
    path = route.pattern.pattern
    for name, value in ids.items():
        path = path.replace(f"(?P<{name}>[^/]+)", value)
    assert error(client(route.method, path, b"{}")) == (404, f"Lab not found: {NO_LAB}")


def test_unknown_paths_and_trailing_slashes_are_404_and_not_redirected(client):
    assert client("GET", "/labs/").status == 404
    assert client("GET", "/nothing").status == 404
    assert error(client("POST", "/labs"))[0] == 405


@pytest.mark.parametrize("route", ROUTES, ids=route_id)
def test_every_call_except_open_ones_needs_a_token(controller, route):
    path = route.pattern.pattern.replace("(?P<", "").replace(">[^/]+)", "")
    reply = respond(controller, Request(route.method, path, body=b"{}"))
    if route.is_open:
        assert reply.status != 401
    else:
        assert error(reply) == (
            401,
            "Not authenticated: 401 Unauthorized: No authorization token provided.",
        )


@pytest.mark.parametrize(
    "credentials",
    [{"username": "admin", "password": "x"}, {"username": "unknown", "password": "simulated"}, {}, [], 7],
)
def test_wrong_credentials_are_403(controller, credentials):
    body = json.dumps(credentials).encode()
    assert error(respond(controller, Request("POST", "/authenticate", body=body))) == (
        403,
        "Authentication failed!",
    )


def test_a_token_expires(clock):
    controller = make_simulator(clock, token_seconds=60)
    client = SimulatorClient(controller)
    assert client.get("/labs") == []
    clock.advance(60)
    assert client("GET", "/labs").status == 401


def test_users_see_their_own_labs_and_administrators_all(controller, client):
    teacher, pupil = (
        SimulatorClient(controller, "teacher", "secret"),
        SimulatorClient(controller, "pupil", "secret"),
    )
    lab = teacher.import_lab(TWO_ROUTERS)
    assert (teacher.get("/labs"), pupil.get("/labs", show_all="true")) == ([lab], [])
    assert pupil("GET", f"/labs/{lab}").status == 404
    assert (client.get("/labs"), client.get("/labs", show_all="true")) == ([], [lab])
    assert client.get(f"/labs/{lab}")["owner_username"] == "teacher"


@pytest.mark.parametrize(
    ("limits", "resource"),
    [({"cpus": 2}, "CPUs"), ({"memory_mb": 1024}, "MB of memory"), ({"disk_gb": 10}, "GB of disk")],
)
def test_a_lab_that_does_not_fit_is_not_started(clock, limits, resource):
    client = SimulatorClient(make_simulator(clock, **limits))
    lab = client.import_lab(TWO_ROUTERS)
    status, description = error(client("PUT", f"/labs/{lab}/start"))
    assert (status, "Insufficient resources" in description, resource in description) == (400, True, True)
    assert client.get(f"/labs/{lab}/state") == "DEFINED_ON_CORE"


def test_a_stopped_lab_frees_its_resources(clock):
    client = SimulatorClient(make_simulator(clock, cpus=3))
    first, second = client.import_lab(TWO_ROUTERS), client.import_lab(TWO_ROUTERS)
    assert client("PUT", f"/labs/{first}/start").status == 204
    assert client("PUT", f"/labs/{first}/start").status == 204
    assert client("PUT", f"/labs/{second}/start").status == 400
    client("PUT", f"/labs/{first}/stop")
    assert client("PUT", f"/labs/{second}/start").status == 204


@pytest.mark.parametrize(("version", "status"), [("2.9", 405), ("2.10", 200)])
def test_only_the_newer_version_has_bulk_interfaces(version, status):
    client = SimulatorClient(make_simulator(version=version))
    lab = client.import_lab(TWO_ROUTERS)
    assert client("GET", f"/labs/{lab}/interfaces").status == status


def test_nodes_have_operational_values_only_while_running(client):
    lab = client.import_lab(TWO_ROUTERS)

    def node():
        nodes = client.get(
            f"/labs/{lab}/nodes", data="true", operational="true", exclude_configurations="true"
        )
        return next(node for node in nodes if node["label"] == "R1")

    assert node()["operational"] is None
    client("PUT", f"/labs/{lab}/start")
    running_node = node()
    assert (running_node["cpus"], running_node["ram"], running_node["cpu_limit"]) == (None, None, 50)
    assert {
        key: running_node["operational"][key] for key in ("cpus", "ram", "cpu_limit", "boot_disk_size")
    } == {
        "cpus": 1,
        "ram": 768,
        "cpu_limit": 50,
        "boot_disk_size": 2,
    }
    assert running_node["configuration"] == []
    assert client.get(f"/labs/{lab}/nodes") == [
        n["id"] for n in client.get(f"/labs/{lab}/nodes", data="true")
    ]


def test_an_external_connector_has_no_resources_and_no_usage(client):
    lab = client.import_lab(TWO_ROUTERS)
    client("PUT", f"/labs/{lab}/start")
    nodes = client.get(f"/labs/{lab}/nodes", data="true", operational="true")
    connector = next(node for node in nodes if node["label"] == "out")
    assert (connector["operational"]["cpus"], connector["operational"]["ram"]) == (0, 0)
    assert "cpu_usage" not in client.get(f"/labs/{lab}/simulation_stats")["nodes"][connector["id"]]


@pytest.mark.parametrize("body", [{"tags": "serial:1"}, {"tags": [1]}, {"ram": "much"}, [], {"cpus": 1.5}])
def test_an_invalid_update_of_a_node_changes_nothing(client, body):
    lab = client.import_lab(TWO_ROUTERS)
    node = client.get(f"/labs/{lab}/nodes")[0]
    assert error(client("PATCH", f"/labs/{lab}/nodes/{node}", body))[0] == 400
    assert client.get(f"/labs/{lab}/nodes/{node}")["tags"] == ["serial:5001", "pat:2022:22", "core"]


def test_nodes_are_added_and_removed(client):
    lab = client.import_lab(TWO_ROUTERS)
    body = {"label": "new", "node_definition": "alpine", "tags": ["vnc:5900"], "ram": 64}
    node = json.loads(client("POST", f"/labs/{lab}/nodes", body).body)["id"]
    assert client("PUT", f"/labs/{lab}/nodes/{node}/state/start").status == 204
    assert client.get(f"/labs/{lab}/nodes/{node}/state")["state"] == "BOOTED"
    assert client("DELETE", f"/labs/{lab}/nodes/{node}").status == 400
    client("PUT", f"/labs/{lab}/nodes/{node}/state/stop")
    client("PUT", f"/labs/{lab}/nodes/{node}/wipe_disks")
    assert client("DELETE", f"/labs/{lab}/nodes/{node}").status == 204
    assert len(client.get(f"/labs/{lab}/nodes")) == 3


def test_removing_a_node_removes_its_links(client):
    lab = client.import_lab(TWO_ROUTERS)
    client("DELETE", f"/labs/{lab}/nodes/{client.get(f'/labs/{lab}/nodes')[0]}")
    assert client.get(f"/labs/{lab}/topology")["links"] == []


def test_a_controller_that_is_not_ready_only_reports_that(clock):
    controller = make_simulator(clock, ready_after_seconds=30)
    client = SimulatorClient(controller)
    assert client.get("/system_information")["ready"] is False
    assert client("GET", "/labs").status == 502
    clock.advance(30)
    assert client.get("/system_information")["ready"] is True
    assert client.get("/labs") == []


def test_a_large_lab_is_returned_completely(client):
    lab = client.import_lab(many_nodes(300))
    client("PUT", f"/labs/{lab}/start")
    assert len(client.get(f"/labs/{lab}/nodes", data="true", operational="true")) == 300
