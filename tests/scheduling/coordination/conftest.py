"""A separate coordinator, and the fixed time of its runs."""

from __future__ import annotations

import pytest

from scheduling.capacity import tick_trigger
from scheduling.coordination.coordinator import ScheduleCoordinator
from tests.support.capacity_fixtures import now

__all__ = ["now"]


@pytest.fixture
def empty_coordinator() -> ScheduleCoordinator:
    """An empty coordinator, so that registrations stay within the test."""
    return ScheduleCoordinator()


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    monkeypatch.setattr(tick_trigger, "_send", lambda _: None)
