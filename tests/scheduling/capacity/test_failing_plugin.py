"""A failing plugin: the cycle continues without it and reports it."""

from prometheus_client import REGISTRY

from lcm.domain.lifecycle import SessionStatus
from scheduling.capacity.tick import scheduling_tick
from scheduling.metrics import TickMetrics
from scheduling.models import Decision, TickRun
from tests.support.scheduler_setup import FAILING, status_of

ERROR = "RuntimeError: the licence server does not respond"


def plugin_failures(pool) -> float:
    labels = {"pool": pool.name, "plugin": "failing_in_tests"}
    return REGISTRY.get_sample_value("lcm_scheduler_plugin_failures_total", labels) or 0.0


def test_the_cycle_continues_without_the_failing_plugin(configure_pool, new_session):
    fleet = configure_pool(scheduler=FAILING)
    fleet.slot()
    session = new_session()
    fleet.tick_without_errors()
    assert status_of(session) == SessionStatus.SCHEDULED
    assert TickRun.objects.get().plugins["failing_in_tests"]["error"] == ERROR


def test_the_error_of_a_plugin_is_a_reason_of_the_decision(configure_pool, new_session):
    fleet = configure_pool(scheduler=FAILING, max_slots=1)
    fleet.slot(cordoned=True)
    new_session()
    fleet.tick_without_errors()
    (failure,) = [
        reason for reason in Decision.objects.get().why.reasons if reason["code"] == "plugin-failed"
    ]
    assert failure["text"] == f"The plugin failing_in_tests failed and was ignored: {ERROR}"


def test_a_recovered_plugin_causes_a_new_decision(configure_pool, new_session):
    fleet = configure_pool(scheduler=FAILING, max_slots=1)
    fleet.slot(cordoned=True)
    new_session()
    fleet.tick_without_errors()
    configure_pool(scheduler="")
    for _ in range(2):
        fleet.clock.advance(seconds=10)
        fleet.tick_without_errors()
    before, after = Decision.objects.order_by("at")
    assert "plugin-failed" in [reason["code"] for reason in before.why.reasons]
    assert "plugin-failed" not in [reason["code"] for reason in after.why.reasons]


def test_a_metric_counts_plugin_failures(configure_pool, new_session):
    fleet = configure_pool(scheduler=FAILING)
    fleet.slot()
    new_session()
    before = plugin_failures(fleet.pool)
    assert scheduling_tick(fleet.pool, fleet.runtime, fleet.clock, TickMetrics())
    assert plugin_failures(fleet.pool) > before
    seconds = {"pool": fleet.pool.name, "plugin": "resources"}
    assert REGISTRY.get_sample_value("lcm_scheduler_plugin_seconds_total", seconds) > 0
