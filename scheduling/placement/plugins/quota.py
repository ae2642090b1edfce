"""Plugin that limits what a domain, project or user may hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic_core import core_schema

from lcm.domain.resources import RESOURCE, RESOURCE_NAMES
from lcm.domain.validation import Must, Reads, number_schema, sentence, suggestion
from scheduling.placement.framework.amounts import UNIT, amount_text
from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import ROOT, Job, JobPart
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession
from scheduling.placement.framework.snapshot_fields import LIMITED, SESSIONS, quota_in_units


def _check_name(name: object) -> str:
    if name not in LIMITED:
        raise sentence(f"“{name}” cannot be limited{suggestion(str(name), LIMITED)}")
    return str(name)


_LIMIT = Must("zero or more").core(number_schema(ge=0, lt=1e9))
_NAME = core_schema.no_info_plain_validator_function(_check_name)
_LIMITS = core_schema.dict_schema(core_schema.str_schema(), core_schema.dict_schema(_NAME, _LIMIT))
Limits = Annotated[Mapping[str, Mapping[str, float]], Reads(_LIMITS, {"type": "object"})]


@register_plugin("quota")
@dataclass(frozen=True)
class QuotaPlugin(Plugin):
    """Keep a job waiting that would exceed the limit of its queue or of a parent queue."""

    owns = ("quota gate",)

    limits: Limits = field(default_factory=dict)
    """Maximum by resource or `sessions`, by queue."""

    def problems(self) -> dict[str, str]:
        sessions = {
            f"limits.{queue}.{SESSIONS}": limits.get(SESSIONS, 0) for queue, limits in self.limits.items()
        }
        return {
            path: f"“{path}” must be a whole number, but is {limit}."
            for path, limit in sessions.items()
            if limit != int(limit)
        }

    def on_session_open(self, ssn: SchedulingSession) -> None:
        held = _HeldAmounts(ssn, {queue: quota_in_units(limits) for queue, limits in self.limits.items()})
        if held.limits:
            ssn.add_job_over_capacity_fn(held.exceeded)
            ssn.add_event_handler(allocate=held.add, deallocate=held.remove)


class _HeldAmounts:
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

    def exceeded(self, job: Job) -> Reason | None:
        requested = {**dict(zip(RESOURCE_NAMES, job.request, strict=True)), SESSIONS: 1}
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
            for name, amount in zip(RESOURCE_NAMES, part.request, strict=True):
                held[name] += sign * amount

    def _limited_above(self, job: Job) -> list[str]:
        limited, name = [], job.leaf
        while name != ROOT:
            if name in self.limits:
                limited.append(name)
            name = self._queues[name].parent if name in self._queues else ROOT
        return limited


def _quota_text(queue: str, name: str, held: int, requested: int, limit: int) -> str:
    if name == SESSIONS:
        if limit > 1:
            return f"{queue} has {held} of the {limit} sessions it may have at once."
        if limit:
            return f"{queue} has the only session it may have at once."
        return f"{queue} may have no sessions."
    resource = RESOURCE[name]
    of = "" if resource.named_by_unit else f" of {resource.word}"
    most = amount_text(limit, name)
    return f"{queue} may hold {most}{of}: it holds {held / UNIT:g}, {requested / UNIT:g} more requested."
