"""Controllers and labs survive a restart of the simulator."""

import httpx
import pytest

from lcm.cml.simulator import SimulatorApp
from lcm.cml.simulator.state_file import StateFile
from tests.support.cml_environment import run
from tests.support.factories import LAB


@pytest.fixture
def restart(tmp_path):
    """`restart()` returns a simulator on the same file as the previous one."""
    return lambda: SimulatorApp(state_file=StateFile(tmp_path / "simulator.json"))


def send(app, *calls):
    """Return the responses to calls of one user at w1."""

    async def exchange():
        base = "http://sim/w1/api/v0"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base) as client:
            login = {"username": "admin", "password": "simulated"}
            token = (await client.post("/authenticate", json=login)).json()
            client.headers["Authorization"] = f"Bearer {token}"
            return [await client.request(method, path, **options) for method, path, options in calls]

    return run(exchange())


def launch(app):
    async def exchange():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sim") as client:
            options = {"boot_seconds": 0, "queue_seconds": 0, "starting_seconds": 0, "stop_seconds": 0}
            await client.put("/simulator/controllers/w1", json=options)

    run(exchange())


def test_a_running_lab_keeps_running(restart):
    app = restart()
    launch(app)
    (imported,) = send(app, ("POST", "/import", {"params": {"title": "mine"}, "content": LAB}))
    lab = f"/labs/{imported.json()['id']}"
    reads = [
        ("GET", f"{lab}/{path}", {"params": {"data": "true"}})
        for path in ("state", "check_if_converged", "nodes", "interfaces", "topology")
    ]
    _, *before = send(app, ("PUT", f"{lab}/start", {}), *reads)
    after = send(restart(), *reads)
    assert [each.json() for each in after] == [each.json() for each in before]
    assert after[0].json() == "STARTED"


def test_deleted_labs_stay_deleted_and_ids_are_not_reused(restart):
    app = restart()
    launch(app)
    (imported,) = send(app, ("POST", "/import", {"content": LAB}))
    lab = f"/labs/{imported.json()['id']}"
    send(app, ("DELETE", lab, {}))
    labs, second_import = send(restart(), ("GET", "/labs", {}), ("POST", "/import", {"content": LAB}))
    assert labs.json() == []
    assert second_import.json()["id"] != imported.json()["id"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name": "w1"}]'])
def test_with_an_unreadable_file_the_simulator_starts_empty(restart, tmp_path, text):
    (tmp_path / "simulator.json").write_text(text)
    app = restart()
    assert app.controllers == {}
    launch(app)
    assert list(restart().controllers) == ["w1"]


def test_the_file_is_private(restart, tmp_path):
    launch(restart())
    assert (tmp_path / "simulator.json").stat().st_mode & 0o777 == 0o600
