"""The demo topologies are realistic exports."""

from pathlib import Path

import pytest

import lcm
from lcm.cml.topology.parser import Topology, parse_topology

FOLDER = Path(lcm.__file__).parent / "demo" / "topologies"
FILES = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def demo(request) -> Topology:
    return parse_topology(request.param.read_bytes())


def test_the_demo_has_eight_topologies():
    assert len(FILES) == 8


def test_a_topology_parses_without_a_warning(demo):
    assert demo.title
    assert demo.warnings == ()


def test_its_size_fits_on_a_page(demo):
    assert 4 <= demo.node_count <= 14
    assert len({(node.x, node.y) for node in demo.nodes}) == demo.node_count


def test_every_node_is_linked(demo):
    linked = {end for link in demo.links for end in (link.n1, link.n2)}
    assert linked == {node.id for node in demo.nodes}


def test_its_ports_are_in_the_range_of_a_worker(demo):
    assert demo.ports
    assert all(2000 <= port.outside <= 7999 for port in demo.ports)


def test_a_topology_has_requirements(demo):
    requirements = demo.requirements
    assert min(requirements.cpu_cores, requirements.memory_gb, requirements.storage_gb) > 0


def test_all_demo_topologies_differ():
    assert len({parse_topology(path.read_bytes()).epoch for path in FILES}) == len(FILES)
