"""What beat starts for observations."""

from __future__ import annotations

from lcm.periodic import SchedulerTaskSpec, seconds


def specs() -> list[SchedulerTaskSpec]:
    return [
        SchedulerTaskSpec("look-at-reviews", "observations.tasks.look_at_reviews", seconds("REVIEW_INTERVAL"))
    ]
