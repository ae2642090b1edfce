"""Beat schedule of scheduling tasks and of every registered handler and observer."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from lcm.periodic import DETECTION_INTERVAL, PeriodicTaskSpec, seconds
from scheduling.coordination.coordinator import coordinator
from scheduling.coordination.observer import interval_of

logger = logging.getLogger(__name__)

# Added to the length of a lease, this is how long work is interrupted if its process dies: 4 s for a tick.
RESUME_INTERVAL = timedelta(seconds=1)


def specs() -> list[PeriodicTaskSpec]:
    return [
        PeriodicTaskSpec("tick", "scheduling.tasks.tick_all", seconds("TICK_INTERVAL")),
        PeriodicTaskSpec("reconcile", "scheduling.tasks.reconcile_all", seconds("RECONCILE_INTERVAL")),
        PeriodicTaskSpec("resume-interrupted", "scheduling.tasks.resume_interrupted", RESUME_INTERVAL),
        PeriodicTaskSpec("delete-old-records", "scheduling.tasks.delete_old_records", timedelta(hours=1)),
        PeriodicTaskSpec("detect-events", "scheduling.tasks.detect_events", DETECTION_INTERVAL),
        *_coordinated(),
    ]


def _coordinated() -> list[PeriodicTaskSpec]:
    """Return one schedule entry per handler and observer; an invalid interval must not stop beat."""
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        ("scheduling.tasks.run_handler", coordinator.handlers),
        ("scheduling.tasks.run_observer", coordinator.observers),
    )
    found = []
    for task, registered in kinds:
        for name, each in registered.items():
            try:
                # Another package cannot replace a task of LCM, such as “tick”, by an observer of that name.
                key = f"observer:{name}" if name in coordinator.installed else name
                found.append(PeriodicTaskSpec(key, task, interval_of(each), each.initial_delay, (name,)))
            except Exception:
                logger.exception("periodic_task_not_scheduled", extra={"observer": name})
    return found
