"""Snapshots as JSON: the input of a cycle, exported for a replay; also the format of test scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from pydantic import TypeAdapter

from lcm.domain.validation import read_by, sentence, suggestion
from scheduling.options import InvalidOptions, Options, choice, read_options, rows
from scheduling.placement.framework import snapshot_fields as doc
from scheduling.placement.framework.amounts import GPU, UNIT
from scheduling.placement.framework.model import (
    FOREVER,
    ROOT,
    Gang,
    Job,
    JobPart,
    Node,
    Queue,
    Snapshot,
    Task,
)

FORMAT = 1
Problems = Iterator[tuple[str, str]]


class InvalidSnapshot(Exception):
    """Problems of a document: a path and a sentence each."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        super().__init__("\n".join(f"{path or 'document'}: {text}" for path, text in self.problems.items()))


def read_snapshot(document: str | bytes) -> Snapshot:
    """Return the snapshot of a document; raise `InvalidSnapshot` with every problem."""
    try:
        values = json.loads(document, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidSnapshot({"": f"This is not JSON: {error}."}) from error
    return snapshot_from(values)


def snapshot_from(values: object) -> Snapshot:
    """Return the snapshot of plain values."""
    try:
        return _snapshot(read_options(SnapshotDocument, values))
    except InvalidOptions as error:
        raise InvalidSnapshot(error.problems) from error


def write_snapshot(snapshot: Snapshot) -> str:
    """Return the document of a snapshot; reading it returns an equal snapshot."""
    return json.dumps(as_document(snapshot), indent=1, ensure_ascii=False) + "\n"


def as_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return plain values without defaults."""
    document = SnapshotDocument(
        format=FORMAT,
        pool=snapshot.pool,
        now=snapshot.now,
        templates=tuple(snapshot.templates),
        coming=tuple(snapshot.coming),
        max_nodes=snapshot.max_nodes,
        nodes=tuple(snapshot.nodes),
        queues=tuple(snapshot.queues.values()),
        jobs=tuple(_row_of(job) for job in snapshot.jobs),
    )
    values: dict[str, Any] = TypeAdapter(SnapshotDocument).dump_python(
        document, mode="json", exclude_defaults=True
    )
    return values


def _version(value: object) -> int:
    if value != FORMAT:
        raise sentence(f"“format” is {json.dumps(value)}; only {FORMAT} can be read.")
    return FORMAT


@dataclass(frozen=True, kw_only=True)
class TaskRow(Options):
    """A kernel; with a node if it runs."""

    request: doc.Capacity
    name: doc.TextOrNone = ""
    ports: doc.Ports = 0
    node: doc.TextOrNone = ""
    devices: doc.HeldGpus = ()

    @property
    def task(self) -> Task:
        return Task(self.name, self.request, self.ports)


@dataclass(frozen=True, kw_only=True)
class JobRow(Options):
    """A reservation with the parts of its running tasks."""

    id: doc.Text
    queue: doc.Text
    tasks: Annotated[tuple[TaskRow, ...], rows()]
    owner: doc.TextOrNone = ""
    name: doc.TextOrNone = ""
    priority: doc.Priority = 50
    preemptible: doc.Flag = False
    created: doc.Time = 0
    gang: Annotated[Gang, choice(Gang)] = Gang.TOGETHER
    system: doc.TextOrNone = ""
    labels: doc.Labels = field(default_factory=dict)
    starts: doc.Time = 0
    ends: doc.TimeOrNever = FOREVER
    held_on: doc.TextOrNone = ""
    verdict: doc.TextOrNone = ""
    leaving: doc.Flag = False


NodeRows = Annotated[tuple[Node, ...], rows(required=False)]


@dataclass(frozen=True, kw_only=True)
class SnapshotDocument(Options):
    """The whole document, with the checks across its sections."""

    format: Annotated[int, read_by(_version, {"const": FORMAT})]
    pool: doc.TextOrNone = ""
    now: doc.Time
    templates: NodeRows = ()
    coming: NodeRows = ()
    max_nodes: doc.Leases | None = None
    nodes: NodeRows = ()
    queues: Annotated[tuple[Queue, ...], rows(required=False)] = ()
    jobs: Annotated[tuple[JobRow, ...], rows(required=False)] = ()

    def problems(self) -> dict[str, str]:
        problems = dict(self._duplicates("nodes", [node.key for node in self.nodes]))
        problems |= self._duplicates("queues", [queue.name for queue in self.queues])
        problems |= self._duplicates("jobs", [job.id for job in self.jobs])
        problems |= self._wrong_devices()
        return problems or dict(self._wrong_queues()) or dict(self._wrong_jobs())

    @staticmethod
    def _duplicates(what: str, keys: Sequence[str]) -> Problems:
        seen: dict[str, int] = {}
        for index, key in enumerate(keys):
            if key in seen:
                yield f"{what}[{index}]", f"“{key}” is already {what}[{seen[key]}]."
            seen.setdefault(key, index)

    def _wrong_devices(self) -> Problems:
        lists = {"nodes": self.nodes, "templates": self.templates, "coming": self.coming}
        named = [
            (f"{key}[{index}]", node) for key, rows_ in lists.items() for index, node in enumerate(rows_)
        ]
        for path, node in named:
            if node.devices and sum(node.devices) != node.capacity[GPU]:
                gpus, capacity = sum(node.devices) / UNIT, node.capacity[GPU] / UNIT
                text = f"The devices add up to {gpus:g} GPUs, but the capacity is {capacity:g}."
                yield f"{path}.devices", text
            yield from _unknown_devices(f"{path}.taken_devices", node.taken_devices, node)

    def _wrong_queues(self) -> Problems:
        parents = {queue.name: queue.parent for queue in self.queues}
        for index, queue in enumerate(self.queues):
            if queue.parent != ROOT and queue.parent not in parents:
                path = f"queues[{index}].parent"
                yield path, f"There is no queue “{queue.parent}”{suggestion(queue.parent, parents)}"
            elif cycle := _find_cycle(queue.name, parents):
                yield f"queues[{index}].parent", f"The queues form a cycle: {' → '.join(cycle)}."

    def _wrong_jobs(self) -> Problems:
        nodes = {node.key: node for node in self.nodes}
        queues = {queue.name for queue in self.queues}
        for index, job in enumerate(self.jobs):
            path = f"jobs[{index}]"
            for key, name in (("queue", job.queue), ("owner", job.owner)):
                if name not in queues and (name or key == "queue"):
                    yield f"{path}.{key}", f"There is no queue “{name}”{suggestion(name, queues)}"
            yield from _wrong_tasks(path, job, nodes)


def _find_cycle(name: str, parents: Mapping[str, str]) -> list[str]:
    """Return the path from a queue back to itself, if there is one."""
    cycle = [name]
    while (above := parents.get(cycle[-1], ROOT)) != ROOT:
        if above in cycle:
            return [*cycle, above] if above == name else []
        cycle.append(above)
    return []


def _wrong_tasks(path: str, job: JobRow, nodes: Mapping[str, Node]) -> Problems:
    running = {task.node for task in job.tasks}
    if "" in running and len(running) > 1:
        yield f"{path}.tasks", "Some tasks run and others do not: either every task has a node, or none."
    elif len(running) > 1 and job.gang is Gang.TOGETHER:
        yield f"{path}.tasks", "The tasks run on several nodes, but the gang is “together”."
    for number_, task in enumerate(job.tasks):
        where = f"{path}.tasks[{number_}]"
        if task.node and task.node not in nodes:
            yield f"{where}.node", f"There is no node “{task.node}”{suggestion(task.node, nodes)}"
        elif task.node:
            yield from _unknown_devices(f"{where}.devices", task.devices, nodes[task.node])
        elif task.devices:
            yield f"{where}.devices", "Only a task that runs holds devices."


def _unknown_devices(path: str, held: doc.Shares, node: Node) -> Problems:
    count = len(node.gpus())
    for device, _ in held:
        if device >= count:
            gpus = "1 GPU" if count == 1 else f"{count} GPUs"
            yield path, f"{node.name} has {gpus} and no GPU {device}."


def _snapshot(document: SnapshotDocument) -> Snapshot:
    return Snapshot(
        now=document.now,
        nodes=list(document.nodes),
        queues={queue.name: queue for queue in document.queues},
        jobs=[_job(row) for row in document.jobs],
        templates=list(document.templates),
        pool=document.pool,
        max_nodes=document.max_nodes,
        coming=list(document.coming),
    )


def _job(row: JobRow) -> Job:
    tasks, labels = tuple(task.task for task in row.tasks), tuple(sorted(row.labels.items()))
    return Job(**{**vars(row), "tasks": tasks, "labels": labels}, parts=_parts(row.tasks))


def _parts(tasks: Iterable[TaskRow]) -> tuple[JobPart, ...]:
    """Return one part per node, with the GPU shares of its tasks."""
    by_node: dict[str, JobPart] = {}
    for task in tasks:
        if task.node:
            part = JobPart(task.node, (task.task,), task.devices)
            by_node[task.node] = by_node[task.node].joined(part) if task.node in by_node else part
    return tuple(by_node.values())


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _row_of(job: Job) -> JobRow:
    values = {column.name: getattr(job, column.name) for column in fields(JobRow)}
    return JobRow(**{**values, "tasks": tuple(_task_rows(job)), "labels": dict(job.labels)})


def _task_rows(job: Job) -> Iterator[TaskRow]:
    """Return waiting tasks, or running tasks with their node; GPU shares are at the first task of a part."""
    for part in job.parts or (JobPart("", job.tasks),):
        for index, task in enumerate(part.tasks):
            devices = () if index else part.devices
            yield TaskRow(
                name=task.name, request=task.request, ports=task.ports, node=part.node, devices=devices
            )
