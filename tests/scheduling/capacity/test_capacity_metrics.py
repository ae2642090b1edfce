"""Prometheus metrics of a pool."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY

from scheduling.capacity.runtimes.base import CapacityRefused
from scheduling.capacity.tick import scheduling_tick
from scheduling.metrics import TickMetrics, capacity_figures
from scheduling.models import ObserverRun, SlotState, TickRun
from tests.support.fake_runtime import START


def exported_metrics() -> dict[str, dict[tuple[str, ...], float]]:
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
    metrics = exported_metrics()
    assert metrics["lcm_slots"] == {("cml-eu", "READY"): 2, ("cml-eu", "BOOTING"): 1}
    assert metrics["lcm_reservations"] == {("cml-eu", "PENDING"): 2, ("cml-eu", "READY"): 1}
    assert metrics["lcm_unmet_demand"] == {("cml-eu",): 2}
    assert metrics["lcm_oldest_pending_seconds"][("cml-eu",)] >= 0
    assert (metrics["lcm_leases_used"], metrics["lcm_leases_limit"]) == ({("cml-eu",): 1}, {("cml-eu",): 20})
    assert metrics["lcm_warm_slots_missing"] == {("cml-eu",): 2}


def test_ticks_and_observers_export_their_last_run(configure_pool):
    fleet = configure_pool()
    TickRun.objects.create(pool=fleet.pool, started_at=START, duration_ms=1)
    ObserverRun.objects.create(observer="usage-record", started_at=START, duration_ms=1, failure_count=2)
    metrics = exported_metrics()
    assert metrics["lcm_last_tick_timestamp_seconds"] == {("cml-eu",): START.timestamp()}
    labels = ("usage-record", "observer")
    assert metrics["lcm_observer_last_run_timestamp_seconds"] == {labels: START.timestamp()}
    assert metrics["lcm_observer_last_failures"] == {labels: 2}
    assert metrics["lcm_observer_interval_seconds"][labels] == 300
    assert ("service-discovery", "observer") in metrics["lcm_observer_lag_seconds"]


NAMES = ["unmet_demand", "oldest_pending_seconds", "leases_used", "leases_limit", "warm_slots_missing"]


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_pool_exports_zeros(pool, name):
    """A value of 0 is exported, so that graphs have no gaps and alerts can distinguish 0 from absent."""
    assert exported_metrics()[f"lcm_{name}"] == {("cml-eu",): 0}


@pytest.mark.parametrize("change", [{"cordoned": True}, {"interruption_deadline": START}])
def test_a_slot_that_accepts_no_sessions_is_not_warm(configure_pool, change):
    fleet = configure_pool(warm_slots=1)
    fleet.slot(**change)
    assert exported_metrics()["lcm_warm_slots_missing"] == {("cml-eu",): 1}
    configure_pool(enabled=False)
    assert exported_metrics()["lcm_warm_slots_missing"] == {("cml-eu",): 0}


def metric_value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0


def test_tick_duration_by_step_and_placements_are_exported(fleet):
    fleet.slot()
    fleet.reservation()
    names = [("lcm_tick_seconds_count", {}), ("lcm_tick_step_seconds_count", {"step": "place"})]
    before = [metric_value(name, pool="cml-eu", **labels) for name, labels in names]
    placed = metric_value("lcm_placements_total", pool="cml-eu")
    scheduling_tick(fleet.reload_pool(), fleet.runtime, fleet.clock, TickMetrics())
    after = [metric_value(name, pool="cml-eu", **labels) for name, labels in names]
    assert [new - old for new, old in zip(after, before, strict=True)] == [1, 1]
    assert metric_value("lcm_placements_total", pool="cml-eu") == placed + 1


def test_launches_are_counted_by_their_result(fleet):
    before = {
        name: metric_value("lcm_launches_total", pool="cml-eu", result=name)
        for name in ("launched", "capacity")
    }
    fleet.slot(SlotState.BOOTING)
    fleet.slot(SlotState.LAUNCHING)
    fleet.runtime.error = CapacityRefused("none left")
    fleet.launch()
    after = {name: metric_value("lcm_launches_total", pool="cml-eu", result=name) for name in before}
    assert {name: after[name] - before[name] for name in before} == {"launched": 1, "capacity": 1}
