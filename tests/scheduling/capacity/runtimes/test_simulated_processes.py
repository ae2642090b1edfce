"""Simulated instances with a CML each, in a real simulator process."""

import httpx
import pytest

from lcm.cml.simulator.process import SimulatorProcess
from scheduling.capacity.runtimes.base import InstanceState, LaunchRequest, Offering, ResponseLost
from scheduling.capacity.runtimes.simulated import SimulatedRuntime
from scheduling.models import SimulatedInstance

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def process():
    with SimulatorProcess() as running:
        yield running


@pytest.fixture
def runtime(process, settings):
    settings.CONFIG["SIMULATOR_URL"] = process.url
    return SimulatedRuntime("cml-eu", {"launch_seconds": 0, "boot_seconds": 0, "cml_version": "2.9"})


def ask(token="token-1"):
    return LaunchRequest(token=token, slot_id="s", slot_name="cml-eu-01", offering=Offering("sim-large"))


def test_an_instance_is_a_cml_that_answers(runtime, process):
    instance = runtime.launch(ask())
    assert instance.endpoint == f"{process.url}/{instance.id}"
    health = runtime.probe(instance)
    assert (health.ready, health.version[:3]) == (True, "2.9")
    answer = httpx.get(f"{instance.endpoint}/api/v0/system_information")
    assert answer.json()["version"].startswith("2.9")


def test_ending_an_instance_ends_its_cml(runtime, process):
    instance = runtime.launch(ask("token-2"))
    runtime.terminate(instance.id)
    runtime.terminate(instance.id)
    assert instance.id not in process.admin.controllers()
    assert not runtime.probe(instance).ready


def test_another_pool_s_instance_is_not_ended(runtime, process):
    instance = runtime.launch(ask("token-3"))
    SimulatedRuntime("cml-us", {}).terminate(instance.id)
    assert instance.id in process.admin.controllers()


def test_a_cml_that_was_lost_comes_back_empty(runtime, process):
    instance = runtime.launch(ask("token-4"))
    process.admin.remove(instance.id)
    assert instance.id in {each.id for each in runtime.describe()}
    assert process.admin.controllers()[instance.id]["labs"] == {}


def test_a_vanished_instance_removes_its_cml(runtime, process, settings):
    instance = runtime.launch(ask("token-5"))
    gone = SimulatedRuntime("cml-eu", {"vanish_after_seconds": 0})
    assert instance.id not in {each.id for each in gone.describe()}
    assert instance.id not in process.admin.controllers()


def test_without_an_answer_nothing_seems_to_have_vanished(settings):
    settings.CONFIG["SIMULATOR_URL"] = "http://127.0.0.1:9"
    runtime = SimulatedRuntime("cml-eu", {})
    with pytest.raises(ResponseLost, match="does not answer"):
        runtime.launch(ask("token-6"))
    assert SimulatedInstance.objects.filter(token="token-6", ended_at=None).exists()
    with pytest.raises(ResponseLost, match="does not answer"):
        list(runtime.describe())


@pytest.mark.parametrize("value", ["2.8", "3", 2.9])
def test_a_version_that_cannot_be_simulated_is_refused(value):
    assert list(SimulatedRuntime.problems({"cml_version": value})) == ["cml_version"]


def test_an_instance_that_ended_is_not_started_again(runtime, process):
    instance = runtime.launch(ask("token-7"))
    runtime.terminate(instance.id)
    again = runtime.launch(ask("token-7"))
    assert again.state == InstanceState.GONE
    assert instance.id not in process.admin.controllers()
