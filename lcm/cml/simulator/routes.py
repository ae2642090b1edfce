"""The calls of the API: which path does what."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from lcm.cml.simulator import shapes, system
from lcm.cml.simulator.controller import SimulatedController
from lcm.cml.simulator.importing import Maker
from lcm.cml.simulator.labs import CONFIGURABLE, SimLab, SimNode
from lcm.cml.simulator.life import DEFINED
from lcm.cml.simulator.usage import link_statistics, node_statistics
from lcm.cml.simulator.users import User
from lcm.cml.simulator.web import ApiError, Reply, Request

Handler = Callable[[SimulatedController, Request, User, Any], Reply]
ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []
OPEN = frozenset({("GET", "/system_information"), ("POST", "/authenticate")})


def route(method: str, pattern: str) -> Callable[[Handler], Handler]:
    """Register a handler; `{lab}` and `{node}` in the pattern are ids."""
    regex = re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern))

    def register(handler: Handler) -> Handler:
        ROUTES.append((method, regex, handler))
        return handler

    return register


def answer(controller: SimulatedController, request: Request) -> Reply:
    """What CML answers; everything it refuses is {code, description}."""
    try:
        return _answer(controller, request)
    except ApiError as error:
        return error.reply()


def _answer(controller: SimulatedController, request: Request) -> Reply:
    found = [(method, match, handler) for method, regex, handler in ROUTES if (match := regex.fullmatch(request.path))]
    if not found:
        raise ApiError(404, f"Not Found: {request.path}")
    if not controller.is_ready and request.path != "/system_information":
        raise ApiError(502, "Bad Gateway")
    if (request.method, request.path) == ("POST", "/authenticate"):
        return Reply.of(controller.users.log_in(request.json(), controller.now))
    user = _user(controller, request)
    for method, match, handler in found:
        if method == request.method:
            return handler(controller, request, user, match)
    raise ApiError(405, f"Method Not Allowed: {request.method} {request.path}")


def _user(controller: SimulatedController, request: Request) -> User:
    if (request.method, request.path) in OPEN:
        return controller.users.all()[0]
    return controller.users.authenticate(request.bearer, controller.now)


def _lab(controller: SimulatedController, user: User, match: re.Match[str]) -> SimLab:
    return controller.lab(match["lab"], user)


def _node(controller: SimulatedController, user: User, match: re.Match[str]) -> tuple[SimLab, SimNode]:
    lab = _lab(controller, user, match)
    node = lab.nodes.get(match["node"])
    if node is None:
        raise ApiError(404, f"Node not found: {match['node']}")
    return lab, node


@route("POST", "/authenticate")
def authenticate(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    raise AssertionError("logging in comes before there is a user")


@route("GET", "/system_information")
def system_information(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of(system.information(controller))


@route("GET", "/system_stats")
def system_stats(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of(system.stats(controller))


@route("GET", "/authok")
def authok(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of("OK")


@route("GET", "/authentication")
def authentication(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    if not controller.options.is_modern:
        raise ApiError(404, f"Not Found: {request.path}")
    return Reply.of({"id": user.id, "username": user.name, "admin": user.is_admin, "token": request.bearer})


@route("DELETE", "/logout")
def logout(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    controller.users.forget(request.bearer)
    return Reply.of(True)


@route("GET", "/users")
def users(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of([each.shape() for each in controller.users.all()])


@route("GET", "/resource_pools")
def resource_pools(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    pool = system.resource_pool(controller)
    return Reply.of([pool if request.flag("data") else pool["id"]])


@route("GET", "/resource_pool_usage")
def resource_pool_usage(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of([system.resource_pool_usage(controller)])


@route("GET", "/labs")
def labs(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of([lab.id for lab in controller.visible_labs(user, show_all=request.flag("show_all"))])


@route("GET", "/populate_lab_tiles")
def lab_tiles(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    shown = controller.visible_labs(user, show_all=True)
    return Reply.of({"lab_tiles": {lab.id: _lab_shape(controller, lab) for lab in shown}})


@route("POST", "/import")
def import_lab(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, warnings = controller.import_lab(request.body, title=request.query.get("title", ""), user=user)
    return Reply.of({"id": lab.id, "warnings": warnings})


@route("GET", "/labs/{lab}")
def lab_details(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of(_lab_shape(controller, _lab(controller, user, match)))


@route("DELETE", "/labs/{lab}")
def delete_lab(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    controller.delete(_lab(controller, user, match))
    return Reply.empty()


@route("PUT", "/labs/{lab}/start")
def start_lab(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    controller.start(_lab(controller, user, match))
    return Reply.empty()


@route("PUT", "/labs/{lab}/stop")
def stop_lab(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    controller.stop(_lab(controller, user, match).nodes.values())
    return Reply.empty()


@route("PUT", "/labs/{lab}/wipe")
def wipe_lab(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    controller.wipe(_lab(controller, user, match))
    return Reply.empty()


@route("GET", "/labs/{lab}/state")
def lab_state(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of(_lab(controller, user, match).state(controller.now))


@route("GET", "/labs/{lab}/check_if_converged")
def converged(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    return Reply.of(_lab(controller, user, match).is_converged(controller.now))


@route("GET", "/labs/{lab}/lab_element_state")
def element_state(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, now = _lab(controller, user, match), controller.now
    return Reply.of(
        {
            "nodes": {node.id: node.life.state(now) for node in lab.nodes.values()},
            "links": {link.id: lab.link_state(link, now) for link in lab.links.values()},
            "interfaces": {each.id: lab.interface_state(each, now) for each in lab.interfaces()},
        }
    )


@route("GET", "/labs/{lab}/simulation_stats")
def simulation_stats(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, now, options = _lab(controller, user, match), controller.now, controller.options
    return Reply.of(
        {
            "nodes": {
                node.id: node_statistics(node, now, seed=options.seed, is_modern=options.is_modern)
                for node in lab.nodes.values()
            },
            "links": {
                link.id: link_statistics(lab, link, now, seed=options.seed) for link in lab.links.values()
            },
        }
    )


@route("GET", "/labs/{lab}/layer3_addresses")
def layer3_addresses(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, now = _lab(controller, user, match), controller.now
    return Reply.of({node.id: shapes.addresses_shape(lab, node, now) for node in lab.nodes.values()})


@route("GET", "/labs/{lab}/resource_pools")
def lab_pools(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    _lab(controller, user, match)
    return Reply.of([system.resource_pool(controller)["id"]])


@route("GET", "/labs/{lab}/topology")
def topology(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab = _lab(controller, user, match)
    owner = controller.users.user(lab.owner).id
    return Reply.of(
        shapes.topology_shape(lab, owner, configurations=not request.flag("exclude_configurations"))
    )


@route("GET", "/labs/{lab}/download")
def download(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    shape = shapes.topology_shape(_lab(controller, user, match), "", configurations=True)
    return Reply.text(yaml.safe_dump(shape, sort_keys=False), "text/plain")


@route("GET", "/labs/{lab}/interfaces")
def lab_interfaces(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, now = _lab(controller, user, match), controller.now
    if not controller.options.is_modern:
        raise ApiError(405, f"Method Not Allowed: GET {request.path}")
    return Reply.of([shapes.interface_shape(lab, each, now, operational=True) for each in lab.interfaces()])


@route("GET", "/labs/{lab}/nodes")
def nodes(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab = _lab(controller, user, match)
    if not request.flag("data"):
        return Reply.of(list(lab.nodes))
    return Reply.of([_node_shape(controller, request, lab, node) for node in lab.nodes.values()])


@route("POST", "/labs/{lab}/nodes")
def add_node(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, values = _lab(controller, user, match), request.json()
    label = values.get("label") if isinstance(values, dict) else None
    definition = values.get("node_definition") if isinstance(values, dict) else None
    if not isinstance(label, str) or not isinstance(definition, str):
        raise ApiError(400, "Bad Request: label and node_definition are required.")
    maker = Maker(controller.options, f"{lab.id} {len(lab.nodes)}")
    node = SimNode(maker.uuid("node", label), label, definition, maker.life(label, definition))
    _change(node, values)
    node.interfaces.append(maker.interface(node.id, "eth0", 0, "physical", None))
    lab.nodes[node.id] = node
    return Reply.of({"id": node.id})


@route("GET", "/labs/{lab}/nodes/{node}")
def node_details(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, node = _node(controller, user, match)
    return Reply.of(_node_shape(controller, request, lab, node))


@route("PATCH", "/labs/{lab}/nodes/{node}")
def change_node(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    _, node = _node(controller, user, match)
    _change(node, request.json())
    return Reply.of(node.id)


@route("DELETE", "/labs/{lab}/nodes/{node}")
def delete_node(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, node = _node(controller, user, match)
    if node.life.state(controller.now) != DEFINED:
        raise ApiError(400, f"Bad Request: Node is not wiped: {node.id}")
    lab.links = {
        id: link for id, link in lab.links.items() if node.id not in (link.a.node_id, link.b.node_id)
    }
    del lab.nodes[node.id]
    return Reply.empty()


@route("GET", "/labs/{lab}/nodes/{node}/state")
def node_state(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    _, node = _node(controller, user, match)
    return Reply.of({"state": node.life.state(controller.now), "label": node.label})


@route("GET", "/labs/{lab}/nodes/{node}/check_if_converged")
def node_converged(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    _, node = _node(controller, user, match)
    return Reply.of(node.life.is_settled(controller.now))


@route("PUT", "/labs/{lab}/nodes/{node}/state/start")
def start_node(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, node = _node(controller, user, match)
    controller.start(lab, [node])
    return Reply.empty()


@route("PUT", "/labs/{lab}/nodes/{node}/state/stop")
def stop_node(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    controller.stop([_node(controller, user, match)[1]])
    return Reply.empty()


@route("PUT", "/labs/{lab}/nodes/{node}/wipe_disks")
def wipe_node(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, node = _node(controller, user, match)
    controller.wipe(lab, [node])
    return Reply.empty()


@route("GET", "/labs/{lab}/nodes/{node}/interfaces")
def node_interfaces(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    (lab, node), now = _node(controller, user, match), controller.now
    if not request.flag("data"):
        return Reply.of([each.id for each in node.interfaces])
    live = request.flag("operational")
    return Reply.of([shapes.interface_shape(lab, each, now, operational=live) for each in node.interfaces])


@route("GET", "/labs/{lab}/nodes/{node}/layer3_addresses")
def node_addresses(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab, node = _node(controller, user, match)
    return Reply.of(shapes.addresses_shape(lab, node, controller.now))


@route("GET", "/labs/{lab}/links/{link}")
def link_details(controller: SimulatedController, request: Request, user: User, match: Any) -> Reply:
    lab = _lab(controller, user, match)
    if match["link"] not in lab.links:
        raise ApiError(404, f"Link not found: {match['link']}")
    return Reply.of(shapes.link_shape(lab, lab.links[match["link"]], controller.now))


def _lab_shape(controller: SimulatedController, lab: SimLab) -> dict[str, Any]:
    return shapes.lab_shape(lab, controller.users.user(lab.owner).id, controller.now)


def _node_shape(controller: SimulatedController, request: Request, lab: SimLab, node: SimNode) -> dict[str, Any]:
    return shapes.node_shape(
        lab,
        node,
        controller.now,
        controller.options,
        compute_id=controller.compute_id,
        operational=request.flag("operational"),
        configurations=not request.flag("exclude_configurations"),
    )


def _change(node: SimNode, values: Any) -> None:
    """Set what may be changed on a node; wrong values change nothing."""
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
