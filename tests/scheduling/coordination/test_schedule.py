"""Every handler and observer has an entry in the beat schedule."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from lcm import celery
from lcm.config.environment import read_settings
from lcm.periodic import PeriodicTaskSpec, beat_schedule
from scheduling.coordination.coordinator import coordinator


def test_every_handler_and_observer_is_scheduled():
    schedule = beat_schedule()
    for name in coordinator.handlers:
        assert schedule[name]["task"] == "scheduling.tasks.run_handler"
        assert schedule[name]["args"] == (name,)
    for name in coordinator.observers:
        assert schedule[name]["task"] == "scheduling.tasks.run_observer"


def test_intervals_are_settings(settings):
    settings.CONFIG |= {"USAGE_RECORD_INTERVAL": 60.0, "LIFECYCLE_INTERVAL": 7.0}
    schedule = beat_schedule()
    assert schedule["usage-record"]["schedule"] == 60.0
    assert schedule["usage-aggregation"]["schedule"] == 3600.0
    assert schedule["end-running"]["schedule"] == 7.0


@pytest.mark.parametrize(
    "name",
    [
        "LIFECYCLE_INTERVAL",
        "USAGE_RECORD_INTERVAL",
        "USAGE_AGGREGATION_INTERVAL",
        "FAIR_SHARE_INTERVAL",
        "SERVICE_DISCOVERY_INTERVAL",
    ],
)
@pytest.mark.parametrize("value", ["0", "-5", "nan"])
def test_an_interval_that_is_not_positive_is_rejected_at_start(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=name):
        read_settings()


def test_a_periodic_task_requires_an_interval():
    with pytest.raises(ImproperlyConfigured, match="greater than 0"):
        PeriodicTaskSpec("x", "lcm.tasks.x", timedelta(0))


def test_the_first_run_does_not_wait_for_an_interval(monkeypatch):
    sent_tasks = {}
    monkeypatch.setattr(
        celery.app, "send_task", lambda name, args=(), **fields: sent_tasks.__setitem__((name, *args), fields)
    )
    celery.send_initial_tasks()
    options = sent_tasks[("scheduling.tasks.run_observer", "usage-aggregation")]
    assert options["countdown"] == 5.0
    assert options["expires"] == 3605.0
    assert ("scheduling.tasks.tick_all",) not in sent_tasks
