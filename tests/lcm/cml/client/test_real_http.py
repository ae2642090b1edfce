"""Client and observation over real HTTP, with a worker that fails at each call in each way."""

import asyncio
import json

import pytest

from lcm.cml.client.caller import RetryPolicy
from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from lcm.cml.client.errors import CmlUnreachable
from lcm.cml.observation.observer import observe_lab
from tests.support.cml_environment import (
    AT_ONCE,
    QUICK_RETRIES,
    TWO_ROUTERS,
    import_and_start,
    many_nodes,
    run,
)
from tests.support.simulator import Fault, FaultKind, SimulatorProcess

pytestmark = pytest.mark.integration

PARTS = {
    "nodes": r"/nodes$",
    "interfaces": r"/interfaces$",
    "layer3_addresses": "/layer3_addresses",
    "simulation_stats": "/simulation_stats",
    "resource_pool_usage": "/resource_pool_usage",
}
FAULTS = {
    "500": Fault(FaultKind.STATUS, status=500, description="Oops"),
    "truncated": Fault(FaultKind.TRUNCATE),
    "dropped": Fault(FaultKind.DROP),
    "not json": Fault(FaultKind.REPLACE, body="<html>"),
    "slow": Fault(FaultKind.LATENCY, seconds=30),
}


@pytest.fixture(scope="module")
def simulator():
    with SimulatorProcess() as process:
        yield process


@pytest.fixture
def worker(simulator, request):
    version = getattr(request, "param", "2.10")
    name = f"w-{abs(hash(request.node.name))}"
    url = simulator.admin.add(name, version=version, **AT_ONCE)
    yield CmlEndpoint(name, url, "admin", "simulated")
    simulator.admin.remove(name)


def client(worker, retry_policy=QUICK_RETRIES):
    return CmlClient(worker, retry_policy=retry_policy)


@pytest.mark.parametrize("worker", ["2.9", "2.10"], indirect=True)
def test_a_lab_from_import_to_removal(simulator, worker):
    async def scenario():
        async with client(worker) as cml:
            lab_id = await import_and_start(cml)
            observation = await observe_lab(cml, lab_id)
            await cml.stop_lab(lab_id)
            await cml.wipe_lab(lab_id)
            await cml.delete_lab(lab_id)
            return observation

    observation = run(scenario())
    assert observation.is_complete
    assert observation.observed_ports == {"R1_serial": 5001, "R1_pat": 2022, "R2_serial": 5002}
    assert simulator.admin.controllers()[worker.name]["labs"] == {}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("part", PARTS)
def test_an_observation_reports_which_call_failed(simulator, worker, part, fault):
    async def scenario():
        async with client(worker) as cml:
            lab_id = await import_and_start(cml)
            injected = Fault.from_dict({**FAULTS[fault].to_dict(), "path": PARTS[part], "method": "GET"})
            await asyncio.to_thread(simulator.admin.fail, worker.name, injected)
            return await observe_lab(cml, lab_id, deadline=1.0)

    observation = run(scenario())
    assert [error.part for error in observation.errors] == [part]
    assert observation.incomplete
    json.dumps(observation.to_dict(), allow_nan=False)


def test_a_broken_connection_is_retried_for_idempotent_calls(simulator, worker):
    simulator.admin.fail(worker.name, Fault(FaultKind.DROP, path="^/labs$", times=2))

    async def scenario():
        async with client(worker) as cml:
            return await cml.labs()

    assert run(scenario()) == ()


def test_an_import_whose_response_is_lost_is_executed_once_and_can_be_found(simulator, worker):
    simulator.admin.fail(worker.name, Fault(FaultKind.DROP, path="/import", times=1, executed=True))

    async def scenario():
        async with client(worker) as cml:
            with pytest.raises(CmlUnreachable, match="import: "):
                await cml.import_lab(TWO_ROUTERS, title="session 7")
            return [(await cml.lab(lab)).title for lab in await cml.labs()]

    assert run(scenario()) == ["session 7"]


def test_a_start_whose_response_is_lost_is_retried_safely(simulator, worker):
    simulator.admin.fail(worker.name, Fault(FaultKind.DROP, path="/start$", times=1, executed=True))

    async def scenario():
        async with client(worker) as cml:
            return await cml.lab_state(await import_and_start(cml))

    assert run(scenario()) == "STARTED"


@pytest.mark.parametrize("worker", ["2.9"], indirect=True)
def test_interfaces_of_many_nodes_are_requested_with_limited_concurrency(worker):
    async def scenario():
        async with client(worker) as cml:
            lab_id = await import_and_start(cml, many_nodes(50))
            in_flight, highest = 0, 0
            get_node_interfaces = cml.get_node_interfaces

            async def count_in_flight(*args):
                nonlocal in_flight, highest
                in_flight += 1
                highest = max(highest, in_flight)
                try:
                    return await get_node_interfaces(*args)
                finally:
                    in_flight -= 1

            cml.get_node_interfaces = count_in_flight
            observation = await observe_lab(cml, lab_id)
            return highest, observation.is_complete

    highest, is_complete = run(scenario())
    assert 2 <= highest <= 8
    assert is_complete


def test_many_labs_are_observed_concurrently(worker):
    async def scenario():
        async with client(worker, RetryPolicy()) as cml:
            labs = [await import_and_start(cml, title=f"lab {number}") for number in range(10)]
            return await asyncio.gather(*(observe_lab(cml, lab) for lab in labs))

    assert all(observation.is_complete for observation in run(scenario()))


def test_a_terminated_worker_yields_no_data(simulator, worker):
    async def scenario():
        async with client(worker) as cml:
            lab_id = await import_and_start(cml)
            await asyncio.to_thread(simulator.admin.remove, worker.name)
            return await observe_lab(cml, lab_id)

    observation = run(scenario())
    assert (observation.nodes, observation.total_cpu_cores) == ((), None)
    assert len(observation.errors) == 4
