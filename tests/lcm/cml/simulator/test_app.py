"""The ASGI application: routing to controllers, and limits."""

import httpx
import pytest

from lcm.cml.simulator import ControllerOptions, SimulatedController, SimulatorApp
from lcm.cml.simulator.app import MAX_BODY
from tests.support.cml_environment import run


@pytest.fixture
def app():
    return SimulatorApp(SimulatedController(), SimulatedController("w1", ControllerOptions(version="2.9")))


def send(app, method, path, **options):
    async def exchange():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://sim") as client:
            return await client.request(method, path, **options)

    return run(exchange())


@pytest.mark.parametrize(
    ("path", "version"),
    [("/api/v0/system_information", "2.10"), ("/w1/api/v0/system_information", "2.9")],
)
def test_the_path_prefix_selects_the_controller(app, path, version):
    assert send(app, "GET", path).json()["version"].startswith(f"{version}.")


@pytest.mark.parametrize("path", ["/", "/w2/api/v0/labs", "/w1", "/w1/labs", "/simulator/nothing"])
def test_a_path_without_a_controller_is_404(app, path):
    response = send(app, "GET", path)
    assert (response.status_code, response.json()["code"]) == (404, 404)


def test_an_oversized_body_is_rejected(app):
    assert send(app, "POST", "/api/v0/import", content=b"x" * (MAX_BODY + 1)).status_code == 413


def test_log_in_with_invalid_json_is_400(app):
    assert send(app, "POST", "/api/v0/authenticate", content=b"{").status_code == 400


def test_controllers_are_added_and_removed(app):
    first = app.add("w2", ControllerOptions(seed=9))
    assert app.add("w2") is first
    assert (app.remove("w2"), app.remove("w2")) == (True, False)


def test_the_administration_over_asgi(app):
    created = send(app, "PUT", "/simulator/controllers/w3", json={"seed": 3})
    assert (created.status_code, created.json()["path"]) == (201, "/w3")
    assert send(app, "PUT", "/simulator/controllers/w3").status_code == 200
    names = [each["name"] for each in send(app, "GET", "/simulator/controllers").json()]
    assert names == ["", "w1", "w3"]
    assert send(app, "GET", "/simulator/controllers/w3").json()["options"]["seed"] == 3
    assert send(app, "PUT", "/simulator/controllers/w4", content=b"{").status_code == 400
    assert send(app, "DELETE", "/simulator/controllers/w3").status_code == 204
    assert send(app, "DELETE", "/simulator/controllers/w3").status_code == 404
