"""Periodic tasks of observations."""

from __future__ import annotations

from lcm.periodic import DETECTION_INTERVAL, PeriodicTaskSpec, seconds


def specs() -> list[PeriodicTaskSpec]:
    return [
        PeriodicTaskSpec("refresh-reviews", "observations.tasks.refresh_reviews", seconds("REVIEW_INTERVAL")),
        PeriodicTaskSpec("detect-silent-controllers", "observations.tasks.detect_events", DETECTION_INTERVAL),
    ]
