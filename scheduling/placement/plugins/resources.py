"""Plugin that requires enough of every resource."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from scheduling.placement.framework.amounts import (
    CPU,
    GPU,
    MEMORY,
    RESOURCES,
    STORAGE,
    UNIT,
    WORDS,
    amount_text,
)
from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import Flags, Nodes, NodeState, at_least, fits_devices
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("resources")
@dataclass(frozen=True)
class ResourcesPlugin(Plugin):
    """Require free CPU, memory and storage, and free GPU devices: whole GPUs for whole units."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        for which in (CPU, MEMORY, STORAGE):
            ssn.add_predicate_fn(
                partial(enough, which),
                need=(which, partial(requested_amount, which)),
                code=RESOURCES[which],
                summary=partial(lacking, which),
            )
        ssn.add_predicate_fn(
            enough_gpus, batch=enough_gpus_batch, code="gpu", summary=lacking_gpus, when=requests_gpus
        )
        ssn.add_task_order_fn(key=biggest_first)


def enough(which: int, task: Task, job: Job, node: NodeState) -> Reason | None:
    requested, free = task.request[which], node.free[which]
    if not requested or requested <= free:
        return None
    name = RESOURCES[which]
    return Reason(
        name,
        f"{WORDS[name]}: {amount_text(requested, name)} requested, {amount_text(max(free, 0), name)} free",
    )


def requested_amount(which: int, task: Task) -> int:
    return at_least(task.request[which])


def requests_gpus(task: Task, job: Job) -> bool:
    return task.request[GPU] > 0


def lacking(which: int, task: Task, job: Job, nodes: Nodes) -> str:
    name = RESOURCES[which]
    most = max(int(nodes.free[:, which].max()), 0)
    requested, free = amount_text(task.request[which], name), amount_text(most, name)
    return f"insufficient {WORDS[name]} ({requested} requested, at most {free} free)"


def enough_gpus(task: Task, job: Job, node: NodeState) -> Reason | None:
    requested = task.request[GPU]
    whole, rest = divmod(requested, UNIT)
    free = node.free_devices
    untouched = sum(1 for device in free if device >= UNIT)
    with_room = sum(1 for device in free if device >= rest) if rest else len(free)
    if untouched >= whole and (not rest or with_room > whole):
        return None
    return Reason("gpu", f"GPU: {requested / UNIT:g} requested, {_devices_text(free)}")


def enough_gpus_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    return fits_devices(nodes.free_devices, task.request[GPU])


def lacking_gpus(task: Task, job: Job, nodes: Nodes) -> str:
    untouched = int((nodes.free_devices >= UNIT).sum(axis=1).max(initial=0))
    part = int(nodes.free_devices.max(initial=0))
    requested = f"{task.request[GPU] / UNIT:g} requested"
    if not untouched:
        return f"insufficient GPUs ({requested}, at most {part / UNIT:g} of a GPU free)"
    if untouched == 1:
        return f"insufficient GPUs ({requested}, at most 1 whole GPU free)"
    return f"insufficient GPUs ({requested}, at most {untouched} whole GPUs free)"


def biggest_first(task: Task) -> tuple[int, ...]:
    """Order large tasks of a gang first: small ones fit more easily."""
    return tuple(-amount for amount in task.request)


def _devices_text(free: tuple[int, ...]) -> str:
    return "free of each: " + ", ".join(f"{device / UNIT:g}" for device in free) if free else "none here"
