"""Import of topology YAML into a simulated lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lcm.cml.node_sizes import has_no_vm
from lcm.cml.simulator.http_messages import ApiError
from lcm.cml.simulator.labs import CONFIGURABLE, SimInterface, SimLab, SimLink, SimNode
from lcm.cml.simulator.node_lifecycle import BootPlan, NodeLifecycle
from lcm.cml.simulator.options import ControllerOptions
from lcm.cml.simulator.seeded_random import random_between, random_fraction, random_mac, random_uuid
from lcm.cml.topology.errors import Problems, TopologyError
from lcm.cml.topology.model import Topology, TopologyNode
from lcm.cml.topology.parser import parse_topology
from lcm.cml.topology.yaml_loader import load_mapping

SPREAD = 0.4


@dataclass(frozen=True)
class LabBuilder:
    """Builds labs and nodes. `key` makes the ids of each import unique."""

    options: ControllerOptions
    key: str

    def life(self, label: str, definition: str) -> NodeLifecycle:
        """Return a lifecycle with the node's own boot time; nodes without a VM boot at once."""
        options = self.options
        spread = random_between(1 - SPREAD, 1 + SPREAD, options.seed, "boot", self.key, label)
        boot = 0.0 if has_no_vm(definition) else options.boot_seconds * spread
        return NodeLifecycle(
            BootPlan(
                queue=options.queue_seconds * random_fraction(options.seed, "queue", self.key, label),
                starting=options.starting_seconds,
                boot=boot,
                stop=options.stop_seconds,
                has_starting=options.is_modern,
            )
        )

    def uuid(self, *names: object) -> str:
        return random_uuid(self.options.seed, self.key, *names)

    def interface(
        self, node_id: str, label: str, slot: int | None, kind: str, mac: str | None
    ) -> SimInterface:
        interface_id = self.uuid("interface", node_id, label)
        return SimInterface(interface_id, node_id, label, slot, kind, mac, mac or random_mac(interface_id))


def import_topology(
    text: bytes, *, title: str, owner: str, created: str, builder: LabBuilder
) -> tuple[SimLab, list[str]]:
    """Return the lab of a topology and the warnings. Raises ApiError with the problems."""
    try:
        topology = parse_topology(text)
    except TopologyError as error:
        raise ApiError(400, f"Bad Request: Invalid topology: {error}") from None
    raw = load_mapping(text, Problems())
    lab = SimLab(
        id=builder.uuid("lab"),
        title=title or topology.title or f"Lab at {created}",
        description=topology.description,
        notes=topology.notes,
        owner=owner,
        created=created,
    )
    _add_nodes(lab, topology, raw, builder)
    _add_links(lab, topology, builder)
    return lab, list(topology.warnings)


def _add_nodes(lab: SimLab, topology: Topology, raw: Mapping[str, Any], builder: LabBuilder) -> None:
    for node, entry in zip(topology.nodes, raw["nodes"], strict=True):
        sim_node = _node(node, entry, builder)
        lab.nodes[sim_node.id] = sim_node


def _node(node: TopologyNode, entry: Mapping[str, Any], builder: LabBuilder) -> SimNode:
    node_id = builder.uuid("node", node.id)
    sim_node = SimNode(
        id=node_id,
        label=node.label,
        node_definition=node.node_definition,
        life=builder.life(node.label, node.node_definition),
        image_definition=node.image_definition,
        x=node.x,
        y=node.y,
        tags=list(node.tags),
        configured={key: entry.get(key) or None for key in CONFIGURABLE},
        configuration=_configuration(entry.get("configuration")),
        hide_links=entry.get("hide_links") is True,
    )
    for index, (interface, source) in enumerate(
        zip(node.interfaces, entry.get("interfaces") or (), strict=True)
    ):
        kind = source.get("type") if source.get("type") in ("loopback", "physical") else "physical"
        slot = source.get("slot") if isinstance(source.get("slot"), int) else index
        mac = source.get("mac_address") if isinstance(source.get("mac_address"), str) else None
        sim_node.interfaces.append(
            builder.interface(node_id, interface.label, None if kind == "loopback" else slot, kind, mac)
        )
    return sim_node


def _configuration(value: Any) -> list[dict[str, object]]:
    """Return configurations as named files. A plain text becomes the main file."""
    if isinstance(value, str):
        return [{"name": "Main", "content": value}]
    files = [value] if isinstance(value, dict) else value or []
    return [
        {"name": str(file.get("name", "Main")), "content": str(file.get("content", ""))} for file in files
    ]


def _add_links(lab: SimLab, topology: Topology, builder: LabBuilder) -> None:
    by_end = {
        (node.id, interface.id): sim_interface
        for node, sim_node in zip(topology.nodes, lab.nodes.values(), strict=True)
        for interface, sim_interface in zip(node.interfaces, sim_node.interfaces, strict=True)
    }
    for link in topology.links:
        sim_link = SimLink(
            builder.uuid("link", link.id), link.label, by_end[link.n1, link.i1], by_end[link.n2, link.i2]
        )
        lab.links[sim_link.id] = sim_link
