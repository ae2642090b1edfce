"""Partitioned topologies: every node once, and the links inside a worker."""

from pathlib import Path

import pytest

from lcm.cml.topology.parser import parse_topology
from lcm.cml.topology.partition import partition_topology
from tests.support.factories import LAB

DEMO = sorted((Path(__file__).parents[4] / "lcm/demo/topologies").glob("*.yaml"))


def test_nodes_links_and_omitted_links():
    partition = partition_topology(LAB, [["r1", "host"], ["r2"]])
    first, second = map(parse_topology, partition.topologies)
    assert [node.label for node in first.nodes] == ["r1", "host"]
    assert [node.label for node in second.nodes] == ["r2"]
    assert [link.id for link in first.links] == ["l1"]
    assert second.links == ()
    assert partition.dropped_links == ("r1 – r2",)


def test_a_single_part_is_the_whole_topology():
    partition = partition_topology(LAB, [["host", "r1", "r2"]])
    assert parse_topology(partition.topologies[0]) == parse_topology(LAB)
    assert partition.dropped_links == ()


@pytest.mark.parametrize("path", DEMO, ids=lambda path: path.stem)
def test_only_links_between_parts_are_lost(path):
    topology = parse_topology(path.read_text())
    labels = [node.label for node in topology.nodes]
    partition = partition_topology(path.read_text(), [labels[::2], labels[1::2]])
    parts = [parse_topology(text) for text in partition.topologies]
    nodes = [node for part in parts for node in part.nodes]
    assert sorted(nodes, key=lambda node: node.id) == sorted(topology.nodes, key=lambda node: node.id)
    assert sum(len(part.links) for part in parts) + len(partition.dropped_links) == len(topology.links)


def test_unsupported_scalars_are_written_as_read():
    dated = LAB.replace("version: 0.3.0", "version: 0.3.0, created: 2024-01-01")
    (text,) = partition_topology(dated, [["host", "r1", "r2"]]).topologies
    assert "created: 2024-01-01" in text
