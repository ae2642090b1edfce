"""Ports of running nodes have the names of their port template."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.observation.live_ports import ports_by_node
from lcm.cml.ports import TagError, parse_tag, port_template


@dataclass(frozen=True)
class TaggedLab:
    label: str
    tags: tuple[str, ...]


protocols = st.sampled_from(["serial", "vnc", "ssh", "http", "pat", "pat:udp", "pat:tcp"])
valid_tags = st.builds(
    lambda protocol, outside, inside: f"{protocol}:{outside}" + (f":{inside}" if "pat" in protocol else ""),
    protocols,
    st.integers(1, 65535),
    st.integers(1, 65535),
)
any_tags = st.one_of(
    valid_tags, st.text(max_size=12), st.sampled_from(["serial:", "vnc:x", "pat:1", "core", "ssh:0"])
)
labels = st.sampled_from(["R1", "R 1", "web/1", "ü", ""])


def nodes_with(tags):
    return st.lists(st.builds(TaggedLab, labels, st.lists(tags, max_size=4).map(tuple)), max_size=5)


@given(nodes_with(valid_tags))
def test_names_match_the_port_template(nodes):
    expected = {entry.name: entry.outside for entry in port_template(nodes)}
    live = ports_by_node(nodes)
    assert live.all == expected
    assert live.problems == ()


@given(nodes_with(any_tags))
def test_ports_by_node_add_up_to_all_ports(nodes):
    live = ports_by_node(nodes)
    assert len(live.by_node) == len(nodes)
    assert sum(map(len, live.by_node)) == len(live.all)
    for node, ports in zip(nodes, live.by_node, strict=True):
        assert sorted(ports.values()) == sorted(outside_ports(node))
    assert len(live.problems) == sum(len(malformed_tags(node)) for node in nodes)


def outside_ports(node):
    return [port.outside for tag in node.tags if tag not in malformed_tags(node) and (port := parse_tag(tag))]


def malformed_tags(node):
    malformed = []
    for tag in node.tags:
        try:
            parse_tag(tag)
        except TagError:
            malformed.append(tag)
    return malformed


@given(nodes_with(valid_tags), st.text(max_size=10).filter(lambda tag: ":" not in tag))
def test_ordinary_tags_change_nothing(nodes, tag):
    with_tag = [TaggedLab(node.label, (tag, *node.tags)) for node in nodes]
    assert ports_by_node(with_tag).all == ports_by_node(nodes).all
