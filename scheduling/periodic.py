"""What beat starts for capacity."""

from __future__ import annotations

from datetime import timedelta

from lcm.periodic import SchedulerTaskSpec, seconds


def specs() -> list[SchedulerTaskSpec]:
    return [
        SchedulerTaskSpec("tick", "scheduling.tasks.tick_all", seconds("TICK_INTERVAL")),
        SchedulerTaskSpec("reconcile", "scheduling.tasks.reconcile_all", seconds("RECONCILE_INTERVAL")),
        SchedulerTaskSpec("forget-ticks", "scheduling.tasks.forget_ticks", timedelta(hours=1)),
    ]
