"""What beat starts for capacity, and for every handler and observer that is registered."""

from __future__ import annotations

from datetime import timedelta

from lcm.periodic import SchedulerTaskSpec, seconds
from scheduling.coordinator import coordinator

# With the length of a lease this is how long work stands still after its process died: 4 s for a tick.
RESUME_INTERVAL = timedelta(seconds=1)


def specs() -> list[SchedulerTaskSpec]:
    return [
        SchedulerTaskSpec("tick", "scheduling.tasks.tick_all", seconds("TICK_INTERVAL")),
        SchedulerTaskSpec("reconcile", "scheduling.tasks.reconcile_all", seconds("RECONCILE_INTERVAL")),
        SchedulerTaskSpec("resume-interrupted", "scheduling.tasks.resume_interrupted", RESUME_INTERVAL),
        SchedulerTaskSpec("forget-ticks", "scheduling.tasks.forget_ticks", timedelta(hours=1)),
        *_coordinated(),
    ]


def _coordinated() -> list[SchedulerTaskSpec]:
    kinds = (
        ("scheduling.tasks.run_handler", coordinator.handlers),
        ("scheduling.tasks.run_observer", coordinator.observers),
    )
    return [
        SchedulerTaskSpec(name, task, seconds(each.interval_setting), each.initial_delay, (name,))
        for task, registered in kinds
        for name, each in registered.items()
    ]
