"""A pool that a test drives by hand at the current time, and signed-in clients."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.scheduling.pages.capacity.conftest import by, words
from tests.support.capacity_fixtures import fleet, new_session, pool, runtime, configure_pool
from tests.support.fake_runtime import Clock

__all__ = ["by", "fleet", "new_session", "pool", "runtime", "configure_pool", "words"]


@pytest.fixture
def clock(now: datetime) -> Clock:
    return Clock(now)
