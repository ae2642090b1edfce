"""Allocated and used resources of one node."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from lcm.cml.client.results import CmlNode, NodeStatistics
from lcm.cml.node_sizes import has_no_vm
from lcm.cml.observation.model import InterfaceObservation, NodeObservation

FULL_CPU = 100
MB_PER_GB = 1024
CENT = Decimal("0.01")
THOUSANDTH = Decimal("0.001")


def observe_node(
    node: CmlNode,
    stats: NodeStatistics | None,
    *,
    ports: dict[str, int],
    interfaces: tuple[InterfaceObservation, ...] | None,
) -> NodeObservation:
    """Return the observation of a node. Connectors and switches count as zero."""
    no_vm = has_no_vm(node.node_definition)
    return NodeObservation(
        node_id=node.id,
        label=node.label,
        node_definition=node.node_definition,
        image_definition=node.image_definition,
        state=node.state,
        compute_id=node.compute_id,
        cpus=node.cpus,
        cpu_limit=node.cpu_limit,
        cpu_cores=Decimal(0) if no_vm else cpu_cores(node.cpus, node.cpu_limit),
        ram_mb=0 if no_vm else node.ram_mb,
        storage_mb=0 if no_vm else storage_mb(node.boot_disk_gb, node.data_volume_gb),
        cpu_usage_percent=None if stats is None else stats.cpu_percent,
        memory_usage_percent=None if stats is None else stats.ram_percent,
        used_cpu_cores=None if stats is None else _used_cores(node.cpus, stats.cpu_percent),
        used_memory_mb=None if stats is None else _used_memory(node.ram_mb, stats.ram_percent),
        used_storage_mb=None if stats is None else stats.disk_mb,
        tags=node.tags,
        ports=ports,
        interfaces=interfaces,
    )


def cpu_cores(cpus: int | None, cpu_limit: int | None) -> Decimal | None:
    """Return the cores a node may use: CPUs times cpu_limit percent."""
    if cpus is None:
        return None
    return (Decimal(cpus * (cpu_limit or FULL_CPU)) / FULL_CPU).quantize(CENT)


def storage_mb(boot_disk_gb: int | None, data_volume_gb: int | None) -> int | None:
    """Return boot disk and data volume in MB. The data volume is optional."""
    if boot_disk_gb is None and not data_volume_gb:
        return None
    return ((boot_disk_gb or 0) + (data_volume_gb or 0)) * MB_PER_GB


def missing_reason(node: NodeObservation) -> str:
    """Return why a value of a node is missing."""
    if node.is_running:
        return "CML reports no value for this node"
    return f"the node is {node.state or 'in an unknown state'} and has no allocated resources"


def _used_cores(cpus: int | None, percent: Decimal | None) -> Decimal | None:
    """Convert CML's percentage of the node's CPUs, which may slightly exceed 100."""
    if cpus is None or percent is None:
        return None
    return (cpus * percent / 100).quantize(THOUSANDTH, ROUND_HALF_UP)


def _used_memory(ram_mb: int | None, percent: Decimal | None) -> int | None:
    if ram_mb is None or percent is None:
        return None
    return int((ram_mb * percent / 100).to_integral_value(ROUND_HALF_UP))
