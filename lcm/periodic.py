"""What beat starts, how often: one list from which its schedule is made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings


@dataclass(frozen=True)
class SchedulerTaskSpec:
    """A periodic task; a lost run costs one interval, so one that waits longer than that is dropped."""

    name: str
    task: str
    interval: timedelta

    def entry(self) -> dict[str, object]:
        seconds = self.interval.total_seconds()
        return {"task": self.task, "schedule": seconds, "options": {"expires": max(seconds, 1.0)}}


def _seconds(setting: str) -> timedelta:
    return timedelta(seconds=settings.CONFIG[setting])


def specs() -> list[SchedulerTaskSpec]:
    return [
        SchedulerTaskSpec("beat-heartbeat", "lcm.tasks.beat_heartbeat", _seconds("BEAT_HEARTBEAT_INTERVAL")),
        SchedulerTaskSpec("cleanup", "lcm.tasks.clean_up", _seconds("CLEANUP_INTERVAL")),
    ]


def beat_schedule() -> dict[str, dict[str, object]]:
    return {spec.name: spec.entry() for spec in specs()}
