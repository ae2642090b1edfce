"""Handlers of each session status, with a real simulator and an in-memory LCM."""

import asyncio
import shutil
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from lcm.controller.lab_titles import format_title
from lcm.controller.model import Session, SlotInfo
from tests.lcm.controller.scene import PORTS
from tests.lcm.controller.test_clock import CLOCKS, Machine
from tests.support.simulator import Fault, FaultKind


def test_a_session_from_scheduled_to_terminated(play):
    async def scenario(scene):
        scene.put("SCHEDULED")
        await scene.until("RUNNING")
        assert len(scene.labs()) == 1
        scene.now += timedelta(seconds=700)
        scene.lcm.sessions[scene.key]["topology"] = None
        await scene.until("TERMINATED")
        assert scene.steps() == ["INSTANTIATING", "READY", "RUNNING", "COLLECTING", "STOPPING", "TERMINATED"]
        (observation,) = scene.posted("resource-observations")
        assert (observation["actual_node_count"], observation["observed_ports"]) == (3, PORTS)
        assert (observation["observer"], observation["controller"]) == (
            "lablet-controller",
            scene.config.name,
        )
        assert scene.labs() == {}
        kinds = [kind for kind, _ in scene.lcm.posts]
        assert kinds.index("resource-observations") == 4

    play(scenario)


def test_a_definition_without_a_topology_is_reported_and_nothing_is_imported(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        row = scene.lcm.sessions[scene.key]
        row["topology"] = ""
        scene.inventory.put(Session.read(row))
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert "has no topology" in failure["reason"]
        assert scene.labs() == {}

    play(scenario)


@pytest.mark.parametrize(("starts_in", "ends_in", "steps"), [(3600, 7200, []), (-90, -1, ["CANCELLED"])])
def test_a_session_starts_neither_too_early_nor_too_late(play, starts_in, ends_in, steps):
    async def scenario(scene):
        scene.put("SCHEDULED", starts_in=starts_in, ends_in=ends_in)
        again = await scene.reconcile()
        assert scene.steps() == steps
        if not steps:
            assert again == pytest.approx(3600 - 600, abs=1)
        assert scene.labs() == {}

    play(scenario)


def test_an_existing_lab_is_used_and_its_duplicate_removed(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        title = format_title(scene.key, 1, "campus")
        first = await scene.import_lab(title)
        await asyncio.sleep(1.1)
        await scene.import_lab(title)
        await scene.until("READY")
        assert list(scene.labs()) == [first]

    play(scenario)


@pytest.mark.parametrize("is_late", [True, False])
@pytest.mark.parametrize("started_by", ["one before", "us"])
def test_an_abandoned_import_is_given_time_to_appear(play, started_by, is_late):
    async def scenario(scene):
        if started_by == "us":
            unanswered = Fault(FaultKind.DROP, "^/import", times=2, executed=False)
            scene.simulator.admin.fail(scene.worker, unanswered)
        scene.put("INSTANTIATING", is_inherited=started_by == "one before")
        await scene.reconcile(3)
        scene.simulator.admin.clear_faults(scene.worker)
        scene.now += timedelta(seconds=scene.config.import_settle_seconds - 1)
        await scene.reconcile()
        assert scene.labs() == {}
        if is_late:
            await scene.import_lab(format_title(scene.key, 1, "campus"))
        scene.now += timedelta(seconds=2)
        await scene.until("RUNNING")
        assert scene.simulator.admin.controllers()[scene.worker]["imports"] == 1

    play(scenario)


def test_session_state_is_discarded_with_the_lease(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        scene.lcm.leases = [{"pool": "cml-eu", "held": False, "holder": "other"}]
        await scene.leases.renew()
        await scene.reconcile()
        scene.lcm.leases = [{"pool": "cml-eu", "held": True, "holder": "me"}]
        await scene.leases.renew()
        await scene.reconcile()
        assert scene.labs() == {}

    play(scenario)


def test_the_lab_of_an_earlier_attempt_is_not_used(play):
    async def scenario(scene):
        scene.put("INSTANTIATING", attempt=2)
        old = await scene.import_lab(format_title(scene.key, 1, "campus"))
        await scene.until("READY")
        assert len(scene.labs()) == 2
        assert scene.labs()[old]["state"] == "DEFINED_ON_CORE"

    play(scenario)


def test_a_mismatched_port_template_fails_and_leaves_no_lab(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        row = scene.lcm.sessions[scene.key]
        row["allocated_ports"] = {}
        scene.inventory.put(Session.read(row))
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert "no port was allocated for r1_serial" in failure["reason"]
        assert (failure["lab_removed"], failure["attempt"]) == (True, 1)
        assert scene.labs() == {}

    play(scenario)


def test_a_session_waits_for_its_user_if_configured(play):
    async def scenario(scene):
        scene.put("INSTANTIATING", awaits_arrival=True)
        await scene.until("READY")
        await scene.reconcile(3)
        assert scene.steps() == ["READY"]
        scene.lcm.sessions[scene.key]["arrived_at"] = scene.now.isoformat()
        scene.inventory.put(Session.read(scene.lcm.sessions[scene.key]))
        await scene.until("RUNNING")

    play(scenario)


def test_a_requested_observation_is_made_once(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        scene.lcm.sessions[scene.key]["requests"] = {"observe": scene.now.isoformat()}
        scene.inventory.put(Session.read(scene.lcm.sessions[scene.key]))
        await scene.reconcile(3)
        (observation,) = scene.posted("resource-observations")
        assert (observation["observer"], observation["controller"]) == ("manual", scene.config.name)
        assert scene.steps()[-1] == "RUNNING"

    play(scenario)


def test_an_unknown_extension_is_detected_before_the_end(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        scene.now += timedelta(seconds=700)
        scene.lcm.sessions[scene.key]["ends_at"] = (scene.now + timedelta(hours=1)).isoformat()
        await scene.reconcile(3)
        assert scene.steps()[-1] == "RUNNING"
        assert scene.posted("resource-observations") == []

    play(scenario)


def extend(scene, **by):
    """Extend the session in LCM without notifying the controller."""
    scene.lcm.sessions[scene.key]["ends_at"] = (scene.now + timedelta(**by)).isoformat()


@pytest.mark.parametrize("status", ["SCHEDULED", "INSTANTIATING", "READY", "RUNNING"])
def test_an_extension_after_the_last_check_wins(play, status):
    async def scenario(scene):
        scene.put(status, ends_in=-1)
        if status != "SCHEDULED":
            await scene.import_lab(format_title(scene.key, 1, "campus"))

        async def confirm_and_extend(session):
            extend(scene, minutes=2)
            return True

        check, scene.context.confirm_over = scene.context.confirm_over, confirm_and_extend
        if status == "SCHEDULED":
            extend(scene, minutes=2)
        await scene.reconcile()
        assert len(scene.steps()) == 1
        assert scene.lcm.sessions[scene.key]["status"] == status
        scene.context.confirm_over = check
        await scene.context.refresh(scene.key)
        await scene.until("RUNNING")
        assert len(scene.labs()) == 1
        scene.now += timedelta(minutes=3)
        await scene.until("TERMINATED")
        assert scene.labs() == {}
        assert len(scene.posted("resource-observations")) == 1

    play(scenario)


def test_the_lab_is_observed_again_at_the_end_of_an_extension(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        scene.now += timedelta(seconds=700)
        scene.lcm.is_unavailable = True
        await scene.reconcile()
        extend(scene, minutes=2)
        scene.lcm.is_unavailable = False
        while scene.outbox.pending_posts(scene.key):
            await asyncio.sleep(0.05)
        await scene.reconcile(2)
        assert scene.lcm.sessions[scene.key]["status"] == "RUNNING"
        assert len(scene.posted("resource-observations")) == 1
        scene.now += timedelta(minutes=3)
        await scene.until("TERMINATED")
        assert len(scene.posted("resource-observations")) == 2

    play(scenario)


def test_a_session_that_lcm_ends_early_is_observed_and_removed(play):
    """LCM does this when the worker is about to terminate."""

    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        row = scene.lcm.sessions[scene.key]
        row["status"] = "COLLECTING"
        scene.inventory.put(Session.read(row))
        await scene.until("TERMINATED")
        assert len(scene.posted("resource-observations")) == 1
        assert [each["reason"] for each in scene.posted("transitions")[-2:]] == ["", ""]
        assert scene.labs() == {}

    play(scenario)


@pytest.mark.parametrize("wall", CLOCKS)
def test_a_session_ends_by_lcm_s_time(play, wall):
    machine = Machine(CLOCKS[wall])

    async def scenario(scene):
        scene.put("INSTANTIATING", ends_in=60)
        await scene.until("RUNNING")
        machine.elapsed += 55
        assert 0 < await scene.reconcile() <= 5
        assert scene.lcm.sessions[scene.key]["status"] == "RUNNING"
        machine.elapsed += 6
        await scene.until("TERMINATED")
        (observation,) = scene.posted("resource-observations")
        assert observation["observed_at"] == scene.lcm.now().isoformat()

    play(scenario, machine=machine)


@pytest.mark.parametrize("status", ["SCHEDULED", "INSTANTIATING", "READY", "RUNNING", "STOPPING"])
def test_no_session_is_ended_while_lcm_s_time_is_unsteady(play, status):
    async def scenario(scene):
        scene.put(status, ends_in=-1, since=10_000, awaits_arrival=True)
        await scene.import_lab(format_title(scene.key, 1, "campus"))
        delete = Fault(FaultKind.STATUS, "^/labs/[^/]+$", "DELETE", status=500)
        scene.simulator.admin.fail(scene.worker, delete)
        scene.clock.is_steady = False
        assert await scene.reconcile() >= 0.5
        assert (scene.lcm.posts, len(scene.labs())) == ([], 1)
        scene.clock.is_steady = True
        await scene.reconcile(2)
        assert len(scene.lcm.posts) >= 1

    play(scenario)


@pytest.mark.parametrize(("is_known", "posts"), [(False, 0), (True, 1)])
def test_a_session_starts_while_lcm_s_time_is_unsteady_but_known(play, is_known, posts):
    async def scenario(scene):
        scene.put("SCHEDULED", ends_in=600)
        scene.clock.is_steady, scene.clock.is_known = False, is_known
        await scene.reconcile()
        assert len(scene.lcm.posts) == posts

    play(scenario)


def test_while_lcm_is_unavailable_the_end_is_observed_and_no_lab_removed(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        scene.now += timedelta(seconds=700)
        scene.lcm.is_unavailable = True
        await scene.reconcile(2)
        (kept,) = scene.outbox.pending_posts(scene.key)
        assert kept.path.endswith("resource-observations")
        assert len(scene.labs()) == 1
        scene.lcm.is_unavailable = False
        while scene.outbox.pending_posts(scene.key):
            await asyncio.sleep(0.05)
        await scene.until("TERMINATED")
        assert len(scene.posted("resource-observations")) == 1
        assert scene.steps()[-3:] == ["COLLECTING", "STOPPING", "TERMINATED"]

    play(scenario)


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ((409, "state_conflict"), "the timeslot ended; not observed: 409 state_conflict: y"),
        ((422, "unprocessable"), "the timeslot ended; not observed: 422 unprocessable: y"),
        # An earlier process has posted it.
        ((422, "idempotency_key_reused"), "the timeslot ended"),
    ],
)
def test_a_rejected_observation_does_not_block_teardown(play, failure, reason):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        scene.lcm.failures["resource-observations"] = failure
        scene.now += timedelta(seconds=700)
        await scene.until("TERMINATED")
        (stopping,) = [body for body in scene.posted("transitions") if body["to_status"] == "STOPPING"]
        assert stopping["reason"] == reason

    play(scenario)


def test_a_failed_observation_does_not_block_teardown(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        for path in ("/nodes$", "simulation_stats", "layer3", "interfaces"):
            scene.simulator.admin.fail(scene.worker, Fault(FaultKind.STATUS, path, "GET", status=500))
        scene.now += timedelta(seconds=700)
        await scene.until("TERMINATED")
        (observation,) = scene.posted("resource-observations")
        assert observation["actual_node_count"] is None
        assert observation["errors"]
        assert scene.labs() == {}

    play(scenario, observe_seconds=5.0)


@pytest.mark.parametrize("observed", [False, True])
def test_a_cancelled_session_reports_why_it_was_not_observed(play, observed):
    async def scenario(scene):
        observed_at = scene.now.isoformat() if observed else None
        scene.put("STOPPING", observed_at=observed_at)
        await scene.import_lab(format_title(scene.key, 1, "campus"))
        await scene.until("TERMINATED")
        (ended,) = scene.posted("transitions")
        assert ended["reason"] == ("" if observed else "not observed: the lab is not running")

    play(scenario)


def test_a_worker_that_cannot_list_labs_does_not_block_teardown(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        scene.simulator.admin.fail(scene.worker, Fault(FaultKind.STATUS, "^/labs$", status=500))
        scene.now += timedelta(seconds=601)
        await scene.reconcile()
        assert scene.steps()[-1] == "RUNNING"
        scene.now += timedelta(seconds=scene.config.observe_seconds)
        await scene.until("STOPPING")
        (stopping,) = [body for body in scene.posted("transitions") if body["to_status"] == "STOPPING"]
        assert "not observed: eu-01: labs returned 500" in stopping["reason"]
        scene.simulator.admin.clear_faults(scene.worker)
        await scene.until("TERMINATED")
        assert scene.labs() == {}

    play(scenario)


@pytest.mark.parametrize("path", ["^/import", "/nodes$", "/state$", "check_if_converged"])
def test_an_unreadable_response_is_retried(play, path):
    async def scenario(scene):
        scene.simulator.admin.fail(scene.worker, Fault(FaultKind.TRUNCATE, path, times=1))
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        assert scene.posted("failures") == []
        assert scene.simulator.admin.controllers()[scene.worker]["imports"] == 1

    play(scenario)


TITLE_MISSING = Fault(FaultKind.MISSING_FIELDS, "^/labs/[^/]+$", "GET", fields=["lab_title"])


@pytest.mark.parametrize(("status", "times"), [("INSTANTIATING", 1), ("RUNNING", 1), ("STOPPING", 2)])
def test_a_lab_with_an_unreadable_title_may_belong_to_the_session(play, status, times):
    async def scenario(scene):
        scene.put(status)
        lab_id = await scene.import_lab(format_title(scene.key, 1, "campus"))
        scene.simulator.admin.fail(scene.worker, replace(TITLE_MISSING, times=times))
        assert await scene.reconcile() is not None
        assert (scene.lcm.posts, list(scene.labs())) == ([], [lab_id])
        await scene.reconcile()
        assert scene.posted("failures") == []
        assert len(scene.labs()) == (status != "STOPPING")

    play(scenario)


def test_an_import_without_an_id_is_found_by_its_title(play):
    async def scenario(scene):
        scene.simulator.admin.fail(
            scene.worker, Fault(FaultKind.MISSING_FIELDS, "^/import", times=1, fields=["id"])
        )
        scene.simulator.admin.fail(scene.worker, replace(TITLE_MISSING, times=1))
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        assert scene.posted("failures") == []
        assert scene.simulator.admin.controllers()[scene.worker]["imports"] == 1

    play(scenario)


def test_a_foreign_lab_with_an_unreadable_title_does_not_affect_the_session(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.reconcile()
        scene.simulator.admin.fail(scene.worker, TITLE_MISSING)
        await scene.import_lab("somebody's")
        await scene.until("RUNNING")
        scene.now += timedelta(seconds=700)
        await scene.until("TERMINATED")
        assert [lab["title"] for lab in scene.labs().values()] == ["somebody's"]

    play(scenario)


def test_an_imported_lab_is_known_without_a_request(play):
    async def scenario(scene):
        scene.put("INSTANTIATING")
        await scene.until("RUNNING")
        assert len(await scene.inventory.worker("slot-1").labs()) == 1
        assert scene.simulator.admin.calls(scene.worker).keys().isdisjoint({"GET /labs/*"})

    play(scenario)


def test_a_session_cancelled_while_booting_is_removed_unobserved(play):
    async def scenario(scene):
        scene.put("STOPPING")
        await scene.import_lab(format_title(scene.key, 1, "campus"))
        await scene.until("TERMINATED")
        assert scene.posted("resource-observations") == []
        assert scene.labs() == {}

    play(scenario)


def test_a_missing_lab_is_a_failure_while_running_and_success_while_stopping(play):
    async def scenario(scene):
        scene.put("RUNNING")
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert (failure["lab_removed"], "disappeared" in failure["reason"]) == (True, True)
        scene.put("STOPPING")
        await scene.until("TERMINATED")

    play(scenario)


def test_sessions_of_a_worker_unreachable_for_too_long_fail(play):
    async def scenario(scene):
        scene.put("RUNNING")
        scene.inventory.replace_slots([SlotInfo("slot-1", "eu-01", "cml-eu", "http://127.0.0.1:9")])
        assert await scene.reconcile() is not None
        assert scene.lcm.posts == []
        scene.inventory.worker("slot-1").unreachable_since = time.monotonic() - 301
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert (failure["lab_removed"], "does not respond" in failure["reason"]) == (False, True)

    play(scenario)


@pytest.mark.parametrize(
    ("status", "since", "reason"),
    [("INSTANTIATING", 901, "did not converge"), ("STOPPING", 901, "was not removed within")],
)
def test_a_stage_that_takes_too_long_fails(play, status, since, reason):
    async def scenario(scene):
        scene.put(status, since=since)
        await scene.import_lab(format_title(scene.key, 1, "campus"))
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert reason in failure["reason"]

    play(scenario)


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_missing_lab_counts_as_removed_however_late(play, is_reported):
    async def scenario(scene):
        scene.put("STOPPING", since=901)
        if not is_reported:
            scene.simulator.admin.fail(scene.worker, Fault(FaultKind.STATUS, "^/labs$", status=500))
        await scene.reconcile()
        assert (scene.steps(), len(scene.posted("failures"))) == (
            (["TERMINATED"], 0) if is_reported else ([], 1)
        )

    play(scenario)


def break_disk(scene):
    """Replace the spool folder by a file, so that not even root can write."""
    shutil.rmtree(scene.outbox.spool.folder)
    scene.outbox.spool.folder.write_text("")


def test_a_session_completes_without_a_disk(play):
    async def scenario(scene):
        break_disk(scene)
        scene.put("SCHEDULED")
        await scene.until("RUNNING")
        scene.now += timedelta(seconds=700)
        await scene.until("TERMINATED")
        assert len(scene.posted("resource-observations")) == 1
        assert (scene.posted("failures"), scene.labs()) == ([], {})

    play(scenario)


def test_a_transition_without_room_on_disk_and_in_memory_is_retried_within_seconds(play, monkeypatch):
    async def scenario(scene):
        break_disk(scene)
        monkeypatch.setattr("lcm.controller.outbox.MAX_IN_MEMORY", 0)
        scene.put("STOPPING")
        await scene.import_lab(format_title(scene.key, 1, "campus"))
        pauses = [await scene.reconcile() for _ in range(4)]
        assert (scene.labs(), scene.lcm.posts) == ({}, [])
        assert all(pause and pause <= 15 for pause in pauses)
        assert pauses[-1] > pauses[0]
        scene.outbox.spool.folder.unlink()
        scene.outbox.spool.folder.mkdir()
        await scene.reconcile()
        assert scene.steps() == ["TERMINATED"]

    play(scenario)


def test_a_start_rejected_for_lack_of_resources_is_reported_and_cleaned_up(play):
    async def scenario(scene):
        refusal = Fault(FaultKind.STATUS, "/start$", "PUT", status=400, description="Insufficient resources")
        scene.simulator.admin.fail(scene.worker, refusal)
        scene.put("INSTANTIATING")
        await scene.reconcile()
        (failure,) = scene.posted("failures")
        assert "Insufficient resources" in failure["reason"]
        assert scene.labs() == {}

    play(scenario)


def test_without_the_lease_nothing_changes(play):
    async def scenario(scene):
        scene.lcm.leases = [{"pool": "cml-eu", "held": False, "holder": "other"}]
        await scene.leases.renew()
        for status in ("SCHEDULED", "INSTANTIATING", "READY", "RUNNING", "COLLECTING", "STOPPING"):
            scene.put(status, ends_in=-1)
            await scene.reconcile()
        assert (scene.lcm.posts, scene.labs()) == ([], {})

    play(scenario)
