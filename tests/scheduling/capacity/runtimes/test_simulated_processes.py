"""Simulated instances with a CML each, in a real simulator process."""

import httpx
import pytest

from scheduling.capacity.runtimes.base import InstanceState, LaunchRequest, Offering, ResponseLost
from scheduling.capacity.runtimes.simulated import SimulatedRuntime
from scheduling.models import SimulatedInstance
from tests.support.simulator import SimulatorProcess

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def simulator():
    with SimulatorProcess() as running:
        yield running


@pytest.fixture
def runtime(simulator, settings):
    settings.CONFIG["SIMULATOR_URL"] = simulator.url
    return SimulatedRuntime("cml-eu", {"launch_seconds": 0, "boot_seconds": 0, "cml_version": "2.9"})


def launch_request(token="token-1"):
    return LaunchRequest(token=token, slot_id="s", slot_name="cml-eu-01", offering=Offering("sim-large"))


def test_an_instance_has_a_cml_that_responds(runtime, simulator):
    instance = runtime.launch(launch_request())
    assert instance.endpoint == f"{simulator.url}/{instance.id}"
    health = runtime.probe(instance)
    assert (health.ready, health.version[:3]) == (True, "2.9")
    response = httpx.get(f"{instance.endpoint}/api/v0/system_information")
    assert response.json()["version"].startswith("2.9")


def test_terminating_an_instance_removes_its_cml(runtime, simulator):
    instance = runtime.launch(launch_request("token-2"))
    runtime.terminate(instance.id)
    runtime.terminate(instance.id)
    assert instance.id not in simulator.admin.controllers()
    assert not runtime.probe(instance).ready


def test_an_instance_of_another_pool_is_not_terminated(runtime, simulator):
    instance = runtime.launch(launch_request("token-3"))
    SimulatedRuntime("cml-us", {}).terminate(instance.id)
    assert instance.id in simulator.admin.controllers()


def test_a_lost_cml_is_recreated_empty(runtime, simulator):
    instance = runtime.launch(launch_request("token-4"))
    simulator.admin.remove(instance.id)
    assert instance.id in {each.id for each in runtime.describe()}
    assert simulator.admin.controllers()[instance.id]["labs"] == {}


def test_a_vanished_instance_removes_its_cml(runtime, simulator, settings):
    instance = runtime.launch(launch_request("token-5"))
    vanishing = SimulatedRuntime("cml-eu", {"vanish_after_seconds": 0})
    assert instance.id not in {each.id for each in vanishing.describe()}
    assert instance.id not in simulator.admin.controllers()


def test_an_unreachable_simulator_does_not_make_instances_vanish(settings):
    settings.CONFIG["SIMULATOR_URL"] = "http://127.0.0.1:9"
    runtime = SimulatedRuntime("cml-eu", {})
    with pytest.raises(ResponseLost, match="does not respond"):
        runtime.launch(launch_request("token-6"))
    assert SimulatedInstance.objects.filter(token="token-6", ended_at=None).exists()
    with pytest.raises(ResponseLost, match="does not respond"):
        list(runtime.describe())


@pytest.mark.parametrize("value", ["2.8", "3", 2.9])
def test_an_unsupported_version_is_rejected(value):
    assert list(SimulatedRuntime.problems({"cml_version": value})) == ["cml_version"]


def test_a_terminated_instance_is_not_started_again(runtime, simulator):
    instance = runtime.launch(launch_request("token-7"))
    runtime.terminate(instance.id)
    again = runtime.launch(launch_request("token-7"))
    assert again.state == InstanceState.GONE
    assert instance.id not in simulator.admin.controllers()
