"""Prometheus metrics of a pool."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from scheduling.capacity.runtimes.base import CapacityRefused
from scheduling.capacity.tick import scheduling_tick
from scheduling.metrics import TickMetrics, capacity_figures
from scheduling.models import ObserverRun, SlotState, TickRun
from tests.support.fake_runtime import START


def figures() -> dict[str, dict[tuple[str, ...], float]]:
    return {
        metric.name: {tuple(sample.labels.values()): sample.value for sample in metric.samples}
        for metric in capacity_figures()
    }


def test_slots_reservations_leases_and_the_queue_are_counted(configure_pool):
    fleet = configure_pool(warm_slots=3)
    slot = fleet.slot()
    fleet.slot(), fleet.slot(SlotState.BOOTING)
    fleet.assign(fleet.reservation(), slot)
    fleet.reservation(), fleet.reservation()
    TickRun.objects.create(pool=fleet.pool, started_at=START, duration_ms=1, counts={"unmet": 2})
    seen = figures()
    assert seen["lcm_slots"] == {("cml-eu", "READY"): 2, ("cml-eu", "BOOTING"): 1}
    assert seen["lcm_reservations"] == {("cml-eu", "PENDING"): 2, ("cml-eu", "READY"): 1}
    assert seen["lcm_unmet_demand"] == {("cml-eu",): 2}
    assert seen["lcm_oldest_pending_seconds"][("cml-eu",)] >= 0
    assert (seen["lcm_leases_used"], seen["lcm_leases_limit"]) == ({("cml-eu",): 1}, {("cml-eu",): 20})
    assert seen["lcm_warm_slots_missing"] == {("cml-eu",): 2}


def test_ticks_and_observers_have_their_times(configure_pool):
    fleet = configure_pool()
    TickRun.objects.create(pool=fleet.pool, started_at=START, duration_ms=1)
    ObserverRun.objects.create(observer="usage-record", started_at=START, duration_ms=1, failure_count=2)
    seen = figures()
    assert seen["lcm_last_tick_timestamp_seconds"] == {("cml-eu",): START.timestamp()}
    mine = ("usage-record", "observer")
    assert seen["lcm_observer_last_run_timestamp_seconds"] == {mine: START.timestamp()}
    assert seen["lcm_observer_last_failures"] == {mine: 2}
    assert seen["lcm_observer_interval_seconds"][mine] == 300
    assert ("service-discovery", "observer") in seen["lcm_observer_lag_seconds"]


NAMES = ["unmet_demand", "oldest_pending_seconds", "leases_used", "leases_limit", "warm_slots_missing"]


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_pool_has_figures_too(pool, name):
    """A value of 0 is exported, so that graphs have no gaps and alerts can distinguish 0 from absent."""
    assert figures()[f"lcm_{name}"] == {("cml-eu",): 0}


@pytest.mark.parametrize("change", [{"cordoned": True}, {"interruption_deadline": START}])
def test_a_slot_that_accepts_no_sessions_is_not_warm(configure_pool, change):
    fleet = configure_pool(warm_slots=1)
    fleet.slot(**change)
    assert figures()["lcm_warm_slots_missing"] == {("cml-eu",): 1}
    configure_pool(enabled=False)
    assert figures()["lcm_warm_slots_missing"] == {("cml-eu",): 0}


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


def test_a_tick_is_timed_by_step_and_its_placements_counted(fleet):
    fleet.slot()
    fleet.reservation()
    names = [("lcm_tick_seconds_count", {}), ("lcm_tick_step_seconds_count", {"step": "place"})]
    before = [value(name, pool="cml-eu", **labels) for name, labels in names]
    placed = value("lcm_placements_total", pool="cml-eu")
    scheduling_tick(fleet.reload_pool(), fleet.runtime, fleet.clock, TickMetrics())
    after = [value(name, pool="cml-eu", **labels) for name, labels in names]
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 1]
    assert value("lcm_placements_total", pool="cml-eu") == placed + 1


def test_launches_are_counted_by_their_result(fleet):
    before = {
        name: value("lcm_launches_total", pool="cml-eu", result=name) for name in ("launched", "capacity")
    }
    fleet.slot(SlotState.BOOTING)
    fleet.slot(SlotState.LAUNCHING)
    fleet.runtime.error = CapacityRefused("none left")
    fleet.launch()
    after = {name: value("lcm_launches_total", pool="cml-eu", result=name) for name in before}
    assert {name: after[name] - before[name] for name in before} == {"launched": 1, "capacity": 1}
