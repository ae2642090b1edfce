"""Cycles with plugins defined inline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.placement.framework.amounts import amounts_of
from scheduling.placement.framework.configuration import Configuration, PluginChoice
from scheduling.placement.framework.cycle import Cycle, run_cycle
from scheduling.placement.framework.model import Job, JobPart, Node, Queue, Snapshot, Task
from scheduling.placement.framework.plugin import Plugin
from scheduling.placement.framework.session import SchedulingSession


@dataclass(frozen=True)
class Inline(Plugin):
    """A plugin that consists of one function."""

    name: str = "inline"  # type: ignore[misc]
    opens: Callable[[SchedulingSession], None] = lambda _: None
    closes: Callable[[SchedulingSession], None] = lambda _: None

    def on_session_open(self, ssn: SchedulingSession) -> None:
        self.opens(ssn)

    def on_session_close(self, ssn: SchedulingSession) -> None:
        self.closes(ssn)


@dataclass(frozen=True)
class Mixed(Configuration):
    """Plugins by name, followed by inline ones."""

    more: tuple[Plugin, ...] = ()

    def plugins(self) -> list[Plugin]:
        return [*super().plugins(), *self.more]


def run_with(
    snapshot: Snapshot,
    *more: Plugin,
    names: Sequence[str] = ("resources", "leases", "priority", "fairshare", "binpack"),
    actions: Sequence[str] = ("allocate",),
) -> Cycle:
    return run_cycle(snapshot, Mixed(tuple(actions), tuple(PluginChoice(name) for name in names), more))


def node(name: str, cpu: float = 4, memory: float = 8, gpu: float = 0, **more: Any) -> Node:
    return Node(name, amounts_of({"cpu_cores": cpu, "memory_gb": memory, "gpu": gpu}), **more)


def job(name: str, cpu: float = 1, memory: float = 0, gpu: float = 0, queue: str = "lab", **more: Any) -> Job:
    asked = amounts_of({"cpu_cores": cpu, "memory_gb": memory, "gpu": gpu})
    return Job(name, queue, (Task("t", asked, more.pop("ports", 0)),), **more)


def on(where: str, waiting: Job) -> Job:
    """The same job, running."""
    waiting.parts = (JobPart(where, waiting.tasks),)
    return waiting


def snapshot(nodes: Sequence[Node], jobs: Sequence[Job], *queues: Queue) -> Snapshot:
    rows = queues or (Queue("lab"),)
    return Snapshot(1_000.0, nodes, {queue.name: queue for queue in rows}, jobs)
