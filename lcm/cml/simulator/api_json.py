"""JSON of labs, nodes, interfaces and links, as each CML version returns it."""

from __future__ import annotations

from lcm.cml.simulator.labs import CONFIGURABLE, SimInterface, SimLab, SimNode
from lcm.cml.simulator.node_lifecycle import OPERATIONAL, PROGRESS
from lcm.cml.simulator.options import ControllerOptions
from lcm.cml.simulator.seeded_random import random_between, random_uuid

SNOOPED_AFTER_SECONDS = 1.0
PERMISSIONS = ["lab_view", "lab_admin", "lab_exec", "lab_edit"]


def lab_json(lab: SimLab, owner_id: str, now: float) -> dict[str, object]:
    """Return a lab as in a lab tile."""
    return {
        "id": lab.id,
        "created": lab.created,
        "modified": lab.created,
        "lab_title": lab.title,
        "lab_description": lab.description,
        "lab_notes": lab.notes,
        "owner": owner_id,
        "owner_username": lab.owner,
        "owner_fullname": "",
        "state": lab.state(now),
        "node_count": len(lab.nodes),
        "link_count": len(lab.links),
        "groups": [],
        "effective_permissions": PERMISSIONS,
    }


def node_json(
    lab: SimLab,
    node: SimNode,
    now: float,
    options: ControllerOptions,
    *,
    compute_id: str,
    operational: bool,
    configurations: bool,
) -> dict[str, object]:
    """Return a node. CML 2.9 repeats some operational values at the top level."""
    state = node.life.state(now)
    running = _operational(node, compute_id) if state in OPERATIONAL else None
    shape = _topology_values(node) | {
        "lab_id": lab.id,
        "pinned_compute_id": None,
        "state": state,
        "boot_progress": PROGRESS[state],
        "operational": running if operational else None,
    }
    shape["configuration"] = node.configuration if configurations else [] if options.is_modern else None
    if options.is_modern:
        return shape | {"priority": None, "pyats": dict.fromkeys(("username", "password", "enable_password"))}
    beside = ("compute_id", "vnc_key", "resource_pool", "iol_app_id", "serial_consoles")
    old = {key: (running or {}).get(key) for key in beside}
    return shape | old | {"serial_consoles": old["serial_consoles"] or []}


def _topology_values(node: SimNode) -> dict[str, object]:
    """Return the values that a node has in a topology file, without configuration and interfaces."""
    return {
        "id": node.id,
        "label": node.label,
        "node_definition": node.node_definition,
        "image_definition": node.image_definition,
        "x": node.x,
        "y": node.y,
        "hide_links": node.hide_links,
        "tags": list(node.tags),
        "parameters": dict(node.parameters),
        **{key: node.configured.get(key) for key in CONFIGURABLE},
    }


def _operational(node: SimNode, compute_id: str) -> dict[str, object]:
    """Return the operational values of a started node."""
    consoles = [{"console_key": random_uuid(node.id, "console"), "label": "Main", "device_number": 0}]
    return {
        **{key: getattr(node, key) for key in CONFIGURABLE},
        "compute_id": compute_id,
        "image_definition": node.image_definition or (None if node.has_no_vm else node.node_definition),
        "vnc_key": "" if node.has_no_vm else random_uuid(node.id, "vnc"),
        "resource_pool": None,
        "iol_app_id": None,
        "serial_consoles": [] if node.has_no_vm else consoles,
    }


def interface_json(
    lab: SimLab, interface: SimInterface, now: float, *, operational: bool
) -> dict[str, object]:
    """Return an interface. Operational values are present while its node runs."""
    state = lab.interface_state(interface, now)
    shape = _interface_values(interface) | {
        "lab_id": lab.id,
        "node": interface.node_id,
        "is_connected": lab.is_connected(interface),
        "state": state,
    }
    if operational:
        is_up = state == "STARTED" and interface.type == "physical"
        shape["operational"] = _interface_operational(interface) if is_up else None
    return shape


def _interface_values(interface: SimInterface) -> dict[str, object]:
    return {
        "id": interface.id,
        "label": interface.label,
        "slot": interface.slot,
        "type": interface.type,
        "mac_address": interface.configured_mac,
    }


def _interface_operational(interface: SimInterface) -> dict[str, object]:
    return {
        "device_name": "nf" + interface.live_mac.replace(":", ""),
        "mac_address": interface.live_mac,
        "src_udp_port": None,
        "dst_udp_port": None,
    }


def topology_json(lab: SimLab, owner_id: str, *, configurations: bool) -> dict[str, object]:
    """Return the whole lab in the format that imports accept."""
    return {
        "lab": {
            "title": lab.title,
            "description": lab.description,
            "notes": lab.notes,
            "owner": owner_id,
            "version": lab.schema_version,
        },
        "nodes": [_topology_node(node, configurations) for node in lab.nodes.values()],
        "links": [
            {
                "id": link.id,
                "label": link.label,
                "interface_a": link.a.id,
                "interface_b": link.b.id,
                "i1": link.a.id,
                "i2": link.b.id,
                "n1": link.a.node_id,
                "n2": link.b.node_id,
                "conditioning": {},
            }
            for link in lab.links.values()
        ],
        "annotations": [],
        "smart_annotations": [],
    }


def _topology_node(node: SimNode, configurations: bool) -> dict[str, object]:
    return _topology_values(node) | {
        "configuration": node.configuration if configurations else [],
        "interfaces": [_interface_values(interface) for interface in node.interfaces],
    }


def addresses_json(lab: SimLab, node: SimNode, now: float) -> dict[str, object]:
    """Return snooped addresses of a node: only after boot, and only on connected interfaces."""
    booted = node.life.booted_for(now) >= SNOOPED_AFTER_SECONDS and not node.has_no_vm
    return {
        "name": node.label,
        "interfaces": {
            interface.live_mac: {
                "id": interface.id,
                "label": interface.label,
                "ip4": [_ip4(interface)] if booted and lab.is_connected(interface) else [],
                "ip6": [_ip6(interface)] if booted and lab.is_connected(interface) else [],
            }
            for interface in node.interfaces
            if interface.type == "physical"
        },
    }


def _ip4(interface: SimInterface) -> str:
    parts = (int(random_between(1, 254, interface.id, place)) for place in range(3))
    return ".".join(map(str, (10, *parts)))


def _ip6(interface: SimInterface) -> str:
    parts = interface.live_mac.split(":")
    return f"fe80::5054:{parts[2]}ff:fe{parts[3]}:{parts[4]}{parts[5]}"
