"""Periodic tasks of observations."""

from __future__ import annotations

from lcm.periodic import PeriodicTaskSpec, seconds


def specs() -> list[PeriodicTaskSpec]:
    return [
        PeriodicTaskSpec("look-at-reviews", "observations.tasks.look_at_reviews", seconds("REVIEW_INTERVAL"))
    ]
