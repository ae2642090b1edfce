"""A pool whose ticks a test runs step by step at the current time, and signed-in clients."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.scheduling.pages.capacity.conftest import login_as, page_text
from tests.support.capacity_fixtures import configure_pool, fleet, new_session, pool, runtime
from tests.support.fake_runtime import Clock

__all__ = ["configure_pool", "fleet", "login_as", "new_session", "page_text", "pool", "runtime"]


@pytest.fixture
def clock(now: datetime) -> Clock:
    return Clock(now)
