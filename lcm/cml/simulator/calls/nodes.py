"""Calls about the nodes of a lab."""

from __future__ import annotations

from typing import Any

from lcm.cml.simulator import api_json
from lcm.cml.simulator.calls.routing import Context, route
from lcm.cml.simulator.http_messages import ApiError, Reply
from lcm.cml.simulator.lab_import import LabBuilder
from lcm.cml.simulator.labs import CONFIGURABLE, SimNode
from lcm.cml.simulator.node_lifecycle import DEFINED


@route("GET", "/labs/{lab}/nodes")
def nodes(call: Context) -> Reply:
    lab = call.lab
    if not call.request.flag("data"):
        return Reply.of(list(lab.nodes))
    return Reply.of([_shape(call, node) for node in lab.nodes.values()])


@route("POST", "/labs/{lab}/nodes")
def add(call: Context) -> Reply:
    lab, values = call.lab, call.request.json()
    label = values.get("label") if isinstance(values, dict) else None
    definition = values.get("node_definition") if isinstance(values, dict) else None
    if not isinstance(label, str) or not isinstance(definition, str):
        raise ApiError(400, "Bad Request: label and node_definition are required.")
    maker = LabBuilder(call.options, f"{lab.id} {len(lab.nodes)}")
    node = SimNode(maker.uuid("node", label), label, definition, maker.life(label, definition))
    _change(node, values)
    node.interfaces.append(maker.interface(node.id, "eth0", 0, "physical", None))
    lab.nodes[node.id] = node
    return Reply.of({"id": node.id})


@route("GET", "/labs/{lab}/nodes/{node}")
def details(call: Context) -> Reply:
    return Reply.of(_shape(call, call.node))


@route("PATCH", "/labs/{lab}/nodes/{node}")
def change(call: Context) -> Reply:
    node = call.node
    _change(node, call.request.json())
    return Reply.of(node.id)


@route("DELETE", "/labs/{lab}/nodes/{node}")
def delete(call: Context) -> Reply:
    lab, node = call.lab, call.node
    if node.life.state(call.now) != DEFINED:
        raise ApiError(400, f"Bad Request: Node is not wiped: {node.id}")
    lab.remove_node(node)
    return Reply.empty()


@route("GET", "/labs/{lab}/nodes/{node}/state")
def state(call: Context) -> Reply:
    return Reply.of({"state": call.node.life.state(call.now), "label": call.node.label})


@route("GET", "/labs/{lab}/nodes/{node}/check_if_converged")
def check_if_converged(call: Context) -> Reply:
    return Reply.of(call.node.life.is_settled(call.now))


@route("PUT", "/labs/{lab}/nodes/{node}/state/start")
def start(call: Context) -> Reply:
    call.controller.start(call.lab, [call.node])
    return Reply.empty()


@route("PUT", "/labs/{lab}/nodes/{node}/state/stop")
def stop(call: Context) -> Reply:
    call.controller.stop([call.node])
    return Reply.empty()


@route("PUT", "/labs/{lab}/nodes/{node}/wipe_disks")
def wipe(call: Context) -> Reply:
    call.controller.wipe(call.lab, [call.node])
    return Reply.empty()


@route("GET", "/labs/{lab}/nodes/{node}/interfaces")
def interfaces(call: Context) -> Reply:
    lab, node = call.lab, call.node
    if not call.request.flag("data"):
        return Reply.of([each.id for each in node.interfaces])
    live = call.request.flag("operational")
    shown = [api_json.interface_json(lab, each, call.now, operational=live) for each in node.interfaces]
    return Reply.of(shown)


@route("GET", "/labs/{lab}/nodes/{node}/layer3_addresses")
def layer3_addresses(call: Context) -> Reply:
    return Reply.of(api_json.addresses_json(call.lab, call.node, call.now))


def _shape(call: Context, node: SimNode) -> dict[str, Any]:
    return api_json.node_json(
        call.lab,
        node,
        call.now,
        call.options,
        compute_id=call.controller.compute_id,
        operational=call.request.flag("operational"),
        configurations=not call.request.flag("exclude_configurations"),
    )


def _change(node: SimNode, values: Any) -> None:
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
