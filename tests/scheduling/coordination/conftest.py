"""A separate coordinator, and sessions in any status at any time."""

from __future__ import annotations

from datetime import datetime

import pytest

from scheduling.capacity import tick_trigger
from scheduling.coordination.coordinator import ScheduleCoordinator
from tests.support.fake_runtime import START, Clock


@pytest.fixture
def now() -> datetime:
    return START


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def empty_coordinator() -> ScheduleCoordinator:
    """An empty coordinator, so that registrations stay within the test."""
    return ScheduleCoordinator()


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    monkeypatch.setattr(tick_trigger, "_send", lambda _: None)
