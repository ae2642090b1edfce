"""Plugins that require enough on a slot: resources, ports, and a lease."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from lcm.domain.resources import RESOURCE, RESOURCE_NAMES
from scheduling.placement.framework.amounts import (
    DIVISIBLE,
    GPU,
    UNIT,
    amount_text,
)
from scheduling.placement.framework.callbacks import Reason
from scheduling.placement.framework.model import Job, Task
from scheduling.placement.framework.nodes import (
    LEASES,
    PORTS,
    Flags,
    Nodes,
    NodeState,
    at_least,
    fits_devices,
)
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession


@register_plugin("resources")
@dataclass(frozen=True)
class ResourcesPlugin(Plugin):
    """Require free amounts, and free GPU devices: whole GPUs for whole units."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        for column in DIVISIBLE:
            ssn.add_predicate_fn(
                partial(enough, column),
                need=(column, partial(requested_amount, column)),
                code=RESOURCE_NAMES[column],
                summary=partial(lacking, column),
            )
        ssn.add_predicate_fn(
            enough_gpus, batch=enough_gpus_batch, code="gpu", summary=lacking_gpus, when=requests_gpus
        )
        ssn.add_task_order_fn(key=biggest_first)


def enough(column: int, task: Task, job: Job, node: NodeState) -> Reason | None:
    requested, free = task.request[column], node.free[column]
    if not requested or requested <= free:
        return None
    name = RESOURCE_NAMES[column]
    texts = amount_text(requested, name), amount_text(max(free, 0), name)
    return Reason(name, f"{RESOURCE[name].word}: {texts[0]} requested, {texts[1]} free")


def requested_amount(column: int, task: Task) -> int:
    return at_least(task.request[column])


def requests_gpus(task: Task, job: Job) -> bool:
    return task.request[GPU] > 0


def lacking(column: int, task: Task, job: Job, nodes: Nodes) -> str:
    name = RESOURCE_NAMES[column]
    most = max(int(nodes.free[:, column].max()), 0)
    requested, free = amount_text(task.request[column], name), amount_text(most, name)
    return f"insufficient {RESOURCE[name].word} ({requested} requested, at most {free} free)"


def enough_gpus(task: Task, job: Job, node: NodeState) -> Reason | None:
    requested = task.request[GPU]
    whole, fraction = divmod(requested, UNIT)
    free = node.free_devices
    whole_free = sum(1 for device in free if device >= UNIT)
    with_space = sum(1 for device in free if device >= fraction) if fraction else len(free)
    if whole_free >= whole and (not fraction or with_space > whole):
        return None
    return Reason("gpu", f"GPU: {requested / UNIT:g} requested, {_devices_text(free)}")


def enough_gpus_batch(task: Task, job: Job, nodes: Nodes) -> Flags:
    return fits_devices(nodes.free_devices, task.request[GPU])


def lacking_gpus(task: Task, job: Job, nodes: Nodes) -> str:
    whole_free = int((nodes.free_devices >= UNIT).sum(axis=1).max(initial=0))
    largest_free = int(nodes.free_devices.max(initial=0))
    requested = f"{task.request[GPU] / UNIT:g} requested"
    if not whole_free:
        return f"insufficient GPUs ({requested}, at most {largest_free / UNIT:g} of a GPU free)"
    if whole_free == 1:
        return f"insufficient GPUs ({requested}, at most 1 whole GPU free)"
    return f"insufficient GPUs ({requested}, at most {whole_free} whole GPUs free)"


def biggest_first(task: Task) -> tuple[int, ...]:
    """Order large tasks of a gang first: small ones fit more easily."""
    return tuple(-amount for amount in task.request)


def _devices_text(free: tuple[int, ...]) -> str:
    return "free of each: " + ", ".join(f"{device / UNIT:g}" for device in free) if free else "none here"


@register_plugin("ports")
@dataclass(frozen=True)
class PortsPlugin(Plugin):
    """Require all ports of a job to be free; leaked ports are not free."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(
            enough_ports, need=(PORTS, lambda task: at_least(task.ports)), code="ports", summary=lacking_ports
        )


def enough_ports(task: Task, job: Job, node: NodeState) -> Reason | None:
    if not task.ports or task.ports <= node.free_ports:
        return None
    return Reason("ports", f"ports: {task.ports} requested, {max(node.free_ports, 0)} free")


def lacking_ports(task: Task, job: Job, nodes: Nodes) -> str:
    most = max(int(nodes.free_ports.max()), 0)
    return f"insufficient ports ({task.ports} requested, at most {most} free)"


@register_plugin("leases")
@dataclass(frozen=True)
class LeasesPlugin(Plugin):
    """Limit the leases of a slot: one per job."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        ssn.add_predicate_fn(has_free_lease, need=(LEASES, lambda _: 1), code="leases", summary=no_lease_text)


def has_free_lease(task: Task, job: Job, node: NodeState) -> Reason | None:
    if node.free_leases >= 1:
        return None
    most = node.node.max_leases
    return Reason("leases", "its only lease is taken" if most == 1 else f"all {most} leases are taken")


def no_lease_text(task: Task, job: Job, nodes: Nodes) -> str:
    return "without a free lease"
