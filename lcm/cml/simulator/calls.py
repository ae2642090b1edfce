"""Calls of CML's API that LCM uses."""

from __future__ import annotations

from lcm.cml.simulator import api_json, controller_info
from lcm.cml.simulator.http_messages import ApiError
from lcm.cml.simulator.labs import CONFIGURABLE, SimLab, SimNode
from lcm.cml.simulator.routing import Context, respond, route
from lcm.cml.simulator.usage import link_statistics, node_statistics

__all__ = ["respond"]


@route("POST", "/authenticate", is_open=True)
def authenticate(call: Context) -> str:
    return call.controller.users.log_in(call.request.json(), call.now)


@route("GET", "/system_information", is_open=True)
def system_information(call: Context) -> dict[str, object]:
    return controller_info.information(call.controller)


@route("GET", "/system_stats")
def system_stats(call: Context) -> dict[str, object]:
    return controller_info.stats(call.controller)


@route("GET", "/resource_pool_usage")
def resource_pool_usage(call: Context) -> list[dict[str, object]]:
    return [controller_info.resource_pool_usage(call.controller)]


@route("GET", "/labs")
def labs(call: Context) -> list[str]:
    shown = call.controller.visible_labs(call.caller, show_all=call.request.flag("show_all"))
    return [lab.id for lab in shown]


@route("POST", "/import")
def import_lab(call: Context) -> dict[str, object]:
    title = call.request.query.get("title", "")
    lab, warnings = call.controller.import_lab(call.request.body, title=title, user=call.caller)
    return {"id": lab.id, "warnings": warnings}


@route("GET", "/labs/{lab}")
def lab(call: Context) -> dict[str, object]:
    return shape_of_lab(call, call.lab)


@route("DELETE", "/labs/{lab}")
def delete_lab(call: Context) -> None:
    call.controller.delete(call.lab)


@route("PUT", "/labs/{lab}/start")
def start(call: Context) -> None:
    call.controller.start(call.lab)


@route("PUT", "/labs/{lab}/stop")
def stop(call: Context) -> None:
    call.controller.stop(call.lab)


@route("PUT", "/labs/{lab}/wipe")
def wipe(call: Context) -> None:
    call.controller.wipe(call.lab)


@route("GET", "/labs/{lab}/state")
def state(call: Context) -> str:
    return call.lab.state(call.now)


@route("GET", "/labs/{lab}/check_if_converged")
def check_if_converged(call: Context) -> bool:
    return call.lab.is_converged(call.now)


@route("GET", "/labs/{lab}/simulation_stats")
def simulation_stats(call: Context) -> dict[str, object]:
    lab, now, seed = call.lab, call.now, call.options.seed
    is_modern = call.options.is_modern
    return {
        "nodes": {
            node.id: node_statistics(node, now, seed=seed, is_modern=is_modern) for node in lab.nodes.values()
        },
        "links": {link.id: link_statistics(lab, link, now, seed=seed) for link in lab.links.values()},
    }


@route("GET", "/labs/{lab}/layer3_addresses")
def layer3_addresses(call: Context) -> dict[str, object]:
    lab = call.lab
    return {node.id: api_json.addresses_json(lab, node, call.now) for node in lab.nodes.values()}


@route("GET", "/labs/{lab}/topology")
def topology(call: Context) -> dict[str, object]:
    lab = call.lab
    owner = call.controller.users.user(lab.owner).id
    configurations = not call.request.flag("exclude_configurations")
    return api_json.topology_json(lab, owner, configurations=configurations)


@route("GET", "/labs/{lab}/interfaces")
def interfaces(call: Context) -> list[dict[str, object]]:
    lab = call.lab
    if not call.options.is_modern:
        raise ApiError(405, f"Method Not Allowed: GET {call.request.path}")
    return [api_json.interface_json(lab, each, call.now, operational=True) for each in lab.interfaces()]


@route("GET", "/labs/{lab}/nodes")
def nodes(call: Context) -> list[object]:
    lab = call.lab
    if not call.request.flag("data"):
        return list(lab.nodes)
    return [shape_of_node(call, node) for node in lab.nodes.values()]


@route("PATCH", "/labs/{lab}/nodes/{node}")
def edit_node(call: Context) -> str:
    node = call.node
    change_node(node, call.request.json())
    return node.id


@route("GET", "/labs/{lab}/nodes/{node}/interfaces")
def interfaces_of_node(call: Context) -> list[object]:
    lab, node = call.lab, call.node
    if not call.request.flag("data"):
        return [each.id for each in node.interfaces]
    live = call.request.flag("operational")
    return [api_json.interface_json(lab, each, call.now, operational=live) for each in node.interfaces]


def shape_of_lab(call: Context, lab: SimLab) -> dict[str, object]:
    return api_json.lab_json(lab, call.controller.users.user(lab.owner).id, call.now)


def shape_of_node(call: Context, node: SimNode) -> dict[str, object]:
    return api_json.node_json(
        call.lab,
        node,
        call.now,
        call.options,
        compute_id=call.controller.compute_id,
        operational=call.request.flag("operational"),
        configurations=not call.request.flag("exclude_configurations"),
    )


def change_node(node: SimNode, values: object) -> None:
    """Update a node. Invalid values change nothing."""
    if not isinstance(values, dict):
        raise ApiError(400, "Bad Request: The body must be an object.")
    tags = values.get("tags", node.tags)
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise ApiError(400, "Bad Request: tags must be a list of texts.")
    sizes = {key: values[key] for key in CONFIGURABLE if key in values}
    if not all(size is None or isinstance(size, int) for size in sizes.values()):
        raise ApiError(400, "Bad Request: Sizes must be whole numbers.")
    node.tags = list(tags)
    node.configured |= sizes
    if isinstance(values.get("label"), str):
        node.label = values["label"]
