"""Calls about labs."""

from __future__ import annotations

from typing import Any

import yaml

from lcm.cml.simulator import api_json
from lcm.cml.simulator.calls import controller_info
from lcm.cml.simulator.calls.routing import Context, route
from lcm.cml.simulator.http_messages import ApiError, Reply
from lcm.cml.simulator.labs import SimLab
from lcm.cml.simulator.usage import link_statistics, node_statistics


@route("GET", "/labs")
def labs(call: Context) -> Reply:
    shown = call.controller.visible_labs(call.caller, show_all=call.request.flag("show_all"))
    return Reply.of([lab.id for lab in shown])


@route("GET", "/populate_lab_tiles")
def lab_tiles(call: Context) -> Reply:
    shown = call.controller.visible_labs(call.caller, show_all=True)
    return Reply.of({"lab_tiles": {lab.id: _shape(call, lab) for lab in shown}})


@route("POST", "/import")
def import_lab(call: Context) -> Reply:
    title = call.request.query.get("title", "")
    lab, warnings = call.controller.import_lab(call.request.body, title=title, user=call.caller)
    return Reply.of({"id": lab.id, "warnings": warnings})


@route("GET", "/labs/{lab}")
def details(call: Context) -> Reply:
    return Reply.of(_shape(call, call.lab))


@route("DELETE", "/labs/{lab}")
def delete(call: Context) -> Reply:
    call.controller.delete(call.lab)
    return Reply.empty()


@route("PUT", "/labs/{lab}/start")
def start(call: Context) -> Reply:
    call.controller.start(call.lab)
    return Reply.empty()


@route("PUT", "/labs/{lab}/stop")
def stop(call: Context) -> Reply:
    call.controller.stop(call.lab.nodes.values())
    return Reply.empty()


@route("PUT", "/labs/{lab}/wipe")
def wipe(call: Context) -> Reply:
    call.controller.wipe(call.lab)
    return Reply.empty()


@route("GET", "/labs/{lab}/state")
def state(call: Context) -> Reply:
    return Reply.of(call.lab.state(call.now))


@route("GET", "/labs/{lab}/check_if_converged")
def check_if_converged(call: Context) -> Reply:
    return Reply.of(call.lab.is_converged(call.now))


@route("GET", "/labs/{lab}/lab_element_state")
def element_state(call: Context) -> Reply:
    lab, now = call.lab, call.now
    return Reply.of(
        {
            "nodes": {node.id: node.life.state(now) for node in lab.nodes.values()},
            "links": {link.id: lab.link_state(link, now) for link in lab.links.values()},
            "interfaces": {each.id: lab.interface_state(each, now) for each in lab.interfaces()},
        }
    )


@route("GET", "/labs/{lab}/simulation_stats")
def simulation_stats(call: Context) -> Reply:
    lab, now, seed = call.lab, call.now, call.options.seed
    is_modern = call.options.is_modern
    return Reply.of(
        {
            "nodes": {
                node.id: node_statistics(node, now, seed=seed, is_modern=is_modern)
                for node in lab.nodes.values()
            },
            "links": {link.id: link_statistics(lab, link, now, seed=seed) for link in lab.links.values()},
        }
    )


@route("GET", "/labs/{lab}/layer3_addresses")
def layer3_addresses(call: Context) -> Reply:
    lab = call.lab
    return Reply.of({node.id: api_json.addresses_json(lab, node, call.now) for node in lab.nodes.values()})


@route("GET", "/labs/{lab}/resource_pools")
def resource_pools(call: Context) -> Reply:
    pool = controller_info.resource_pool(call.controller)
    return Reply.of([pool["id"]] if call.lab.nodes else [])


@route("GET", "/labs/{lab}/topology")
def topology(call: Context) -> Reply:
    lab = call.lab
    owner = call.controller.users.user(lab.owner).id
    configurations = not call.request.flag("exclude_configurations")
    return Reply.of(api_json.topology_json(lab, owner, configurations=configurations))


@route("GET", "/labs/{lab}/download")
def download(call: Context) -> Reply:
    shape = api_json.topology_json(call.lab, "", configurations=True)
    return Reply.text(yaml.safe_dump(shape, sort_keys=False), "text/plain")


@route("GET", "/labs/{lab}/interfaces")
def interfaces(call: Context) -> Reply:
    lab = call.lab
    if not call.options.is_modern:
        raise ApiError(405, f"Method Not Allowed: GET {call.request.path}")
    shown = [api_json.interface_json(lab, each, call.now, operational=True) for each in lab.interfaces()]
    return Reply.of(shown)


@route("GET", "/labs/{lab}/interfaces/{interface}")
def interface(call: Context) -> Reply:
    lab, interface_id = call.lab, call.ids["interface"]
    found = next((each for each in lab.interfaces() if each.id == interface_id), None)
    if found is None:
        raise ApiError(404, f"Interface not found: {interface_id}")
    live = call.request.flag("operational")
    return Reply.of(api_json.interface_json(lab, found, call.now, operational=live))


@route("GET", "/labs/{lab}/links/{link}")
def link(call: Context) -> Reply:
    lab, link_id = call.lab, call.ids["link"]
    if link_id not in lab.links:
        raise ApiError(404, f"Link not found: {link_id}")
    return Reply.of(api_json.link_json(lab, lab.links[link_id], call.now))


def _shape(call: Context, lab: SimLab) -> dict[str, Any]:
    return api_json.lab_json(lab, call.controller.users.user(lab.owner).id, call.now)
