"""Launches of workers that never become READY back off."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.capacity.runtimes.base import Health, InstanceState
from scheduling.capacity.runtimes.static import StaticRuntime
from scheduling.models import SlotState
from scheduling.services.slots import record_interruption, terminate_slot

S = SlotState


def worker_never_responds(fleet):
    fleet.runtime.health = Health(False, "no CML")


def instance_never_boots(fleet):
    fleet.runtime.boots = False


def instance_terminates_during_boot(fleet):
    """The instance terminates by itself, for example because its disk is unreadable."""
    fleet.runtime.boots = False
    launch = fleet.runtime.launch

    def launch_and_terminate(request):
        instance = launch(request)
        fleet.runtime.set_state(instance.id, InstanceState.GONE)
        return instance

    fleet.runtime.launch = launch_and_terminate


@pytest.mark.parametrize(
    "fail", [worker_never_responds, instance_never_boots, instance_terminates_during_boot]
)
def test_launches_are_bounded_by_the_back_off_and_the_demand_stays(fleet, fail):
    fleet.reservation(1, ttl=86_400)
    fail(fleet)
    for _ in range(2 * 60):
        fleet.round(60)
    failures = fleet.reload_pool().failures
    assert failures >= 3
    assert fleet.runtime.count("launch") in (failures, failures + 1)
    assert fleet.tick().counts["unmet"] == 1


def test_launches_continue_when_workers_respond_again(fleet):
    reservation = fleet.reservation(1, ttl=86_400)
    worker_never_responds(fleet)
    for _ in range(60):
        fleet.round(60)
    fleet.runtime.health = Health(True)
    for _ in range(40):
        fleet.round(60)
    reservation.refresh_from_db()
    assert (reservation.phase, fleet.reload_pool().failures, fleet.pool.backoff_until) == ("READY", 0, None)


@pytest.mark.parametrize(("state", "seconds"), [(S.BOOTING, 300), (S.BINDING, 180)])
def test_slots_that_are_overdue_together_count_as_one_failure(fleet, state, seconds):
    for _ in range(3):
        fleet.slot(state)
    fleet.runtime.boots = False
    worker_never_responds(fleet)
    fleet.clock.advance(seconds=seconds)
    fleet.reconcile()
    assert fleet.states() == [S.TERMINATING] * 3
    assert (fleet.reload_pool().failures, fleet.pool.backoff_until) == (
        1,
        fleet.clock() + timedelta(minutes=5),
    )


def test_a_termination_by_a_user_during_boot_is_not_a_failure(fleet, as_operator):
    slot = fleet.slot(S.BOOTING)
    terminate_slot(slot=slot, reason="not now", actor=as_operator, now=fleet.clock())
    for _ in range(3):
        fleet.reconcile()
    assert (fleet.states(), fleet.reload_pool().failures) == ([S.EMPTY], 0)


def test_an_interruption_during_boot_is_not_a_failure(fleet):
    slot = fleet.slot(S.BOOTING)
    record_interruption(slot=slot, deadline=fleet.clock() + timedelta(minutes=2), now=fleet.clock())
    fleet.runtime.vanish(slot.instance_id)
    fleet.reconcile()
    assert (fleet.states(), fleet.reload_pool().failures) == ([S.EMPTY], 0)


def test_a_listed_worker_that_does_not_respond_does_not_block_the_other_probes(configure_pool):
    listed = [{"name": name, "endpoint": f"https://{name}.example.org"} for name in ("a", "b")]
    fleet = configure_pool(runtime="static", runtime_settings={"workers": listed}, max_slots=2, min_slots=2)
    fleet.runtime = StaticRuntime("cml-eu", fleet.pool.runtime_settings)
    fleet.runtime.probe = lambda instance: Health(instance.id == "b", "off")
    for _ in range(30):
        fleet.round(60)
    assert (fleet.slots()[1].state, fleet.reload_pool().failures) == (S.READY, 0)
