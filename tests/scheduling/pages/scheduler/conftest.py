"""A pool that is driven by hand at the present moment, and clients that are logged in."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.scheduling.pages.capacity.conftest import by, words
from tests.support.capacity_fixtures import fleet, lab, pool, runtime, tuned
from tests.support.fake_runtime import Clock

__all__ = ["by", "fleet", "lab", "pool", "runtime", "tuned", "words"]


@pytest.fixture
def clock(now: datetime) -> Clock:
    return Clock(now)
