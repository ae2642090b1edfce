"""Plugin that limits what a domain, project or user may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduling.options import InvalidOptions, suggestion, wrong_type
from scheduling.placement.framework.amounts import RESOURCES, UNIT, UNITS, WORDS, amount_text, in_units
from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import ROOT, Job, JobPart
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession

SESSIONS = "sessions"
LIMITED = (*RESOURCES, SESSIONS)


def limits() -> Any:
    """Declare a mapping of queue to resource to maximum."""

    def read(key: str, value: Any) -> Mapping[str, Mapping[str, int]]:
        if not isinstance(value, Mapping) or not all(isinstance(each, Mapping) for each in value.values()):
            raise wrong_type(key, value, "an object of queues, each with its limits")
        return {str(queue): _limit(f"{key}.{queue}", amounts) for queue, amounts in value.items()}

    return field(default_factory=dict, metadata={"read": read})


def _limit(key: str, amounts: Mapping[str, Any]) -> dict[str, int]:
    for name, value in amounts.items():
        if name not in LIMITED:
            raise InvalidOptions({f"{key}.{name}": f"“{name}” cannot be limited{suggestion(name, LIMITED)}"})
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
            raise wrong_type(f"{key}.{name}", value, "zero or more")
        if name == SESSIONS and value != int(value):
            raise wrong_type(f"{key}.{name}", value, "a whole number")
    return {name: int(value) if name == SESSIONS else in_units(value) for name, value in amounts.items()}


@register_plugin("quota")
@dataclass(frozen=True)
class QuotaPlugin(Plugin):
    """Keep a job waiting that would exceed the limit of its queue or of a parent queue."""

    owns = ("quota gate",)

    limits: Mapping[str, Mapping[str, int]] = limits()

    def on_session_open(self, ssn: SchedulingSession) -> None:
        held = _Held(ssn, self.limits)
        if held.limits:
            ssn.add_job_over_capacity_fn(held.over)
            ssn.add_event_handler(allocate=held.add, deallocate=held.remove)


class _Held:
    """Amounts held by each limited queue, updated by every placement."""

    def __init__(self, ssn: SchedulingSession, configured: Mapping[str, Mapping[str, int]]) -> None:
        self._queues = ssn.queues
        known = {name: queue.quota for name, queue in ssn.queues.items() if queue.quota}
        self.limits = {**known, **{name: {**known.get(name, {}), **own} for name, own in configured.items()}}
        self._held: dict[str, dict[str, int]] = {name: dict.fromkeys(LIMITED, 0) for name in self.limits}
        self._jobs: dict[str, int] = {}
        if self.limits:
            for job in ssn.snapshot.running:
                for part in job.parts:
                    self.add(job, part)

    def over(self, job: Job) -> Reason | None:
        requested = {**dict(zip(RESOURCES, job.request, strict=True)), SESSIONS: 1}
        for queue in self._limited_above(job):
            for name, limit in self.limits[queue].items():
                held = self._held[queue][name]
                if held + requested[name] > limit and requested[name]:
                    return Reason("quota", _quota_text(queue, name, held, requested[name], limit))
        return None

    def add(self, job: Job, part: JobPart) -> None:
        self._change(job, part, 1)

    def remove(self, job: Job, part: JobPart) -> None:
        self._change(job, part, -1)

    def _change(self, job: Job, part: JobPart, sign: int) -> None:
        before = self._jobs.get(job.id, 0)
        self._jobs[job.id] = after = before + sign
        # A job counts once, however many parts it has.
        jobs = (after > 0) - (before > 0)
        for queue in self._limited_above(job):
            held = self._held[queue]
            held[SESSIONS] += jobs
            for name, amount in zip(RESOURCES, part.request, strict=True):
                held[name] += sign * amount

    def _limited_above(self, job: Job) -> list[str]:
        found, name = [], job.leaf
        while name != ROOT:
            if name in self.limits:
                found.append(name)
            name = self._queues[name].parent if name in self._queues else ROOT
        return found


def _quota_text(queue: str, name: str, held: int, requested: int, limit: int) -> str:
    if name == SESSIONS:
        if limit > 1:
            return f"{queue} has {held} of the {limit} sessions it may have at once."
        if limit:
            return f"{queue} has the only session it may have at once."
        return f"{queue} may have no sessions."
    of = f" of {WORDS[name]}" if UNITS[name] == "GB" else ""
    most = amount_text(limit, name)
    return f"{queue} may hold {most}{of}: it holds {held / UNIT:g}, {requested / UNIT:g} more requested."
