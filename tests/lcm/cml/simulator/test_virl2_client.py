"""Cisco's virl2-client against the simulator, over the lifecycle of a lab."""

import time

import pytest
from virl2_client import ClientLibrary
from virl2_client.exceptions import InitializationError, LabNotFound

from tests.support.cml_environment import TWO_ROUTERS

pytestmark = pytest.mark.integration


@pytest.fixture
def address(simulator, request):
    name = request.node.name[:60].replace("[", "-").replace("]", "")
    address = simulator.admin.add(
        name, boot_seconds=0.2, queue_seconds=0.05, starting_seconds=0.05, stop_seconds=0.05
    )
    yield f"{address}/"
    simulator.admin.remove(name)


def connect(address, password="simulated"):
    return ClientLibrary(
        address,
        "admin",
        password,
        ssl_verify=True,
        allow_http=True,
        raise_for_auth_failure=True,
        convergence_wait_time=0.05,
    )


@pytest.fixture
def lab(address):
    lab = connect(address).import_lab(TWO_ROUTERS, title="the session 42")
    lab.wait_time = 0.05
    lab.wait_max_iterations = 200
    return lab


def test_the_client_connects_and_reads_the_version_and_the_user(address):
    client = connect(address)
    assert (client.is_system_ready(), client.admin, client.username) == (True, True, "admin")
    assert str(client.check_controller_version()).startswith("2.10.")


def test_a_wrong_password_is_reported_as_such(address):
    with pytest.raises(InitializationError, match="check your username and password"):
        connect(address, "wrong")


def test_the_client_imports_starts_and_waits_for_convergence(lab):
    assert (lab.title, len(lab.nodes()), len(lab.links()), lab.state()) == (
        "the session 42",
        3,
        1,
        "DEFINED_ON_CORE",
    )
    lab.start(wait=True)
    assert lab.is_active()
    assert {node.state for node in lab.nodes()} == {"BOOTED"}
    assert all(node.is_booted() for node in lab.nodes())
    assert {link.state for link in lab.links()} == {"STARTED"}


def test_the_client_reads_nodes_interfaces_and_statistics(lab):
    lab.start(wait=True)
    router = lab.get_node_by_label("R2")
    assert (router.node_definition, router.ram, router.cpus, router.tags()) == (
        "iosv",
        1024,
        2,
        ["serial:5002"],
    )
    assert router.operational["ram"] == 1024
    interface = router.get_interface_by_label("Gi0/0")
    assert (interface.slot, interface.physical, interface.connected) == (0, True, True)
    assert interface.deployed_mac_address.startswith("52:54:00:")
    lab.sync_statistics()
    assert router.cpu_usage > 0
    assert router.statistics["disk_read"] > 0
    assert interface.peer_node.label == "R1"


def test_the_client_reads_health_and_the_usage_of_a_resource_pool(address, lab):
    lab.start(wait=True)
    client = connect(address)
    assert client.get_system_health()["valid"] is True
    (pool,) = client.resource_pool_management.resource_pools.values()
    usage = pool.get_usage()
    assert (usage.usage.licenses, usage.usage.ram, usage.limit.ram) == (2, 1792, pool.ram)


def test_the_client_reads_snooped_addresses(lab):
    lab.start(wait=True)
    interface = lab.get_node_by_label("R1").get_interface_by_label("Gi0/0")
    deadline = time.monotonic() + 10
    while not interface.discovered_ipv4 and time.monotonic() < deadline:
        time.sleep(0.1)
        lab.sync_layer3_addresses()
    assert interface.discovered_ipv4[0].startswith("10.")
    assert interface.discovered_mac_address == interface.deployed_mac_address


def test_the_client_changes_tags(lab):
    node = lab.get_node_by_label("R1")
    node._set_node_property("tags", ["serial:7001"])
    lab.sync()
    assert lab.get_node_by_label("R1").tags() == ["serial:7001"]


def test_the_client_stops_wipes_and_removes(address, lab):
    lab.start(wait=True)
    lab.stop(wait=True)
    assert lab.state() == "STOPPED"
    lab.wipe(wait=True)
    assert lab.state() == "DEFINED_ON_CORE"
    lab.remove()
    client = connect(address)
    assert client.get_lab_list(show_all=True) == []
    with pytest.raises(LabNotFound):
        client.join_existing_lab(lab._id)


def test_the_client_finds_labs_by_title_and_joins_them(address, lab):
    found = connect(address).find_labs_by_title("the session 42")
    assert [each.id for each in found] == [lab.id]
    assert connect(address).join_existing_lab(lab.id).owner == "admin"


def test_a_deleted_lab_is_detected(simulator, address, lab):
    client = connect(address)
    joined = client.join_existing_lab(lab.id)
    lab.remove()
    with pytest.raises(LabNotFound):
        joined.sync()


def test_an_expired_token_is_renewed(simulator, address, lab):
    simulator.admin.expire_tokens(address.rstrip("/").rpartition("/")[2])
    assert lab.state() == "DEFINED_ON_CORE"


def test_a_downloaded_lab_can_be_imported_again(address, lab):
    again = connect(address).import_lab(lab.download(), title="again")
    assert sorted(node.label for node in again.nodes()) == ["R1", "R2", "out"]
    assert len(again.links()) == 1
