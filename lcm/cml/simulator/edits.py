"""Edits of a running lab without LCM's knowledge."""

from __future__ import annotations

from enum import StrEnum

from lcm.cml.ports import PortTag, format_tag, readable_port
from lcm.cml.simulator.lab_import import LabBuilder
from lcm.cml.simulator.labs import SimLab, SimNode
from lcm.cml.simulator.options import ControllerOptions, OptionError
from lcm.cml.simulator.seeded_random import random_fraction

MOVED_BY = 1000
HIGHEST = 65_000


class Edit(StrEnum):
    ADD_NODE = "add_node"
    CHANGE_PORT = "change_port"
    REMOVE_PORT = "remove_port"
    OVERUSE = "overuse"
    STUCK = "stuck"


def edit_lab(lab: SimLab, edit: Edit, options: ControllerOptions, now: float) -> str:
    """Apply an edit to the first suitable node and return its label."""
    if edit == Edit.ADD_NODE:
        return _add_node(lab, options, now).label
    if edit in (Edit.OVERUSE, Edit.STUCK):
        node = next((node for node in lab.nodes.values() if not node.has_no_vm), None)
        if node is None:
            raise OptionError("No node of this lab runs a VM.")
        node.overuses = node.overuses or edit == Edit.OVERUSE
        node.life.is_stuck = node.life.is_stuck or edit == Edit.STUCK
        return node.label
    return _edit_port(lab, edit).label


def random_edit(lab: SimLab, options: ControllerOptions) -> Edit:
    """Choose an edit for a lab. A lab without ports gets a node."""
    if not any(_port_tags(node) for node in lab.nodes.values()):
        return Edit.ADD_NODE
    kinds = (Edit.ADD_NODE, Edit.CHANGE_PORT, Edit.REMOVE_PORT)
    return kinds[int(random_fraction(options.seed, "edit kind", lab.title) * len(kinds))]


def _add_node(lab: SimLab, options: ControllerOptions, now: float) -> SimNode:
    """Add a running node with a port."""
    label = f"added-{len(lab.nodes)}"
    builder = LabBuilder(options, f"{lab.id} {label}")
    taken = {port.outside for node in lab.nodes.values() for _, port in _port_tags(node)}
    port = next(number for number in range(HIGHEST, 1024, -1) if number not in taken)
    node = SimNode(
        id=builder.uuid("node"),
        label=label,
        node_definition="alpine",
        life=builder.life(label, "alpine"),
        tags=[f"serial:{port}"],
    )
    node.interfaces.append(builder.interface(node.id, "eth0", 0, "physical", None))
    node.life.start(now)
    lab.nodes[node.id] = node
    return node


def _edit_port(lab: SimLab, edit: Edit) -> SimNode:
    for node in lab.nodes.values():
        for tag, port in _port_tags(node):
            index = node.tags.index(tag)
            if edit == Edit.REMOVE_PORT:
                del node.tags[index]
            else:
                outside = (
                    port.outside + MOVED_BY if port.outside + MOVED_BY <= HIGHEST else port.outside - MOVED_BY
                )
                node.tags[index] = format_tag(PortTag(port.protocol, outside, port.inside, port.transport))
            return node
    raise OptionError("No node of this lab has a port in its tags.")


def _port_tags(node: SimNode) -> list[tuple[str, PortTag]]:
    return [(tag, port) for tag in node.tags if (port := readable_port(tag))]
