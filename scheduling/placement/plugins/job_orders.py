"""Plugins that order jobs: by priority, and first come, first served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.placement.framework.model import Job
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("priority")
@dataclass(frozen=True)
class PriorityPlugin(Plugin):
    """Place higher priority first; only lower priority can be preempted."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_job_order_fn(key=lambda job: -job.priority)
        ssn.add_preemptable_fn(strictly_lower)


def strictly_lower(job: Job, victims: Sequence[Job]) -> list[Job]:
    return [victim for victim in victims if victim.priority < job.priority]


@register_plugin("submit_order")
@dataclass(frozen=True)
class SubmitOrderPlugin(Plugin):
    """Place the oldest job first."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_job_order_fn(key=lambda job: job.created)
