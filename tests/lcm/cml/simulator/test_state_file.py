"""Controllers and labs survive a restart of the simulator."""

import httpx
import pytest

from lcm.cml.simulator import SimulatorApp
from lcm.cml.simulator.state_file import StateFile
from tests.support.cml_environment import run
from tests.support.factories import LAB


@pytest.fixture
def restarted(tmp_path):
    """`restarted()` returns a simulator on the same file as the previous one."""
    return lambda: SimulatorApp(keeper=StateFile(tmp_path / "simulator.json"))


def ask(app, *calls):
    """Return the responses to calls of one user at w1."""

    async def go():
        base = "http://sim/w1/api/v0"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base) as client:
            login = {"username": "admin", "password": "simulated"}
            token = (await client.post("/authenticate", json=login)).json()
            client.headers["Authorization"] = f"Bearer {token}"
            return [await client.request(method, path, **more) for method, path, more in calls]

    return run(go())


def launch(app):
    async def go():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://sim") as client:
            options = {"boot_seconds": 0, "queue_seconds": 0, "starting_seconds": 0, "stop_seconds": 0}
            await client.put("/simulator/controllers/w1", json=options)

    run(go())


def test_a_running_lab_keeps_running(restarted):
    app = restarted()
    launch(app)
    (made,) = ask(app, ("POST", "/import", {"params": {"title": "mine"}, "content": LAB}))
    lab = f"/labs/{made.json()['id']}"
    reads = [
        ("GET", f"{lab}/{path}", {"params": {"data": "true"}})
        for path in ("state", "check_if_converged", "nodes", "interfaces", "topology")
    ]
    _, *before = ask(app, ("PUT", f"{lab}/start", {}), *reads)
    after = ask(restarted(), *reads)
    assert [each.json() for each in after] == [each.json() for each in before]
    assert after[0].json() == "STARTED"


def test_deleted_labs_stay_deleted_and_ids_are_not_reused(restarted):
    app = restarted()
    launch(app)
    (made,) = ask(app, ("POST", "/import", {"content": LAB}))
    lab = f"/labs/{made.json()['id']}"
    ask(app, ("DELETE", lab, {}))
    labs, again = ask(restarted(), ("GET", "/labs", {}), ("POST", "/import", {"content": LAB}))
    assert labs.json() == []
    assert again.json()["id"] != made.json()["id"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name": "w1"}]'])
def test_with_an_unreadable_file_the_simulator_starts_empty(restarted, tmp_path, text):
    (tmp_path / "simulator.json").write_text(text)
    app = restarted()
    assert app.controllers == {}
    launch(app)
    assert list(restarted().controllers) == ["w1"]


def test_the_file_is_private(restarted, tmp_path):
    launch(restarted())
    assert (tmp_path / "simulator.json").stat().st_mode & 0o777 == 0o600
