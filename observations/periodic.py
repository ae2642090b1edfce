"""Periodic tasks of observations."""

from __future__ import annotations

from lcm.periodic import PeriodicTaskSpec, seconds


def specs() -> list[PeriodicTaskSpec]:
    return [
        PeriodicTaskSpec("refresh-reviews", "observations.tasks.refresh_reviews", seconds("REVIEW_INTERVAL"))
    ]
