"""Plugin that orders jobs first come, first served."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.placement.framework.model import Job
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("submit_order")
@dataclass(frozen=True)
class SubmitOrderPlugin(Plugin):
    """Place the oldest job first."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_job_order_fn(compare, key=lambda job: job.created)


def compare(left: Job, right: Job) -> int:
    return (left.created > right.created) - (left.created < right.created)
