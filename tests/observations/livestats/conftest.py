"""A Prometheus that says what it is told, and LCM told where it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fake_prometheus import ENOUGH, StandIn, stand_in


@pytest.fixture
def prometheus(settings: Any) -> Iterator[StandIn]:
    """Known to LCM; every question is asked, none is answered from before."""
    with stand_in() as made:
        settings.CONFIG |= {
            "PROMETHEUS_URL": made.url,
            "LIVE_STATS_CACHE": 0.0,
            "PROMETHEUS_TIMEOUT": ENOUGH,
        }
        yield made
