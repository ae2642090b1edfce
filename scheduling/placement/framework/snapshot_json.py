"""Snapshots as JSON: the input of a cycle, exported to be replayed elsewhere; also the format of test
scenarios."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any

from scheduling.options import REQUIRED, InvalidOptions, number, read_options, rows, setting, suggestion, text
from scheduling.placement.framework.amounts import GPU, UNIT, Amounts, as_numbers
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
from scheduling.placement.framework.snapshot_fields import (  # fmt: skip
    SESSIONS,
    JobRow,
    NodeRow,
    QueueRow,
    Shares,
    TaskRow,
    gpu_sum,
    whole_number,
)

FORMAT = 1
Problems = Iterator[tuple[str, str]]


class InvalidSnapshot(Exception):
    """Problems of a document: a place and a sentence each."""

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


def snapshot_from(values: Any) -> Snapshot:
    """Return the snapshot of plain values."""
    try:
        return _snapshot(read_options(_SnapshotDocument, values))
    except InvalidOptions as error:
        raise InvalidSnapshot(error.problems) from error


def write_snapshot(snapshot: Snapshot) -> str:
    """Return the document of a snapshot; reading it returns an equal snapshot."""
    return json.dumps(as_document(snapshot), indent=1, ensure_ascii=False) + "\n"


def as_document(snapshot: Snapshot) -> dict[str, Any]:
    """Return plain values without defaults."""
    found: dict[str, Any] = {"format": FORMAT, "pool": snapshot.pool, "now": snapshot.now}
    for key, nodes in (("templates", snapshot.templates), ("coming", snapshot.coming)):
        if nodes:
            found[key] = [_written(NodeRow, node) for node in nodes]
    if snapshot.max_nodes is not None:
        found["max_nodes"] = snapshot.max_nodes
    found["nodes"] = [_written(NodeRow, node) for node in snapshot.nodes]
    found["queues"] = [_written(QueueRow, queue) for queue in snapshot.queues.values()]
    found["jobs"] = [{**_written(JobRow, job), "tasks": list(_tasks_written(job))} for job in snapshot.jobs]
    return found


# Reading


def _version() -> Any:
    def read(key: str, value: Any) -> int:
        if value != FORMAT:
            raise InvalidOptions({key: f"“format” is {json.dumps(value)}; only {FORMAT} can be read."})
        return FORMAT

    return setting(REQUIRED, read)


@dataclass(frozen=True, kw_only=True)
class _SnapshotDocument:
    """The whole document, with the checks across its sections."""

    format: int = _version()
    now: float = number(REQUIRED, -1e12, 1e12)
    pool: str = text("")
    templates: tuple[NodeRow, ...] = rows(NodeRow, required=False)
    coming: tuple[NodeRow, ...] = rows(NodeRow, required=False)
    max_nodes: int | None = whole_number(None, 0, 1_000_000)
    nodes: tuple[NodeRow, ...] = rows(NodeRow, required=False)
    queues: tuple[QueueRow, ...] = rows(QueueRow, required=False)
    jobs: tuple[JobRow, ...] = rows(JobRow, required=False)

    def problems(self) -> dict[str, str]:
        found = dict(self._twice("nodes", [node.id or node.name for node in self.nodes]))
        found |= self._twice("queues", [queue.name for queue in self.queues])
        found |= self._twice("jobs", [job.id for job in self.jobs])
        found |= self._wrong_devices()
        return found or dict(self._wrong_queues()) or dict(self._wrong_jobs())

    @staticmethod
    def _twice(what: str, keys: Sequence[str]) -> Problems:
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
            if node.devices and gpu_sum(node) != node.capacity[GPU] / UNIT:
                capacity = node.capacity[GPU] / UNIT
                yield (
                    f"{path}.devices",
                    f"The devices make {gpu_sum(node):g} GPUs, but the capacity says {capacity:g}.",
                )
            yield from _beyond(f"{path}.taken_devices", node.taken_devices, _node(node))

    def _wrong_queues(self) -> Problems:
        parents = {queue.name: queue.parent for queue in self.queues}
        for index, queue in enumerate(self.queues):
            if queue.parent != ROOT and queue.parent not in parents:
                path = f"queues[{index}].parent"
                yield path, f"There is no queue “{queue.parent}”{suggestion(queue.parent, parents)}"
            elif way := _find_cycle(queue.name, parents):
                yield f"queues[{index}].parent", f"The queues go round in a circle: {' → '.join(way)}."

    def _wrong_jobs(self) -> Problems:
        nodes = {node.id or node.name: _node(node) for node in self.nodes}
        queues = {queue.name for queue in self.queues}
        for index, job in enumerate(self.jobs):
            path = f"jobs[{index}]"
            for key, name in (("queue", job.queue), ("owner", job.owner)):
                if name not in queues and (name or key == "queue"):
                    yield f"{path}.{key}", f"There is no queue “{name}”{suggestion(name, queues)}"
            yield from _wrong_tasks(path, job, nodes)


def _find_cycle(name: str, parents: Mapping[str, str]) -> list[str]:
    """Return the path from a queue back to itself, if there is one."""
    way = [name]
    while (above := parents.get(way[-1], ROOT)) != ROOT:
        if above in way:
            return [*way, above] if above == name else []
        way.append(above)
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
            yield from _beyond(f"{where}.devices", task.devices, nodes[task.node])
        elif task.devices:
            yield f"{where}.devices", "Only a task that runs holds devices."


def _beyond(path: str, held: Shares, node: Node) -> Problems:
    count = len(node.gpus())
    for place, _ in held:
        if place >= count:
            gpus = "1 GPU" if count == 1 else f"{count} GPUs"
            yield path, f"{node.name} has {gpus}; there is none at {place}."


def _snapshot(document: _SnapshotDocument) -> Snapshot:
    return Snapshot(
        now=document.now,
        nodes=[_node(row) for row in document.nodes],
        queues={row.name: Queue(**vars(row)) for row in document.queues},
        jobs=[_job(row) for row in document.jobs],
        templates=[_node(row) for row in document.templates],
        pool=document.pool,
        max_nodes=document.max_nodes,
        coming=[_node(row) for row in document.coming],
    )


def _node(row: NodeRow) -> Node:
    return Node(**{**vars(row), "until": FOREVER if row.until is None else row.until})


def _job(row: JobRow) -> Job:
    values = {**vars(row), "ends": FOREVER if row.ends is None else row.ends}
    values["labels"] = tuple(sorted(row.labels.items()))
    values["tasks"] = tuple(_task(task) for task in row.tasks)
    return Job(**values, parts=_parts(row.tasks))


def _task(row: TaskRow) -> Task:
    return Task(row.name, row.request, row.ports)


def _parts(tasks: Iterable[TaskRow]) -> tuple[JobPart, ...]:
    """Return one part per node, with the GPU shares of its tasks."""
    by_node: dict[str, list[TaskRow]] = {}
    for task in tasks:
        if task.node:
            by_node.setdefault(task.node, []).append(task)
    return tuple(
        JobPart(node, tuple(_task(task) for task in here), _held(here)) for node, here in by_node.items()
    )


def _held(tasks: Iterable[TaskRow]) -> Shares:
    found: dict[int, int] = {}
    for task in tasks:
        for place, amount in task.devices:
            found[place] = found.get(place, 0) + amount
    return tuple(found.items())


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


# Writing


def _written(row: type[Any], value: Any) -> dict[str, Any]:
    """Return the fields that differ from their default."""
    found = {}
    for declared in fields(row):
        if declared.name != "tasks":
            own = getattr(value, declared.name)
            if own not in (_default(declared), FOREVER, ()):
                found[declared.name] = _plain(declared.name, own)
    return found


def _default(declared: Field[Any]) -> Any:
    if declared.default_factory is not MISSING:
        return declared.default_factory()
    return declared.default


def _plain(name: str, value: Any) -> Any:
    if name in ("capacity", "taken"):
        return _numbers(value)
    if name in ("devices", "taken_devices"):
        return _devices(value)
    if name == "quota":
        return {key: each if key == SESSIONS else _short(each / UNIT) for key, each in value.items()}
    return dict(value) if name == "labels" else value


def _tasks_written(job: Job) -> Iterator[dict[str, Any]]:
    """Return waiting tasks, or running tasks with their node; the GPU shares of a part are written at its
    first task."""
    for task in () if job.parts else job.tasks:
        yield _task_written(task)
    for part in job.parts:
        for place, task in enumerate(part.tasks):
            devices = {"devices": _devices(part.devices)} if part.devices and not place else {}
            yield {**_task_written(task), "node": part.node, **devices}


def _task_written(task: Task) -> dict[str, Any]:
    found: dict[str, Any] = {"name": task.name} if task.name else {}
    found["request"] = _numbers(task.request)
    return {**found, "ports": task.ports} if task.ports else found


def _numbers(amounts: Amounts) -> dict[str, float]:
    return {name: _short(value) for name, value in as_numbers(amounts).items() if value}


def _devices(devices: Sequence[Any]) -> list[Any]:
    if devices and isinstance(devices[0], tuple):
        return [[place, _short(amount / UNIT)] for place, amount in devices]
    return [_short(amount / UNIT) for amount in devices]


def _short(value: float) -> float:
    """Write 6 rather than 6.0."""
    return int(value) if value == int(value) else value
