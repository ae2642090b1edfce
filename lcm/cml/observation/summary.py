"""Building an observation from CML's responses. Unknown values never count as zero."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from lcm.cml.client.results import (
    CmlInterface,
    CmlNode,
    Entries,
    InterfacesByNode,
    Layer3Addresses,
    SimulationStats,
    by_node,
)
from lcm.cml.client.system_results import ResourcePoolUsage
from lcm.cml.observation.live_ports import ports_by_node
from lcm.cml.observation.model import (
    InterfaceObservation,
    MissingPart,
    NodeObservation,
    PoolUsage,
    ResourceObservation,
)
from lcm.cml.observation.node_usage import missing_reason, observe_node

MAX_ERRORS = 100
MAX_MESSAGE = 500

TOTALS = {"total_cpu_cores": "cpu_cores", "total_memory_mb": "ram_mb", "total_storage_mb": "storage_mb"}
CORES = frozenset({"cpu_cores", "used_cpu_cores"})
USED = ("used_cpu_cores", "used_memory_mb", "used_storage_mb")
NODE_FIELDS = (*TOTALS, *USED, "nodes", "actual_node_count", "node_definitions_used", "observed_ports")


@dataclass(frozen=True)
class FailedPart:
    """A part that CML did not return, and why."""

    reason: str


@dataclass(frozen=True)
class ObservedParts:
    """The responses, or the failure of each."""

    nodes: Entries[CmlNode] | FailedPart
    interfaces: Entries[CmlInterface] | InterfacesByNode | FailedPart
    addresses: Layer3Addresses | FailedPart
    stats: SimulationStats | FailedPart
    pools: tuple[ResourcePoolUsage, ...] | FailedPart | None


@dataclass
class _Gaps:
    """Missing data: incomplete fields, and the reasons."""

    fields: list[str] = field(default_factory=list)
    errors: list[MissingPart] = field(default_factory=list)

    def add(self, part: str, reason: str, *fields: str) -> None:
        self.fields.extend(fields)
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(MissingPart(part[:MAX_MESSAGE], reason[:MAX_MESSAGE]))
        elif len(self.errors) == MAX_ERRORS:
            self.errors.append(MissingPart("errors", f"Only the first {MAX_ERRORS} errors are stored."))


def summarize(parts: ObservedParts, blank: ResourceObservation) -> ResourceObservation:
    """Add the responses to an observation that has only its time, observer and lab."""
    gaps = _Gaps()
    blank = replace(
        blank,
        simulation_stats=_stored_stats(parts.stats, gaps),
        resource_pool_usage=_pool_usage(parts.pools, gaps),
    )
    if isinstance(parts.addresses, FailedPart):
        gaps.add("layer3_addresses", parts.addresses.reason, "nodes")
    if isinstance(parts.interfaces, FailedPart):
        gaps.add("interfaces", parts.interfaces.reason, "nodes")
    if isinstance(parts.nodes, FailedPart):
        gaps.add("nodes", parts.nodes.reason, *NODE_FIELDS)
        observation = blank
    else:
        observation = _with_nodes(blank, parts, parts.nodes, gaps)
    return replace(observation, incomplete=tuple(dict.fromkeys(gaps.fields)), errors=tuple(gaps.errors))


def _with_nodes(
    blank: ResourceObservation, parts: ObservedParts, response: Entries[CmlNode], gaps: _Gaps
) -> ResourceObservation:
    """Fill in the fields that come from the nodes."""
    for path in response.unreadable:
        gaps.add(f"nodes[{path}]", "the entry has no id", *NODE_FIELDS)
    if response.unreadable and not response.items:
        return replace(blank, actual_node_count=len(response.unreadable))
    interfaces = _interfaces_by_node(parts, response, gaps)
    ports = ports_by_node(response.items)
    for label, problem in ports.problems:
        gaps.add(f"nodes[{label}].tags", problem, "observed_ports")
    stats = parts.stats.nodes if isinstance(parts.stats, SimulationStats) else {}
    nodes = tuple(
        observe_node(node, stats.get(node.id), ports=node_ports, interfaces=interfaces.get(node.id))
        for node, node_ports in zip(response.items, ports.by_node, strict=True)
    )
    _note_missing_figures(nodes, gaps)
    return replace(
        blank,
        nodes=nodes,
        actual_node_count=len(nodes) + len(response.unreadable),
        node_definitions_used=tuple(sorted({node.node_definition for node in nodes})),
        observed_ports=ports.all,
        **{total: _sum(nodes, figure) for total, figure in TOTALS.items()},
        **{used: _sum(nodes, used) for used in USED},
    )


def _interfaces_by_node(
    parts: ObservedParts, node_list: Entries[CmlNode], gaps: _Gaps
) -> dict[str, tuple[InterfaceObservation, ...]]:
    """Return the interfaces of each node whose response could be read."""
    if isinstance(parts.interfaces, FailedPart):
        return {}
    grouped = parts.interfaces
    if isinstance(grouped, Entries):
        if grouped.unreadable:
            reason = f"{len(grouped.unreadable)} entries have no id"
            gaps.add("interfaces", reason, "nodes")
        grouped = by_node(replace(grouped, unreadable=()), [node.id for node in node_list.items])
    result: dict[str, tuple[InterfaceObservation, ...]] = {}
    labels = {node.id: node.label for node in node_list.items}
    for node_id, response in grouped.items():
        path = f"nodes[{labels.get(node_id, node_id)}].interfaces"
        if not isinstance(response, Entries):
            gaps.add(path, str(response), "nodes")
            continue
        if response.unreadable:
            gaps.add(path, f"{len(response.unreadable)} entries could not be read", "nodes")
        result[node_id] = tuple(_interface(interface, parts.addresses) for interface in response.items)
    return result


def _interface(interface: CmlInterface, addresses: Layer3Addresses | FailedPart) -> InterfaceObservation:
    """Return an interface with its snooped addresses: () if there are none, None if the call failed."""
    ip4: tuple[str, ...] | None = None
    ip6: tuple[str, ...] | None = None
    if isinstance(addresses, Layer3Addresses):
        snooped = addresses.by_interface.get(interface.id)
        ip4, ip6 = (snooped.ip4, snooped.ip6) if snooped else ((), ())
    return InterfaceObservation(
        interface_id=interface.id,
        label=interface.label,
        slot=interface.slot,
        state=interface.state,
        is_connected=interface.is_connected,
        mac_address=interface.mac_address,
        ip4=ip4,
        ip6=ip6,
    )


def _stored_stats(stats: SimulationStats | FailedPart, gaps: _Gaps) -> dict[str, object] | None:
    """Return the statistics to store: numbers by id."""
    if isinstance(stats, FailedPart):
        gaps.add("simulation_stats", stats.reason, "simulation_stats", *USED)
        return None
    return {
        "nodes": {node_id: node.figures for node_id, node in stats.nodes.items()},
        "links": dict(stats.links),
    }


def _pool_usage(
    pools: tuple[ResourcePoolUsage, ...] | FailedPart | None, gaps: _Gaps
) -> tuple[PoolUsage, ...] | None:
    """Return licences and storage of the resource pools; None if CML has no such call."""
    if isinstance(pools, FailedPart):
        gaps.add("resource_pool_usage", pools.reason, "resource_pool_usage")
        return None
    if pools is None:
        return None
    return tuple(
        PoolUsage(
            pool_id=pool.id,
            label=pool.label,
            licenses_used=pool.licenses_used,
            licenses_limit=pool.licenses_limit,
            storage_used_mb=pool.storage_used_mb,
            storage_limit_mb=pool.storage_limit_mb,
        )
        for pool in pools
    )


def _note_missing_figures(nodes: Iterable[NodeObservation], gaps: _Gaps) -> None:
    """Record which nodes each total lacks. A usage that no node reports is not supported by this CML."""
    counted = list(nodes)
    for total, figure in TOTALS.items():
        for node in counted:
            if getattr(node, figure) is None:
                gaps.add(f"nodes[{node.label}].{figure}", missing_reason(node), total)
    for used in USED:
        expected = [node for node in counted if node.is_running and not node.has_no_vm]
        missing = [node for node in expected if getattr(node, used) is None]
        if len(missing) < len(expected):
            for node in missing:
                gaps.add(f"nodes[{node.label}].{used}", "CML reports no value for this node", used)


def _sum(nodes: Iterable[NodeObservation], figure: str) -> Any:
    """Return the sum of the known values: None if all are unknown, 0 if there are no nodes."""
    values = [getattr(node, figure) for node in nodes]
    known = [value for value in values if value is not None]
    zero = Decimal(0) if figure in CORES else 0
    return sum(known, zero) if known or not values else None
