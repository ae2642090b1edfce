"""The simulator's responses have the keys of real controllers' responses."""

import json

import pytest

from tests.support.cml_environment import TWO_ROUTERS, SimulatorClock, make_simulator
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
def client(version):
    clock = SimulatorClock()
    client = SimulatorClient(make_simulator(clock, version=version))
    client.lab = client.import_lab(TWO_ROUTERS)
    client("PUT", f"/labs/{client.lab}/start")
    clock.advance(60)
    return client


def test_a_lab_has_the_fields_of_cml(client):
    lab = client.get(f"/labs/{client.lab}")
    assert set(lab) == LAB
    assert lab["effective_permissions"] == ["lab_view", "lab_admin", "lab_exec", "lab_edit"]


def test_running_nodes_have_the_fields_of_cml(client, version):
    for node in client.get(f"/labs/{client.lab}/nodes", data="true", operational="true"):
        assert set(node) == NODE[version]
        assert set(node["operational"]) == OPERATIONAL
        assert node["boot_progress"] == "Booted"


def test_a_stopped_node_has_no_operational_values(client, version):
    lab = client.import_lab(TWO_ROUTERS)
    node = client.get(f"/labs/{lab}/nodes", data="true", operational="true")[0]
    assert set(node) == NODE[version]
    assert (node["state"], node["boot_progress"], node["operational"]) == (
        "DEFINED_ON_CORE",
        "Not running",
        None,
    )
    if version == "2.9":
        assert (node["compute_id"], node["vnc_key"], node["serial_consoles"]) == (None, None, [])


def test_interfaces_have_the_fields_of_cml(client):
    node = client.get(f"/labs/{client.lab}/nodes")[1]
    (interface,) = client.get(f"/labs/{client.lab}/nodes/{node}/interfaces", data="true", operational="true")
    assert set(interface) == INTERFACE
    assert set(interface["operational"]) == {"device_name", "mac_address", "dst_udp_port", "src_udp_port"}
    assert interface["mac_address"] is None
    assert (interface["type"], interface["slot"], interface["is_connected"]) == ("physical", 0, True)


def test_operational_values_are_only_returned_on_request(client):
    node = client.get(f"/labs/{client.lab}/nodes")[1]
    (interface,) = client.get(f"/labs/{client.lab}/nodes/{node}/interfaces", data="true")
    assert set(interface) == INTERFACE - {"operational"}
    assert client.get(f"/labs/{client.lab}/nodes/{node}")["operational"] is None


def test_one_interface_equals_its_entry_in_the_list(client):
    node = client.get(f"/labs/{client.lab}/nodes")[1]
    (listed,) = client.get(f"/labs/{client.lab}/nodes/{node}/interfaces", data="true", operational="true")
    path = f"/labs/{client.lab}/interfaces/{listed['id']}"
    assert client.get(path, operational="true") == listed
    assert set(client.get(path)) == INTERFACE - {"operational"}
    assert error(client("GET", f"/labs/{client.lab}/interfaces/none")) == (404, "Interface not found: none")


def test_statistics_have_the_fields_of_cml(client, version):
    stats = client.get(f"/labs/{client.lab}/simulation_stats")
    router, _, connector = stats["nodes"].values()
    assert set(router) == STATISTICS[version]
    assert set(connector) == ({"times"} if version == "2.9" else {"times", "is_running"})
    assert set(router["times"]) == {"QUEUED", "STARTED", "BOOTED"}
    (link,) = stats["links"].values()
    assert set(link) == {"readbytes", "readpackets", "writebytes", "writepackets", "drops"}


def test_addresses_are_keyed_by_node_and_mac(client):
    for node in client.get(f"/labs/{client.lab}/layer3_addresses").values():
        assert set(node) == {"name", "interfaces"}
        for mac, interface in node["interfaces"].items():
            assert mac.count(":") == 5
            assert set(interface) == {"id", "label", "ip4", "ip6"}


def test_every_element_of_the_lab_has_a_state(client):
    states = client.get(f"/labs/{client.lab}/lab_element_state")
    assert set(states) == {"nodes", "links", "interfaces"}
    assert [len(states[kind]) for kind in ("nodes", "links", "interfaces")] == [3, 1, 4]


def test_the_controller_reports_its_version_and_computes(client, version):
    information = client.get("/system_information")
    assert set(information) == {"version", "ready", "allow_ssh_pubkey_auth", "oui"}
    assert information["version"].startswith(f"{version}.")
    stats = client.get("/system_stats")
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


def test_a_resource_pool_reports_limit_and_usage(client):
    (pool,) = client.get("/resource_pool_usage")
    assert set(pool) == {"id", "label", "description", "limit", "usage"}
    assert (
        set(pool["limit"])
        == set(pool["usage"])
        == {"licenses", "ram", "cpus", "disk_space", "external_connectors"}
    )
    assert client.get(f"/labs/{client.lab}/resource_pools") == client.get("/resource_pools") == [pool["id"]]
    assert client.get(f"/resource_pool_usage/{pool['id']}") == pool
    assert error(client("GET", "/resource_pool_usage/none")) == (404, "Resource pool not found: none")


def test_health_has_the_fields_of_cml(client):
    health = client.get("/system_health")
    assert set(health) == {"valid", "computes", "is_licensed", "is_enterprise", "controller"}
    assert set(health["controller"]) == {"core_connected", "nodes_loaded", "images_loaded", "valid"}
    (compute_id,) = client.get("/system_stats")["computes"]
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


def test_a_token_is_a_bare_text_of_three_parts(client):
    body = {"username": "admin", "password": "simulated"}
    token = json.loads(client("POST", "/authenticate", body).body)
    assert token.count(".") == 2
    assert client("DELETE", "/logout").body == b"true"
    assert client("GET", "/labs").status == 401


def test_the_authenticated_user_is_returned(client, version):
    assert client.get("/authok") == "OK"
    (user,) = client.get("/users")
    reply = client("GET", "/authentication")
    if version == "2.9":
        assert reply.status == 404
    else:
        me = json.loads(reply.body)
        assert (me["id"], me["username"], me["admin"]) == (user["id"], "admin", True)
