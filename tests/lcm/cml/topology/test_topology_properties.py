"""What holds for any topology, and for anything that is not one."""

import json
import random
import re

import yaml
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.topology.parser import FieldError, Topology, TopologyError, parse_topology

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.dates()
    | st.sampled_from(["serial:5041", "pat:x", "n0", "i0", "R1", "iosv"])
)
keys = st.text(max_size=8) | st.sampled_from(
    [
        "lab",
        "nodes",
        "links",
        "id",
        "label",
        "node_definition",
        "tags",
        "ram",
        "cpus",
        "interfaces",
        "n1",
        "i1",
    ]
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=30,
)
near_nodes = st.fixed_dictionaries(
    {"id": scalars, "label": scalars, "node_definition": scalars},
    optional=dict.fromkeys(
        ("ram", "cpus", "cpu_limit", "tags", "interfaces", "configuration", "x"), anything
    ),
)
near_topologies = st.fixed_dictionaries(
    {"nodes": st.lists(near_nodes | anything, max_size=4)}, optional={"lab": anything, "links": anything}
)

labels = st.text(alphabet="abR1 /é_-", min_size=1, max_size=6).filter(str.strip)
nodes = st.fixed_dictionaries(
    {
        "node_definition": st.sampled_from(["iosv", "alpine", "vendor-x", "unmanaged_switch"]),
        "ram": st.none() | st.integers(1, 65536),
        "cpus": st.none() | st.integers(1, 16),
        "cpu_limit": st.none() | st.integers(20, 100),
        "x": st.integers(-1000, 1000),
    }
)


@st.composite
def topologies(draw: st.DrawFn) -> dict:
    """A sound topology: a chain of nodes with ports."""
    rows = []
    kinds = st.sampled_from(["serial:{}", "vnc:{}", "pat:{}:22", "pat:udp:{}:161", "ssh:{}"])
    for index, label in enumerate(draw(st.lists(labels, min_size=1, max_size=6, unique=True))):
        tags = [
            kind.format(2000 + index * 10 + k) for k, kind in enumerate(draw(st.lists(kinds, max_size=4)))
        ]
        interfaces = [{"id": "i0", "label": "eth0"}, {"id": "i1", "label": "eth1"}]
        rows.append(
            {"id": f"n{index}", "label": label, "tags": tags, "interfaces": interfaces, **draw(nodes)}
        )
    links = [{"n1": f"n{i}", "i1": "i1", "n2": f"n{i + 1}", "i2": "i0"} for i in range(len(rows) - 1)]
    return {"lab": {"title": draw(labels)}, "nodes": rows, "links": links}


def shuffled(value: object, rng: random.Random) -> object:
    """Return the same mappings with keys in another order."""
    if isinstance(value, dict):
        entries = [(key, shuffled(item, rng)) for key, item in value.items()]
        rng.shuffle(entries)
        return dict(entries)
    return [shuffled(item, rng) for item in value] if isinstance(value, list) else value


def imported(text: str | bytes) -> tuple[Topology | None, list[FieldError]]:
    try:
        return parse_topology(text), []
    except TopologyError as error:
        return None, error.errors


def check_parses_or_raises(text: str | bytes) -> None:
    topology, errors = imported(text)
    assert (topology is None) == bool(errors)
    assert all(problem.path and problem.message.endswith(".") for problem in errors)
    if topology:
        json.dumps(topology.to_dict(), allow_nan=False).encode()


@given(anything | near_topologies)
def test_any_document_parses_or_is_rejected_with_messages(document):
    check_parses_or_raises(yaml.dump(document, Dumper=yaml.SafeDumper))


@given(near_topologies, st.booleans())
def test_any_unicode_document_parses_or_is_rejected(document, flow):
    text = yaml.dump(document, Dumper=yaml.SafeDumper, allow_unicode=True, default_flow_style=flow)
    check_parses_or_raises(text)


@given(st.text() | st.text(alphabet="[]{}:,-?&*!|>'\"%@`# \nab1."))
def test_any_text_parses_or_is_rejected(text):
    check_parses_or_raises(text)


@given(st.binary())
def test_any_bytes_parse_or_are_rejected(data):
    check_parses_or_raises(data)


@given(topologies(), st.randoms(use_true_random=False), st.booleans())
def test_key_order_formatting_and_positions_do_not_change_the_epoch(document, rng, flow):
    before = parse_topology(yaml.safe_dump(document)).epoch
    for row in document["nodes"]:
        row["x"] += 10
    rng.shuffle(document["nodes"])
    text = yaml.safe_dump(shuffled(document, rng), sort_keys=False, default_flow_style=flow)
    assert parse_topology(text).epoch == before


@given(topologies(), st.integers(1, 100_000))
def test_changed_ram_changes_the_epoch(document, ram):
    row = document["nodes"][0]
    row.update(node_definition="iosv", ram=ram)
    before = parse_topology(yaml.safe_dump(document)).epoch
    row.update(ram=ram + 1)
    assert parse_topology(yaml.safe_dump(document)).epoch != before


@given(topologies())
def test_port_names_are_unique_and_plain(document):
    names = [port.name for port in parse_topology(yaml.safe_dump(document)).ports]
    assert len(names) == len(set(names)) == sum(len(row["tags"]) for row in document["nodes"])
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names)


@given(topologies())
def test_the_requirements_cover_the_nodes_and_little_more(document):
    topology = parse_topology(yaml.safe_dump(document))
    requirements = topology.requirements
    assert 0 <= requirements.cpu_cores - sum(node.cpu_cores for node in topology.nodes) < 0.5
    assert 0 <= requirements.memory_gb * 1024 - sum(node.memory_mb for node in topology.nodes) < 512
    assert 0 <= requirements.storage_gb - sum(node.storage_gb for node in topology.nodes) < 1
