"""Periodic tasks and the beat schedule built from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from lcm.extensions import Extension

# How often LCM looks for events that time alone causes.
DETECTION_INTERVAL = timedelta(seconds=30)


@dataclass(frozen=True)
class PeriodicTaskSpec:
    """A periodic task. A run that waits in the queue longer than one interval expires.

    A run never expires within 5 s, because the clocks of beat and worker may differ.
    """

    name: str
    task: str
    interval: timedelta
    # Delay of the first run after beat starts; None means one interval.
    initial_delay: timedelta | None = None
    args: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.interval <= timedelta(0):
            raise ImproperlyConfigured(f"The interval of {self.name} has to be greater than 0.")

    @property
    def expires(self) -> float:
        return max(self.interval.total_seconds(), 5.0)

    def entry(self) -> dict[str, object]:
        return {
            "task": self.task,
            "schedule": self.interval.total_seconds(),
            "args": self.args,
            "options": {"expires": self.expires},
        }


def seconds(setting: str) -> timedelta:
    return timedelta(seconds=settings.CONFIG[setting])


def specs() -> list[PeriodicTaskSpec]:
    return [
        PeriodicTaskSpec("beat-heartbeat", "lcm.tasks.beat_heartbeat", seconds("BEAT_HEARTBEAT_INTERVAL")),
        PeriodicTaskSpec("cleanup", "lcm.tasks.clean_up", seconds("CLEANUP_INTERVAL")),
        PeriodicTaskSpec("requeue-abandoned-jobs", "lcm.tasks.requeue_abandoned_jobs", timedelta(minutes=1)),
        PeriodicTaskSpec("detect-deadlines", "lcm.tasks.detect_deadlines", DETECTION_INTERVAL),
        PeriodicTaskSpec("route-events", "lcm.tasks.route_new_events", seconds("EVENT_INTERVAL")),
        PeriodicTaskSpec("deliver-events", "lcm.tasks.deliver_events", seconds("EVENT_INTERVAL")),
        PeriodicTaskSpec("send-mails", "lcm.tasks.send_mails", seconds("EVENT_INTERVAL")),
        PeriodicTaskSpec("prune-change-feed", "lcm.tasks.prune_change_feed", timedelta(minutes=10)),
    ]


def all_specs() -> list[PeriodicTaskSpec]:
    return [spec for specs in Extension.installed().periodic for spec in specs()]


def beat_schedule() -> dict[str, dict[str, object]]:
    return {spec.name: spec.entry() for spec in all_specs()}
