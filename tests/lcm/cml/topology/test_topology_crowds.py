"""Very large topologies are read, or rejected, quickly."""

import time
from collections.abc import Callable

import pytest

from lcm.cml.topology.limits import MAX_NODES, MAX_TAGS
from lcm.cml.topology.parser import TopologyError, parse_topology


def many_ports() -> str:
    def tags(number: int) -> str:
        return ", ".join(f'"serial:{number * MAX_TAGS + index + 1}"' for index in range(MAX_TAGS))

    return "nodes:\n" + "".join(
        f"- {{id: n{n}, label: R{n}, node_definition: iosv, tags: [{tags(n)}]}}\n" for n in range(MAX_NODES)
    )


def many_links() -> str:
    pairs, each = 50, 200
    interfaces = ", ".join(f"{{id: {i}}}" for i in range(each))
    ends = [(2 * pair, i) for pair in range(pairs) for i in range(each)]
    links = "".join(f"- {{n1: n{n}, i1: {i}, n2: n{n + 1}, i2: {i}}}\n" for n, i in ends)
    nodes = "".join(
        f"- {{id: n{n}, label: R{n}, node_definition: iosv, interfaces: [{interfaces}]}}\n"
        for n in range(2 * pairs)
    )
    return f"nodes:\n{nodes}links:\n{links}"


def long_configuration() -> str:
    return "nodes: [{id: n0, label: R1, node_definition: iosv, configuration: " + "word " * 380_000 + "}]"


@pytest.mark.parametrize("make", [many_ports, many_links, long_configuration])
def test_a_large_topology_is_read_quickly(make: Callable[[], str]):
    text = make()
    started = time.process_time()
    assert parse_topology(text).nodes
    assert time.process_time() - started < 10


def test_too_many_values_are_rejected_quickly():
    started = time.process_time()
    with pytest.raises(TopologyError, match="more than 250,000 values"):
        parse_topology("a: [" + "1," * 300_000 + "]")
    assert time.process_time() - started < 10


def test_many_problems_are_found_quickly():
    started = time.process_time()
    with pytest.raises(TopologyError):
        parse_topology("nodes: [" + "{}, " * 900 + "]\nlinks: [" + "{}, " * 10_000 + "]")
    assert time.process_time() - started < 10
