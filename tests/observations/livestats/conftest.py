"""A stand-in for Prometheus that returns configured responses, and LCM configured to use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fake_prometheus import ENOUGH, FakePrometheus, run_fake_prometheus


@pytest.fixture
def prometheus(settings: Any) -> Iterator[FakePrometheus]:
    """A stand-in known to LCM, without caching."""
    with run_fake_prometheus() as made:
        settings.CONFIG |= {
            "PROMETHEUS_URL": made.url,
            "LIVE_STATS_CACHE": 0.0,
            "PROMETHEUS_TIMEOUT": ENOUGH,
        }
        yield made
