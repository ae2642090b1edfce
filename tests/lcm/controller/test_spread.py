"""A spread session has a lab on each of its workers and is one session to LCM."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from lcm.cml.topology.partition import partition_topology
from lcm.controller.heartbeats import HeartbeatSender
from lcm.controller.lab_statistics import LabStatistics
from lcm.controller.model import SlotInfo
from lcm.controller.worker_survey import WorkerSurvey
from tests.lcm.controller.conftest import INSTANT
from tests.lcm.controller.scene import PORTS
from tests.support.factories import LAB
from tests.support.simulator import Fault, FaultKind

GROUPS = (["r1", "host"], ["r2"])


@pytest.fixture
def other_worker(simulator, worker) -> Iterator[str]:
    name = f"{worker}-other"
    simulator.admin.add(name, **INSTANT)
    yield name
    simulator.admin.remove(name)


@pytest.fixture
def play_spread(play, simulator, other_worker):
    """`play` with a second worker that runs node r2 of the session."""
    partition = partition_topology(LAB, GROUPS)

    def run(scenario, kernels=None, **settings):
        async def wrapped(scene):
            first = scene.inventory.slots["slot-1"]
            second = SlotInfo("slot-2", "eu-02", "cml-eu", simulator.admin.address_of(other_worker))
            scene.inventory.replace_slots([first, second])
            parts = [
                {"slot": {"id": slot.id, "name": slot.name, "endpoint": ""}, "nodes": nodes, "topology": text}
                for slot, nodes, text in zip((first, second), GROUPS, partition.topologies, strict=True)
            ]
            scene.put(
                "INSTANTIATING", parts=parts, dropped_links=list(partition.dropped_links), kernels=kernels
            )
            scene.on_both = lambda: [
                simulator.admin.controllers()[name]["labs"] for name in (scene.worker, other_worker)
            ]
            await scenario(scene)

        play(wrapped, **settings)

    return run


def test_a_spread_session_runs_on_both_workers_and_is_observed_as_one(play_spread, other_worker):
    async def scenario(scene):
        await scene.until("RUNNING")
        titles = [lab["title"] for labs in scene.on_both() for lab in labs.values()]
        assert titles == [f"lcm:{scene.key}:1 1/2 campus", f"lcm:{scene.key}:1 2/2 campus"]
        ready, _ = scene.posted("transitions")
        assert ready["reason"] == "links between workers are missing: r1 – r2"
        scene.now += timedelta(seconds=700)
        await scene.until("TERMINATED")
        (observation,) = scene.posted("resource-observations")
        assert [node["label"] for node in observation["nodes"]] == ["r1", "host", "r2"]
        assert (observation["actual_node_count"], observation["observed_ports"]) == (3, PORTS)
        assert (observation["total_cpu_cores"], observation["errors"]) == ("4.00", [])
        assert scene.on_both() == [{}, {}]

    play_spread(scenario)


def test_a_spread_session_is_ready_when_all_labs_are(play_spread, simulator, other_worker):
    async def scenario(scene):
        simulator.admin.fail(other_worker, Fault(FaultKind.REPLACE, "check_if_converged", body="false"))
        await scene.reconcile(4)
        assert scene.steps() == []
        simulator.admin.clear_faults(other_worker)
        await scene.until("READY")

    play_spread(scenario)


def test_a_restart_finds_its_labs_again(play_spread):
    async def scenario(scene):
        await scene.reconcile(2)
        scene.context.states.clear()
        await scene.until("RUNNING")
        assert [len(labs) for labs in scene.on_both()] == [1, 1]

    play_spread(scenario)


def test_when_one_lab_disappears_the_other_labs_are_stopped_later(play_spread, simulator, other_worker):
    async def scenario(scene):
        await scene.until("RUNNING")
        simulator.admin.remove(other_worker)
        simulator.admin.add(other_worker)
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert ("disappeared" in failure["reason"], failure["lab_removed"]) == (True, False)

    play_spread(scenario)


def test_a_rejection_by_one_worker_removes_the_lab_from_the_other(play_spread, simulator, other_worker):
    async def scenario(scene):
        simulator.admin.fail(other_worker, Fault(FaultKind.STATUS, "^/import", "POST", status=400))
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert failure["lab_removed"] is True
        assert scene.on_both() == [{}, {}]

    play_spread(scenario)


def test_data_missing_from_one_worker_makes_the_observation_incomplete(play_spread, simulator, other_worker):
    async def scenario(scene):
        await scene.until("RUNNING")
        simulator.admin.fail(other_worker, Fault(FaultKind.STATUS, "/nodes$", "GET", status=500))
        scene.now += timedelta(seconds=700)
        await scene.until("TERMINATED")
        (observation,) = scene.posted("resource-observations")
        assert [node["label"] for node in observation["nodes"]] == ["r1", "host"]
        assert {"actual_node_count", "total_cpu_cores"} <= set(observation["incomplete"])

    play_spread(scenario)


def test_none_of_its_labs_is_an_orphan_and_usage_of_all_is_read(play_spread):
    async def scenario(scene):
        await scene.until("RUNNING")
        scene.inventory.is_known = True
        heartbeats = HeartbeatSender(scene.context, scene.leases, scene.client)
        survey = WorkerSurvey(scene.context, scene.leases, scene.client, heartbeats, lambda _: None)
        for _ in range(2):
            await survey.run()
        assert [len(labs) for labs in scene.on_both()] == [1, 1]
        await LabStatistics(scene.context, scene.leases, lambda _: None).read()
        used, *_ = scene.context.metrics.utilization.collect()
        assert {sample.labels["kernel_id"] for sample in used.samples} == {"k1", "k2", "k3"}

    play_spread(scenario, kernels={"r1": "k1", "r2": "k2", "host": "k3"}, orphan_grace_seconds=0.001)
