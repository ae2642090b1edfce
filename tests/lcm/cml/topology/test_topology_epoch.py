"""Changes that do and do not affect the epoch."""

import re
from collections.abc import Callable

import pytest
import yaml

from lcm.cml.topology.parser import parse_topology

BASE = """
lab: {title: Lab, version: 0.3.0}
nodes:
  - id: n0
    label: R1
    node_definition: csr1000v
    image_definition: null
    x: 1
    y: 2
    ram: 4096
    cpus: 2
    cpu_limit: null
    boot_disk_size: null
    data_volume: null
    configuration: hostname R1
    tags: [core, "serial:5041", "pat:2022:22"]
    interfaces: [{id: i0, label: Gi1}, {id: i1, label: Gi2}]
  - id: n1
    label: R2
    node_definition: csr1000v
    ram: null
    interfaces: [{id: i0, label: Gi1}, {id: i1, label: Gi2}]
  - id: n2
    label: SW
    node_definition: unmanaged_switch
    interfaces: [{id: i0, label: port0}]
links:
  - {id: l0, n1: n0, i1: i0, n2: n1, i2: i0}
  - {id: l1, n1: n1, i1: i1, n2: n2, i2: i0}
"""


def epoch_after(change: Callable[[dict], object]) -> str:
    document = yaml.safe_load(BASE)
    change(document)
    return parse_topology(yaml.safe_dump(document)).epoch


def renamed(document: dict) -> None:
    """Change the ids of nodes, interfaces and links; the lab stays the same."""
    text = yaml.safe_dump(document)
    text = re.sub(r"\bn(\d)\b(?!:)", r"node-\1", text)
    text = re.sub(r"\bi(\d)\b(?!:)", r"if-\1", text)
    document.clear()
    document.update(yaml.safe_load(text))


def node(document: dict, index: int = 0) -> dict:
    return document["nodes"][index]


SAME = {
    "title": lambda d: d["lab"].update(title="Other", notes="n", version="0.2.2"),
    "positions": lambda d: node(d).update(x=500, y=-3),
    "configuration": lambda d: node(d).update(configuration="hostname other"),
    "annotations": lambda d: d.update(annotations=[{"type": "text"}]),
    "port numbers": lambda d: node(d).update(tags=["core", "serial:6000", "pat:6001:22"]),
    "order of tags": lambda d: node(d)["tags"].reverse(),
    "ordinary tags": lambda d: node(d)["tags"].append("red"),
    "order of nodes": lambda d: d["nodes"].reverse(),
    "order of links": lambda d: d["links"].reverse(),
    "direction of a link": lambda d: d["links"][0].update(n1="n1", n2="n0"),
    "names of links": lambda d: d["links"][0].update(id="other", label="other"),
    "ids": renamed,
    "full cpu limit": lambda d: node(d).update(cpu_limit=100),
    "zero for not set": lambda d: node(d, 1).update(ram=0, cpus=0),
    "a spare interface": lambda d: node(d)["interfaces"].append({"id": "i9", "label": "Gi9"}),
    "figures of a switch": lambda d: node(d, 2).update(ram=512),
}

OTHER = {
    "label": lambda d: node(d).update(label="R9"),
    "definition": lambda d: node(d).update(node_definition="cat8000v"),
    "image": lambda d: node(d).update(image_definition="csr1000v-17"),
    "ram": lambda d: node(d).update(ram=4097),
    "ram no longer given": lambda d: node(d).update(ram=None),
    "cpus": lambda d: node(d).update(cpus=3),
    "cpu limit": lambda d: node(d).update(cpu_limit=99),
    "boot disk": lambda d: node(d).update(boot_disk_size=16),
    "data volume": lambda d: node(d).update(data_volume=16),
    "a port more": lambda d: node(d)["tags"].append("vnc:5044"),
    "a port less": lambda d: node(d)["tags"].remove("serial:5041"),
    "inside port": lambda d: node(d).update(tags=["core", "serial:5041", "pat:2022:23"]),
    "transport": lambda d: node(d).update(tags=["core", "serial:5041", "pat:udp:2022:22"]),
    "a node more": lambda d: d["nodes"].append({"id": "n9", "label": "R9", "node_definition": "iosv"}),
    "a link less": lambda d: d["links"].pop(),
    "a link elsewhere": lambda d: d["links"][0].update(i1="i1"),
}


@pytest.mark.parametrize("change", SAME.values(), ids=SAME)
def test_the_epoch_does_not_change(change):
    assert epoch_after(change) == parse_topology(BASE).epoch


@pytest.mark.parametrize("change", OTHER.values(), ids=OTHER)
def test_the_epoch_changes(change):
    assert epoch_after(change) != parse_topology(BASE).epoch


@pytest.mark.parametrize(
    "dump", [{"default_flow_style": True}, {"sort_keys": False}, {"indent": 8, "width": 20}]
)
def test_formatting_does_not_change_the_epoch(dump):
    assert parse_topology(yaml.safe_dump(yaml.safe_load(BASE), **dump)).epoch == parse_topology(BASE).epoch


def test_the_epoch_is_a_sha256_that_is_stable_across_releases():
    assert parse_topology(BASE).epoch == "def4ffb226a34911f6dcdad7a9581f9c55ac083f1f0b8517cf558d3a9f1d7059"
