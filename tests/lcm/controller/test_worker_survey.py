"""Findings of a worker survey, and their age when LCM receives them."""

from __future__ import annotations

import asyncio

import pytest

from lcm.cml.client.errors import CmlUnreachable
from lcm.controller.heartbeats import HeartbeatSender, SurveyResult
from lcm.controller.worker_survey import WorkerSurvey
from tests.lcm.controller.fake_lcm import until
from tests.support.simulator import Fault, FaultKind


def surveying(scene):
    scene.inventory.is_known = True
    heartbeats = HeartbeatSender(scene.context, scene.leases, scene.client)
    return heartbeats, WorkerSurvey(scene.context, scene.leases, scene.client, heartbeats, lambda _: None)


def test_leaked_ports_are_reported_once_with_the_age_of_the_survey(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        scene.inventory.sessions[scene.key].allocated_ports.pop("r1_serial")
        heartbeats, survey = surveying(scene)
        await survey.run()
        await asyncio.sleep(0.3)
        await heartbeats.send_all()
        await heartbeats.send_all()
        first, second = scene.posted("heartbeat")
        assert [port["port"] for port in first["leaked_ports"]] == [2001]
        assert 0.3 <= first["ports_observed_seconds_ago"] < 30
        (lab,) = first["labs"]
        assert (lab["session"], lab["attempt"]) == (scene.key, 1)
        assert lab["lab"] in {each.id for each in await scene.inventory.worker("slot-1").labs()}
        assert lab["nodes"]
        assert set(lab["nodes"].values()) == {"BOOTED"}
        assert not {"leaked_ports", "labs"} & set(second)
        assert "ports_observed_seconds_ago" not in second

    play(scenario)


def test_a_survey_that_lcm_did_not_receive_is_reported_later_with_its_age(play):
    async def scenario(scene):
        heartbeats, survey = surveying(scene)
        await survey.run()
        scene.lcm.is_unavailable = True
        await heartbeats.send_all()
        scene.lcm.is_unavailable = False
        await asyncio.sleep(0.5)
        await heartbeats.send_all()
        (heartbeat,) = scene.posted("heartbeat")
        assert heartbeat["leaked_ports"] == []
        assert heartbeat["ports_observed_seconds_ago"] >= 0.5

    play(scenario)


def test_the_age_of_a_survey_counts_from_its_start(play):
    """A lab created during the survey may not have been found."""

    async def scenario(scene):
        heartbeats, survey = surveying(scene)
        worker = scene.inventory.worker("slot-1")
        listed = worker.labs

        async def slowly():
            found = await listed()
            await asyncio.sleep(0.5)
            return found

        worker.labs = slowly
        await survey.run()
        (observation,) = heartbeats.survey_results.values()
        assert observation.as_body()["ports_observed_seconds_ago"] >= 0.5

    play(scenario)


@pytest.mark.parametrize("is_opened", [True, False])
def test_a_worker_removed_during_a_survey_does_not_fail_the_survey(play, is_opened):
    """The survey holds the worker: a call in progress completes, the next one finds the client closed."""

    async def scenario(scene):
        worker = scene.inventory.worker("slot-1")
        slow = Fault(FaultKind.LATENCY, "system_information", times=1, seconds=0.3)
        scene.simulator.admin.fail(scene.worker, slow)
        heartbeats, survey = surveying(scene)
        if is_opened:
            rounds = asyncio.gather(heartbeats.send_all(), survey.run())
            await until(lambda: scene.simulator.admin.calls(scene.worker))
        scene.inventory.replace_slots([])
        if is_opened:
            await rounds
        await scene.inventory.aclose()
        with pytest.raises(CmlUnreachable, match="the client of this worker is closed"):
            await worker.cml.system_stats()

    play(scenario)


def test_the_age_of_a_survey_is_never_negative():
    assert SurveyResult([], began=float("inf")).as_body() == {
        "leaked_ports": [],
        "labs": [],
        "ports_observed_seconds_ago": 0.0,
    }
