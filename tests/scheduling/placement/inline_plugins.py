"""Cycles with plugins defined inline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.placement.framework.amounts import NOTHING, Units, amounts_of
from scheduling.placement.framework.configuration import Configuration, PluginChoice
from scheduling.placement.framework.cycle import Cycle, run_cycle
from scheduling.placement.framework.model import Job, JobPart, Node, Queue, Snapshot, Task
from scheduling.placement.framework.plugin import Plugin
from scheduling.placement.framework.session import SchedulingSession

BUILT_IN = (
    "resources", "system", "ports", "labels", "cordon", "leases", "quota", "priority", "fairshare",
    "submit_order", "timeslot", "binpack", "spread", "spot", "gpupack", "gpuspread",
)  # fmt: skip


@dataclass(frozen=True)
class InlinePlugin(Plugin):
    """A plugin that consists of one function."""

    name: str = "inline"  # type: ignore[misc]
    on_open: Callable[[SchedulingSession], None] = lambda _: None
    on_close: Callable[[SchedulingSession], None] = lambda _: None

    def on_session_open(self, ssn: SchedulingSession) -> None:
        self.on_open(ssn)

    def on_session_close(self, ssn: SchedulingSession) -> None:
        self.on_close(ssn)


@dataclass(frozen=True)
class ConfigurationWithInlinePlugins(Configuration):
    """Plugins by name, followed by inline plugins."""

    inline_plugins: tuple[Plugin, ...] = ()

    def plugins(self) -> list[Plugin]:
        return [*super().plugins(), *self.inline_plugins]


def run_with(
    snapshot: Snapshot,
    *inline_plugins: Plugin,
    names: Sequence[str] = ("resources", "leases", "priority", "fairshare", "binpack"),
    actions: Sequence[str] = ("allocate",),
) -> Cycle:
    return run_cycle(
        snapshot,
        ConfigurationWithInlinePlugins(
            tuple(actions), tuple(PluginChoice(name) for name in names), inline_plugins
        ),
    )


def units(*amounts: int) -> Units:
    """Return amounts in the order of the table; those not given are 0."""
    return (*amounts, *NOTHING[len(amounts) :])


def node(name: str, cpu: float = 4, memory: float = 8, gpu: float = 0, **fields: Any) -> Node:
    return Node(name, amounts_of({"cpu_cores": cpu, "memory_gb": memory, "gpu": gpu}), **fields)


def job(
    name: str, cpu: float = 1, memory: float = 0, gpu: float = 0, queue: str = "lab", **fields: Any
) -> Job:
    request = amounts_of({"cpu_cores": cpu, "memory_gb": memory, "gpu": gpu})
    return Job(name, queue, (Task("t", request, fields.pop("ports", 0)),), **fields)


def running_on(node_name: str, job: Job) -> Job:
    """Return the job as running on this node."""
    job.parts = (JobPart(node_name, job.tasks),)
    return job


def snapshot(nodes: Sequence[Node], jobs: Sequence[Job], *queues: Queue) -> Snapshot:
    rows = queues or (Queue("lab"),)
    return Snapshot(1_000.0, nodes, {queue.name: queue for queue in rows}, jobs)
