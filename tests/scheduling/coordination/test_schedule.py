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
def test_an_interval_that_is_none_is_refused_at_start(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=name):
        read_settings()


def test_a_spec_without_an_interval_is_refused():
    with pytest.raises(ImproperlyConfigured, match="greater than 0"):
        PeriodicTaskSpec("x", "lcm.tasks.x", timedelta(0))


def test_the_first_run_does_not_wait_for_an_interval(monkeypatch):
    sent = {}
    monkeypatch.setattr(
        celery.app, "send_task", lambda name, args=(), **fields: sent.__setitem__((name, *args), fields)
    )
    celery.send_initial_tasks()
    first = sent[("scheduling.tasks.run_observer", "usage-aggregation")]
    assert first["countdown"] == 5.0
    assert first["expires"] == 3605.0
    assert ("scheduling.tasks.tick_all",) not in sent
