"""Fixtures: observed sessions, and a stand-in for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletDefinition, LabletSession
from tests.support.fake_prometheus import ENOUGH, FakePrometheus, run_fake_prometheus
from tests.support.observed_labs import make_past_session, post, seen


@pytest.fixture
def running(active_definition, project, operator, now) -> LabletSession:
    """A session that has been running for an hour."""
    return make_past_session(active_definition, project, operator, ended=now, until=SessionStatus.RUNNING)


@pytest.fixture
def collecting(active_definition, project, operator, now) -> LabletSession:
    """A session whose lab is about to be torn down."""
    return make_past_session(active_definition, project, operator, ended=now)


@pytest.fixture
def observed(project, operator, now: datetime) -> Callable[..., list[LabletSession]]:
    """`observed(definition, 22, cpu="1.00")` creates sessions an hour apart, each observed at its end."""

    def make(definition: LabletDefinition, count: int, **figures: Any) -> list[LabletSession]:
        definition.refresh_from_db()
        sessions = []
        for index in range(count):
            at = now - timedelta(hours=count - index)
            session = make_past_session(definition, project, operator, ended=at)
            post(session, seen(at, **figures), now)
            sessions.append(session)
        definition.refresh_from_db()
        return sessions

    return make


@pytest.fixture
def known(active_definition, observed) -> LabletDefinition:
    """The small lab of 4 cores, 3.5 GB and 7 GB, with ten sessions that used half the cores."""
    for hundredths in (150, 160, 170, 180, 190, 200, 150, 160, 170, 300):
        observed(active_definition, 1, cpu=f"{hundredths / 100:.2f}", memory=2500, storage=5000)
    return active_definition


@pytest.fixture
def prometheus(settings: Any) -> Iterator[FakePrometheus]:
    """A stand-in known to LCM, without caching."""
    with run_fake_prometheus() as made:
        settings.CONFIG |= {
            "PROMETHEUS_URL": made.url,
            "LIVE_STATS_CACHE_SECONDS": 0.0,
            "PROMETHEUS_TIMEOUT": ENOUGH,
        }
        yield made
