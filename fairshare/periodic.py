"""Periodic tasks of fair share besides its observers."""

from __future__ import annotations

from datetime import timedelta

from lcm.periodic import PeriodicTaskSpec


def specs() -> list[PeriodicTaskSpec]:
    return [
        PeriodicTaskSpec(
            "usage-retention", "fairshare.tasks.remove_old_usage", timedelta(days=1), timedelta(minutes=10)
        ),
        PeriodicTaskSpec(
            "usage-check", "fairshare.tasks.check_usage", timedelta(days=1), timedelta(minutes=5)
        ),
    ]
