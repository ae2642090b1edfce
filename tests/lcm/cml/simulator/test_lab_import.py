"""Import of YAML into a lab, and export."""

import json

import pytest
import yaml

from tests.support.cml_environment import TWO_ROUTERS, make_simulator, many_nodes
from tests.support.simulator_client import SimulatorClient, error


@pytest.fixture
def client():
    return SimulatorClient(make_simulator())


def imported_topology(client, text, **query):
    return client.get(f"/labs/{client.import_lab(text)}/topology", **query)


def test_interfaces_keep_slot_type_and_address(client):
    text = TWO_ROUTERS.replace(
        "label: Gi0/0, slot: 0, type: physical}\n  - id: n1", "label: Gi0/0, slot: 7}\n  - id: n1"
    )
    first, second = imported_topology(client, text)["nodes"][0]["interfaces"]
    assert (first["type"], first["slot"]) == ("loopback", None)
    assert (second["type"], second["slot"], second["mac_address"]) == ("physical", 7, None)


def test_a_configured_mac_address_is_used(client):
    text = TWO_ROUTERS.replace(
        "{id: i0, label: port,", "{id: i0, mac_address: '02:00:00:00:00:07', label: port,"
    )
    lab = client.import_lab(text)
    client("PUT", f"/labs/{lab}/start")
    port = next(each for each in client.get(f"/labs/{lab}/interfaces") if each["label"] == "port")
    assert port["mac_address"] == port["operational"]["mac_address"] == "02:00:00:00:00:07"


@pytest.mark.parametrize(
    ("yaml_value", "files"),
    [
        ("hostname R1", [{"name": "Main", "content": "hostname R1"}]),
        ("{name: a.txt, content: x}", [{"name": "a.txt", "content": "x"}]),
        (
            "[{name: a, content: x}, {name: b, content: y}]",
            [{"name": n, "content": c} for n, c in ("ax", "by")],
        ),
        ("null", []),
    ],
)
def test_configurations_are_accepted_in_all_forms(client, yaml_value, files):
    text = TWO_ROUTERS.replace("configuration: hostname R1", f"configuration: {yaml_value}")
    assert imported_topology(client, text)["nodes"][0]["configuration"] == files
    assert imported_topology(client, text, exclude_configurations="true")["nodes"][0]["configuration"] == []


def test_values_not_set_in_the_file_stay_unset(client):
    router = imported_topology(client, TWO_ROUTERS)["nodes"][0]
    assert (router["cpus"], router["ram"], router["boot_disk_size"], router["cpu_limit"]) == (
        None,
        None,
        None,
        50,
    )


def test_links_connect_the_same_interfaces(client):
    topology = imported_topology(client, TWO_ROUTERS)
    labels = {
        each["id"]: (node["label"], each["label"])
        for node in topology["nodes"]
        for each in node["interfaces"]
    }
    (link,) = topology["links"]
    assert {labels[link["interface_a"]], labels[link["interface_b"]]} == {("R1", "Gi0/0"), ("R2", "Gi0/0")}


def without_ids(topology):
    """Return a topology without ids and times."""
    names = {node["id"]: node["label"] for node in topology["nodes"]}
    fields = (
        "label",
        "node_definition",
        "tags",
        "cpus",
        "ram",
        "cpu_limit",
        "boot_disk_size",
        "data_volume",
        "x",
        "y",
    )
    return (
        [{key: node[key] for key in fields} for node in topology["nodes"]],
        sorted(tuple(sorted((names[link["n1"]], names[link["n2"]]))) for link in topology["links"]),
    )


@pytest.mark.parametrize("text", [TWO_ROUTERS, many_nodes(40)], ids=["two routers", "many"])
def test_a_download_can_be_imported_again(client, text):
    lab = client.import_lab(text)
    downloaded = client("GET", f"/labs/{lab}/download")
    assert downloaded.content_type == "text/plain"
    assert yaml.safe_load(downloaded.body)["lab"]["version"] == "0.3.0"
    again = client.import_lab(downloaded.body.decode(), title="again")
    assert without_ids(client.get(f"/labs/{again}/topology")) == without_ids(
        client.get(f"/labs/{lab}/topology")
    )


def test_json_is_accepted_as_yaml(client):
    topology = imported_topology(client, TWO_ROUTERS)
    again = client.import_lab(json.dumps(topology))
    assert without_ids(client.get(f"/labs/{again}/topology")) == without_ids(topology)


@pytest.mark.parametrize("text", ["", "- a", "{", "nodes: 7", "lab: {}\nnodes: []", "\x00", "a: &a [*a]"])
def test_an_invalid_topology_is_400_with_the_reason(client, text):
    status, description = error(client("POST", "/import", text, title="t"))
    assert status == 400
    assert description.startswith("Bad Request: Invalid topology: ")
    assert client.get("/labs") == []


def test_warnings_are_returned_with_the_id(client):
    reply = client("POST", "/import", TWO_ROUTERS.replace("version: 0.2.2", "version: 9.9.9"))
    assert "9.9.9" in json.loads(reply.body)["warnings"][0]
