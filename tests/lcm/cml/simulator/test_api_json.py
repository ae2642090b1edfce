"""The simulator's responses have the keys of real controllers' responses."""

import json

import pytest

from tests.support.cml_environment import TWO_ROUTERS, Clock, simulated
from tests.support.simulator_client import SimulatorClient, error

LAB = {
    "id",
    "created",
    "modified",
    "lab_description",
    "lab_notes",
    "lab_title",
    "owner",
    "owner_username",
    "owner_fullname",
    "state",
    "node_count",
    "link_count",
    "groups",
    "effective_permissions",
}
CONFIGURED = {
    "id",
    "lab_id",
    "label",
    "node_definition",
    "image_definition",
    "x",
    "y",
    "tags",
    "parameters",
    "hide_links",
    "cpus",
    "cpu_limit",
    "ram",
    "data_volume",
    "boot_disk_size",
    "pinned_compute_id",
    "state",
    "boot_progress",
    "configuration",
    "operational",
}
NODE = {
    "2.9": CONFIGURED | {"compute_id", "iol_app_id", "resource_pool", "vnc_key", "serial_consoles"},
    "2.10": CONFIGURED | {"priority", "pyats"},
}
OPERATIONAL = {
    "boot_disk_size",
    "cpu_limit",
    "cpus",
    "data_volume",
    "ram",
    "compute_id",
    "image_definition",
    "vnc_key",
    "resource_pool",
    "iol_app_id",
    "serial_consoles",
}
INTERFACE = {
    "id",
    "is_connected",
    "lab_id",
    "label",
    "mac_address",
    "node",
    "slot",
    "type",
    "state",
    "operational",
}
STATISTICS = {"2.9": {"cpu_usage", "block0_wr_bytes", "block0_rd_bytes", "times"}}
STATISTICS["2.10"] = STATISTICS["2.9"] | {"is_running", "ram_usage", "disk_usage", "cpu_limit", "cpus", "ram"}

pytestmark = pytest.mark.parametrize("version", ["2.9", "2.10"])


@pytest.fixture
def ask(version):
    clock = Clock()
    ask = SimulatorClient(simulated(clock, version=version))
    ask.lab = ask.imported(TWO_ROUTERS)
    ask("PUT", f"/labs/{ask.lab}/start")
    clock.pass_seconds(60)
    return ask


def test_a_lab(ask):
    lab = ask.get(f"/labs/{ask.lab}")
    assert set(lab) == LAB
    assert lab["effective_permissions"] == ["lab_view", "lab_admin", "lab_exec", "lab_edit"]


def test_nodes(ask, version):
    for node in ask.get(f"/labs/{ask.lab}/nodes", data="true", operational="true"):
        assert set(node) == NODE[version]
        assert set(node["operational"]) == OPERATIONAL
        assert node["boot_progress"] == "Booted"


def test_a_stopped_node(ask, version):
    lab = ask.imported(TWO_ROUTERS)
    node = ask.get(f"/labs/{lab}/nodes", data="true", operational="true")[0]
    assert set(node) == NODE[version]
    assert (node["state"], node["boot_progress"], node["operational"]) == (
        "DEFINED_ON_CORE",
        "Not running",
        None,
    )
    if version == "2.9":
        assert (node["compute_id"], node["vnc_key"], node["serial_consoles"]) == (None, None, [])


def test_interfaces(ask):
    node = ask.get(f"/labs/{ask.lab}/nodes")[1]
    (interface,) = ask.get(f"/labs/{ask.lab}/nodes/{node}/interfaces", data="true", operational="true")
    assert set(interface) == INTERFACE
    assert set(interface["operational"]) == {"device_name", "mac_address", "dst_udp_port", "src_udp_port"}
    assert interface["mac_address"] is None
    assert (interface["type"], interface["slot"], interface["is_connected"]) == ("physical", 0, True)


def test_operational_values_are_only_returned_on_request(ask):
    node = ask.get(f"/labs/{ask.lab}/nodes")[1]
    (interface,) = ask.get(f"/labs/{ask.lab}/nodes/{node}/interfaces", data="true")
    assert set(interface) == INTERFACE - {"operational"}
    assert ask.get(f"/labs/{ask.lab}/nodes/{node}")["operational"] is None


def test_one_interface_of_a_lab(ask):
    node = ask.get(f"/labs/{ask.lab}/nodes")[1]
    (listed,) = ask.get(f"/labs/{ask.lab}/nodes/{node}/interfaces", data="true", operational="true")
    path = f"/labs/{ask.lab}/interfaces/{listed['id']}"
    assert ask.get(path, operational="true") == listed
    assert set(ask.get(path)) == INTERFACE - {"operational"}
    assert error(ask("GET", f"/labs/{ask.lab}/interfaces/none")) == (404, "Interface not found: none")


def test_statistics(ask, version):
    stats = ask.get(f"/labs/{ask.lab}/simulation_stats")
    router, _, connector = stats["nodes"].values()
    assert set(router) == STATISTICS[version]
    assert set(connector) == ({"times"} if version == "2.9" else {"times", "is_running"})
    assert set(router["times"]) == {"QUEUED", "STARTED", "BOOTED"}
    (link,) = stats["links"].values()
    assert set(link) == {"readbytes", "readpackets", "writebytes", "writepackets", "drops"}


def test_addresses_are_keyed_by_node_and_mac(ask):
    for node in ask.get(f"/labs/{ask.lab}/layer3_addresses").values():
        assert set(node) == {"name", "interfaces"}
        for mac, interface in node["interfaces"].items():
            assert mac.count(":") == 5
            assert set(interface) == {"id", "label", "ip4", "ip6"}


def test_element_states(ask):
    states = ask.get(f"/labs/{ask.lab}/lab_element_state")
    assert set(states) == {"nodes", "links", "interfaces"}
    assert [len(states[kind]) for kind in ("nodes", "links", "interfaces")] == [3, 1, 4]


def test_the_controller(ask, version):
    information = ask.get("/system_information")
    assert set(information) == {"version", "ready", "allow_ssh_pubkey_auth", "oui"}
    assert information["version"].startswith(f"{version}.")
    stats = ask.get("/system_stats")
    assert set(stats) == {"computes", "all", "controller"}
    (compute,) = stats["computes"].values()
    assert set(compute) == {"hostname", "is_controller", "stats"}
    assert set(compute["stats"]) == {"cpu", "memory", "disk", "dominfo"}
    assert set(compute["stats"]["memory"]) == {"used", "free", "total"}
    assert set(compute["stats"]["dominfo"]) == {
        "total_nodes",
        "total_orphans",
        "running_nodes",
        "running_orphans",
        "allocated_cpus",
        "allocated_memory",
    }


def test_resource_pools(ask):
    (pool,) = ask.get("/resource_pool_usage")
    assert set(pool) == {"id", "label", "description", "limit", "usage"}
    assert (
        set(pool["limit"])
        == set(pool["usage"])
        == {"licenses", "ram", "cpus", "disk_space", "external_connectors"}
    )
    assert ask.get(f"/labs/{ask.lab}/resource_pools") == ask.get("/resource_pools") == [pool["id"]]
    assert ask.get(f"/resource_pool_usage/{pool['id']}") == pool
    assert error(ask("GET", "/resource_pool_usage/none")) == (404, "Resource pool not found: none")


def test_health(ask):
    health = ask.get("/system_health")
    assert set(health) == {"valid", "computes", "is_licensed", "is_enterprise", "controller"}
    assert set(health["controller"]) == {"core_connected", "nodes_loaded", "images_loaded", "valid"}
    (compute_id,) = ask.get("/system_stats")["computes"]
    assert set(health["computes"]) == {compute_id}
    assert set(health["computes"][compute_id]) == {
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
        "admission_state",
        "is_controller",
        "hostname",
    }


def test_a_token_is_a_bare_text_of_three_parts(ask):
    body = {"username": "admin", "password": "simulated"}
    token = json.loads(ask("POST", "/authenticate", body).body)
    assert token.count(".") == 2
    assert ask("DELETE", "/logout").body == b"true"
    assert ask("GET", "/labs").status == 401


def test_the_authenticated_user(ask, version):
    assert ask.get("/authok") == "OK"
    (user,) = ask.get("/users")
    reply = ask("GET", "/authentication")
    if version == "2.9":
        assert reply.status == 404
    else:
        me = json.loads(reply.body)
        assert (me["id"], me["username"], me["admin"]) == (user["id"], "admin", True)
