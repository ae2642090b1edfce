"""Plugin that places jobs near the start of their timeslot, on slots that last until its end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from scheduling.options import number
from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import FOREVER, Job, Task
from scheduling.placement.framework.nodes import Flags, Nodes, NodeState
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession

# The code of the reason for an advance booking, which is not a problem.
TOO_EARLY = "too-early"


@register_plugin("timeslot")
@dataclass(frozen=True)
class TimeslotPlugin(Plugin):
    """Place jobs from their lead time until their end, on slots that last until then."""

    lead_minutes: Annotated[float, number(0, 1440)] = 15
    """A job may be placed this many minutes before its timeslot starts."""

    @property
    def booking_text(self) -> str:
        """Return when an advance booking joins the queue."""
        if not self.lead_minutes:
            return "Advance booking. It joins the queue when its timeslot begins."
        if self.lead_minutes == 1:
            return "Advance booking. It joins the queue 1 minute before its timeslot."
        return f"Advance booking. It joins the queue {self.lead_minutes:g} minutes before its timeslot."

    def on_session_open(self, ssn: SchedulingSession) -> None:
        now, lead = ssn.now, self.lead_minutes * 60
        # The same text for all advance bookings, without the time: pages and the API show it per session.
        early = Reason(TOO_EARLY, self.booking_text)

        def in_time(task: Task, job: Job) -> Reason | None:
            if job.starts - lead > now:
                return early
            return Reason("too-late", "Its timeslot is over.") if job.ends <= now else None

        ssn.add_pre_predicate_fn(in_time)
        limits = sorted({node.until for node in ssn.snapshot.nodes if node.until != FOREVER})
        if limits:
            ssn.add_shape_fn(lambda job: sum(1 for limit in limits if limit < job.ends))
            ssn.add_predicate_fn(
                stays_until_end, batch=stays_batch, code="timeslot", summary=leaves_early_text, fixed=True
            )


def stays_until_end(task: Task, job: Job, node: NodeState) -> Reason | None:
    if node.node.until >= job.ends:
        return None
    return Reason("timeslot", f"terminates at {_clock(node.node.until)}, before the timeslot ends")


def leaves_early_text(task: Task, job: Job, nodes: Nodes) -> str:
    return "terminating before the timeslot ends"


def stays_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    stays: Flags = nodes.until >= job.ends
    return stays


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
