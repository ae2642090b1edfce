"""A pool that is driven by hand at the present moment, and clients that are logged in."""

from __future__ import annotations

from datetime import datetime

import pytest

from tests.capacity_pages.conftest import by, words
from tests.scheduling.conftest import fleet, lab, pool, runtime, tuned
from tests.scheduling.fakes import Clock

__all__ = ["by", "fleet", "lab", "pool", "runtime", "tuned", "words"]


@pytest.fixture
def clock(now: datetime) -> Clock:
    return Clock(now)
