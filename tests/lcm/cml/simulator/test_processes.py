"""The simulator as a process with many controllers, administered over HTTP."""

import os
import socket
import subprocess
import sys
import time

import httpx
import pytest

from lcm.cml.simulator import OptionError
from scheduling.capacity.runtimes.health import probe_cml
from tests.support.simulator import Fault, FaultKind, SimulatorProcess

pytestmark = pytest.mark.integration


@pytest.fixture
def worker(simulator):
    yield simulator.admin.add("worker-1", version="2.9", seed=5)
    simulator.admin.remove("worker-1")


def test_the_reconciler_finds_a_simulated_worker_healthy(worker):
    health = probe_cml(worker)
    assert (health.ready, health.version) == (True, "2.9.1+build.7")


def test_the_reconciler_detects_a_worker_that_is_not_ready_or_gone(simulator):
    late = simulator.admin.add("late", ready_after_seconds=600)
    assert probe_cml(late).ready is False
    simulator.admin.remove("late")
    assert "404" in probe_cml(late).reason


def test_controllers_are_independent(simulator, worker):
    other = simulator.admin.add("worker-2")
    assert {"worker-1", "worker-2"} <= set(simulator.admin.controllers())
    token = httpx.post(
        f"{worker}/api/v0/authenticate", json={"username": "admin", "password": "simulated"}
    ).json()
    headers = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{worker}/api/v0/labs", headers=headers).status_code == 200
    assert httpx.get(f"{other}/api/v0/labs", headers=headers).status_code == 401
    assert simulator.admin.remove("worker-2") is True
    assert simulator.admin.remove("worker-2") is False


def test_adding_an_existing_controller_changes_nothing(simulator, worker):
    assert simulator.admin.add("worker-1", version="2.10") == worker
    assert simulator.admin.controllers()["worker-1"]["options"]["version"] == "2.9"


@pytest.mark.parametrize("name", ["a/b", "..", "api", "simulator", "x" * 101])
def test_invalid_names_are_rejected(simulator, name):
    with pytest.raises(OptionError):
        simulator.admin.add(name)


def test_errors_are_reported(simulator, worker):
    with pytest.raises(OptionError, match="Unknown option"):
        simulator.admin.add("worker-3", colour="red")
    with pytest.raises(OptionError, match="Lab not found"):
        simulator.admin.edit_lab("worker-1", "nowhere", "add_node")
    with pytest.raises(OptionError, match="Not Found"):
        simulator.admin.fail("unknown", Fault(FaultKind.DROP))


def test_faults_can_be_removed_and_calls_counted(simulator, worker):
    simulator.admin.fail("worker-1", Fault(FaultKind.STATUS))
    assert httpx.get(f"{worker}/api/v0/system_information").status_code == 503
    simulator.admin.clear_faults("worker-1")
    simulator.admin.forget_calls("worker-1")
    assert httpx.get(f"{worker}/api/v0/system_information").status_code == 200
    assert simulator.admin.calls("worker-1") == {"GET /system_information": 1}


def test_the_process_stops_with_its_owner_and_frees_the_port():
    with SimulatorProcess() as process:
        assert process.admin.controllers() == {}
        url = process.url
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_the_management_command_runs_the_simulator(free_port, tmp_path):
    command = [sys.executable, "manage.py", "simulate_cml", "--port", str(free_port), "--version", "2.9"]
    env = {**os.environ, "SECRET_KEY": "x" * 50, "DATA_DIR": str(tmp_path)}
    process = subprocess.Popen([*command, "--boot-seconds", "1"], env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == f"Simulated CML 2.9 at http://127.0.0.1:{free_port}/\n"
        health = wait_for(lambda: probe_cml(f"http://127.0.0.1:{free_port}"))
        assert health.version.startswith("2.9.")
    finally:
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.close()


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def wait_for(probe, seconds=60):
    deadline = time.monotonic() + seconds
    while not (found := probe()).ready and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
