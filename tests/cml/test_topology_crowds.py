"""Topologies that are crowded in one place are read, or refused, quickly."""

import time
from collections.abc import Callable

import pytest

from lcm.cml.topology import TopologyError, parse_topology


def many_ports() -> str:
    tags = ", ".join(f'"serial:{port}"' for port in range(1, 65_536))
    return f"nodes: [{{id: n0, label: R1, node_definition: iosv, tags: [{tags}]}}]"


def many_links() -> str:
    count = 15_000
    interfaces = ", ".join(f"{{id: {i}}}" for i in range(count))
    links = "".join(f"- {{n1: n0, i1: {i}, n2: n1, i2: {i}}}\n" for i in range(count))
    nodes = "".join(
        f"- {{id: n{n}, label: R{n}, node_definition: iosv, interfaces: [{interfaces}]}}\n" for n in (0, 1)
    )
    return f"nodes:\n{nodes}links:\n{links}"


def long_notes() -> str:
    return (
        "lab: {title: t, notes: "
        + "word " * 380_000
        + "}\nnodes: [{id: n0, label: R1, node_definition: iosv}]"
    )


@pytest.mark.parametrize("make", [many_ports, many_links, long_notes])
def test_a_crowded_topology_is_read_quickly(make: Callable[[], str]):
    text = make()
    started = time.process_time()
    assert parse_topology(text).nodes
    assert time.process_time() - started < 10


def test_too_many_values_are_refused_quickly():
    started = time.process_time()
    with pytest.raises(TopologyError, match="more than 250,000 values"):
        parse_topology("a: [" + "1," * 300_000 + "]")
    assert time.process_time() - started < 10


def test_many_problems_are_found_quickly():
    started = time.process_time()
    with pytest.raises(TopologyError):
        parse_topology("nodes: [" + "{}, " * 900 + "]\nlinks: [" + "{}, " * 50_000 + "]")
    assert time.process_time() - started < 10
