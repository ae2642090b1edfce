"""Calls of CML's API that LCM does not use, for Cisco's `virl2-client`. Importing the module adds them."""

from __future__ import annotations

import yaml

from lcm.cml.simulator import api_json, controller_info
from lcm.cml.simulator.calls import change_node, shape_of_lab, shape_of_node
from lcm.cml.simulator.http_messages import ApiError, Reply
from lcm.cml.simulator.lab_import import LabBuilder
from lcm.cml.simulator.labs import SimNode
from lcm.cml.simulator.node_lifecycle import DEFINED
from lcm.cml.simulator.routing import Context, route

COMPUTE_CHECKS = (
    "kvm_vmx_enabled",
    "enough_cpus",
    "lld_connected",
    "lld_synced",
    "libvirt",
    "fabric",
    "device_mux",
    "refplat_images_available",
    "docker_shim",
    "valid",
)
CONTROLLER_CHECKS = ("core_connected", "nodes_loaded", "images_loaded", "valid")


@route("GET", "/authok")
def authok(call: Context) -> str:
    return "OK"


@route("GET", "/authentication")
def authentication(call: Context) -> dict[str, object]:
    if not call.options.is_modern:
        raise ApiError(404, f"Not Found: {call.request.path}")
    user = call.caller
    return {"id": user.id, "username": user.name, "admin": user.is_admin, "token": call.request.bearer}


@route("DELETE", "/logout")
def logout(call: Context) -> bool:
    call.controller.users.forget(call.request.bearer)
    return True


@route("GET", "/users")
def users(call: Context) -> list[dict[str, object]]:
    known = [call.controller.users.user(name) for name in call.options.users]
    return [
        {
            "id": user.id,
            "username": user.name,
            "fullname": "",
            "description": "",
            "email": "",
            "admin": user.is_admin,
            "groups": [],
            "labs": [],
        }
        for user in known
    ]


@route("GET", "/system_health")
def system_health(call: Context) -> dict[str, object]:
    compute = dict.fromkeys(COMPUTE_CHECKS, True) | {
        "admission_state": "READY",
        "is_controller": True,
        "hostname": call.controller.name or "cml-controller",
    }
    return {
        "valid": True,
        "computes": {call.controller.compute_id: compute},
        "is_licensed": True,
        "is_enterprise": True,
        "controller": dict.fromkeys(CONTROLLER_CHECKS, True),
    }


@route("GET", "/resource_pools")
def resource_pools(call: Context) -> list[object]:
    pool = controller_info.resource_pool(call.controller)
    return [pool if call.request.flag("data") else pool["id"]]


@route("GET", "/resource_pool_usage/{pool}")
def usage_of_one_pool(call: Context) -> dict[str, object]:
    usage = controller_info.resource_pool_usage(call.controller)
    if call.ids["pool"] != usage["id"]:
        raise ApiError(404, f"Resource pool not found: {call.ids['pool']}")
    return usage


@route("GET", "/populate_lab_tiles")
def lab_tiles(call: Context) -> dict[str, object]:
    shown = call.controller.visible_labs(call.caller, show_all=True)
    return {"lab_tiles": {lab.id: shape_of_lab(call, lab) for lab in shown}}


@route("GET", "/labs/{lab}/lab_element_state")
def element_state(call: Context) -> dict[str, object]:
    lab, now = call.lab, call.now
    return {
        "nodes": {node.id: node.life.state(now) for node in lab.nodes.values()},
        "links": {link.id: lab.link_state(link, now) for link in lab.links.values()},
        "interfaces": {each.id: lab.interface_state(each, now) for each in lab.interfaces()},
    }


@route("GET", "/labs/{lab}/resource_pools")
def resource_pools_of_lab(call: Context) -> list[str]:
    pool = controller_info.resource_pool(call.controller)
    return [pool["id"]] if call.lab.nodes else []


@route("GET", "/labs/{lab}/download")
def download(call: Context) -> Reply:
    shape = api_json.topology_json(call.lab, "", configurations=True)
    return Reply(200, yaml.safe_dump(shape, sort_keys=False).encode(), "text/plain")


@route("GET", "/labs/{lab}/interfaces/{interface}")
def interface(call: Context) -> dict[str, object]:
    lab, interface_id = call.lab, call.ids["interface"]
    found = next((each for each in lab.interfaces() if each.id == interface_id), None)
    if found is None:
        raise ApiError(404, f"Interface not found: {interface_id}")
    return api_json.interface_json(lab, found, call.now, operational=call.request.flag("operational"))


@route("GET", "/labs/{lab}/links/{link}")
def link(call: Context) -> dict[str, object]:
    lab, link_id = call.lab, call.ids["link"]
    if link_id not in lab.links:
        raise ApiError(404, f"Link not found: {link_id}")
    found = lab.links[link_id]
    return {
        "id": found.id,
        "lab_id": lab.id,
        "label": found.label,
        "interface_a": found.a.id,
        "interface_b": found.b.id,
        "node_a": found.a.node_id,
        "node_b": found.b.node_id,
        "link_capture_key": "",
        "state": lab.link_state(found, call.now),
    }


@route("POST", "/labs/{lab}/nodes")
def add_node(call: Context) -> dict[str, str]:
    lab, values = call.lab, call.request.json()
    label = values.get("label") if isinstance(values, dict) else None
    definition = values.get("node_definition") if isinstance(values, dict) else None
    if not isinstance(label, str) or not isinstance(definition, str):
        raise ApiError(400, "Bad Request: label and node_definition are required.")
    builder = LabBuilder(call.options, f"{lab.id} {len(lab.nodes)}")
    node = SimNode(builder.uuid("node", label), label, definition, builder.life(label, definition))
    change_node(node, values)
    node.interfaces.append(builder.interface(node.id, "eth0", 0, "physical", None))
    lab.nodes[node.id] = node
    return {"id": node.id}


@route("GET", "/labs/{lab}/nodes/{node}")
def node_details(call: Context) -> dict[str, object]:
    return shape_of_node(call, call.node)


@route("DELETE", "/labs/{lab}/nodes/{node}")
def delete_node(call: Context) -> None:
    """Remove a node and the links to it."""
    lab, node = call.lab, call.node
    if node.life.state(call.now) != DEFINED:
        raise ApiError(400, f"Bad Request: Node is not wiped: {node.id}")
    lab.links = {
        id: link for id, link in lab.links.items() if node.id not in (link.a.node_id, link.b.node_id)
    }
    del lab.nodes[node.id]


@route("GET", "/labs/{lab}/nodes/{node}/state")
def node_state(call: Context) -> dict[str, str]:
    return {"state": call.node.life.state(call.now), "label": call.node.label}


@route("GET", "/labs/{lab}/nodes/{node}/check_if_converged")
def is_node_converged(call: Context) -> bool:
    return call.node.life.is_settled(call.now)


@route("PUT", "/labs/{lab}/nodes/{node}/state/start")
def start_node(call: Context) -> None:
    call.node.life.start(call.now)


@route("PUT", "/labs/{lab}/nodes/{node}/state/stop")
def stop_node(call: Context) -> None:
    call.node.life.stop(call.now)


@route("PUT", "/labs/{lab}/nodes/{node}/wipe_disks")
def wipe_node(call: Context) -> None:
    call.node.life.wipe()


@route("GET", "/labs/{lab}/nodes/{node}/layer3_addresses")
def addresses_of_node(call: Context) -> dict[str, object]:
    return api_json.addresses_json(call.lab, call.node, call.now)
