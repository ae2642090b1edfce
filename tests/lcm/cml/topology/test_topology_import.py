"""Values read from a topology, and every rule that a topology can break."""

import json
from decimal import Decimal

import pytest

from lcm.cml.topology.parser import MAX_BYTES, MAX_NODES, TopologyError, parse_topology

R1 = "{id: n0, label: R1, node_definition: iosv, interfaces: [{id: i0, label: Gi0/0}]}"
R2 = "{id: n1, label: R2, node_definition: iosv, interfaces: [{id: i0, label: Gi0/0}]}"
PAIR = f"nodes: [{R1}, {R2}]"

FULL = """
lab:
  title: Branch office
  description: A router and a host
  notes: |
    # Read me
  version: 0.3.0
nodes:
  - id: n0
    label: R1
    node_definition: csr1000v
    image_definition: csr1000v-17
    x: -200
    y: 12.6
    ram: 4096
    cpus: 2
    cpu_limit: 50
    boot_disk_size: 8
    data_volume: 4
    configuration:
      - name: iosxe_config.txt
        content: hostname R1
    tags: [core, "serial:5041", "pat:udp:2161:161"]
    something_new: [1, 2]
    interfaces:
      - {id: i0, label: Loopback0, type: loopback}
      - {id: i1, label: GigabitEthernet1, type: physical, slot: 0}
  - id: 1
    label: host
    node_definition: alpine
    image_definition: null
    configuration: hostname host
    tags: null
    interfaces: [{id: 0}]
links:
  - {id: l0, n1: n0, i1: i1, n2: 1, i2: 0, label: up}
annotations: []
"""


def errors_of(text: str | bytes) -> dict[str, list[str]]:
    with pytest.raises(TopologyError) as caught:
        parse_topology(text)
    return caught.value.as_fields()


def node(**fields: object) -> str:
    """Return a topology of one node with these fields."""
    rest = "".join(f", {key}: {value}" for key, value in fields.items())
    return f"nodes: [{{id: n0, label: R1, node_definition: iosv{rest}}}]"


def test_all_values_of_a_topology_are_read():
    topology = parse_topology(FULL)
    assert (topology.title, topology.description, topology.notes) == (
        "Branch office",
        "A router and a host",
        "# Read me\n",
    )
    assert topology.schema_version == "0.3.0"
    assert topology.node_count == 2
    router, host = topology.nodes
    assert (router.id, router.label, router.node_definition) == ("n0", "R1", "csr1000v")
    assert router.image_definition == "csr1000v-17"
    assert (router.x, router.y) == (-200, 13)
    assert (router.cpus, router.cpu_limit, router.ram_mb) == (2, 50, 4096)
    assert (router.boot_disk_gb, router.data_volume_gb) == (8, 4)
    assert router.tags == ("core", "serial:5041", "pat:udp:2161:161")
    assert [interface.label for interface in router.interfaces] == ["Loopback0", "GigabitEthernet1"]
    assert (host.id, host.image_definition, host.tags, host.x, host.ram_mb) == ("1", None, (), 0, None)
    assert host.interfaces[0].label == "0"
    (link,) = topology.links
    assert (link.id, link.n1, link.i1, link.n2, link.i2, link.label) == ("l0", "n0", "i1", "1", "0", "up")
    assert [port.name for port in topology.ports] == ["R1_serial", "R1_pat"]
    assert topology.warnings == ()


def test_a_topology_can_be_stored_as_json():
    topology = parse_topology(FULL)
    stored = json.loads(json.dumps(topology.to_dict(), allow_nan=False))
    assert stored["node_count"] == 2
    assert stored["nodes"][0]["cpu_cores"] == "1"
    assert stored["nodes"][0]["interfaces"][0] == {"id": "i0", "label": "Loopback0"}
    assert stored["requirements"] == {"cpu_cores": "2.0", "memory_gb": "4.5", "storage_gb": "13", "gpu": "0"}
    assert stored["links"][0]["n1"] == "n0"


def test_bytes_and_text_read_the_same():
    assert parse_topology(FULL) == parse_topology(FULL.encode()) == parse_topology("\ufeff" + FULL)


@pytest.mark.parametrize(
    "text",
    [
        f"lab_title: Old lab\nlab_notes: n\n{PAIR}",
        f"lab: {{lab_title: Old lab, lab_notes: n}}\n{PAIR}",
        f"lab: {{title: Old lab, notes: n}}\n{PAIR}",
    ],
)
def test_the_title_is_found_in_files_of_each_generation(text):
    topology = parse_topology(text)
    assert (topology.title, topology.notes) == ("Old lab", "n")


@pytest.mark.parametrize(
    ("written", "version"), [("0.0.5", "0.0.5"), ("0.2.2", "0.2.2"), ('"0.3.0"', "0.3.0")]
)
def test_a_known_schema_version_has_no_warning(written, version):
    topology = parse_topology(f"lab: {{title: t, version: {written}}}\n{PAIR}")
    assert (topology.schema_version, topology.warnings) == (version, ())


@pytest.mark.parametrize(("written", "version"), [("0.1", "0.1"), ("9.9.9", "9.9.9"), ("2", "2")])
def test_an_unknown_schema_version_is_read_with_a_warning(written, version):
    topology = parse_topology(f"lab: {{title: t, version: {written}}}\n{PAIR}")
    assert topology.schema_version == version
    assert any(f"Schema version {version} is unknown" in warning for warning in topology.warnings)


def test_a_lab_without_a_title_is_read_with_a_warning():
    topology = parse_topology(PAIR)
    assert (topology.title, topology.warnings) == ("", ("The topology has no title.",))


def test_a_title_may_look_like_a_number():
    assert parse_topology(f"lab: {{title: 2024, description: 0x1F}}\n{PAIR}").title == "2024"


@pytest.mark.parametrize(
    "text",
    [
        f"{PAIR}\nlinks: null",
        f"{PAIR}\nlinks: []",
        node(tags="[]", interfaces="null", configuration="null", x="null"),
        node(configuration="[{name: a, content: b}]"),
        node(configuration="{name: a, content: b}"),
        node(ram=0, cpus=0, boot_disk_size=0, data_volume=0, cpu_limit=100),
        node(tags='["pat:tcp:53:53", "pat:udp:53:53"]'),
        node(tags="[core, core]"),
        "a: &x [1, 2]\nb: *x\n" + PAIR,
    ],
)
def test_optional_and_variable_parts_of_a_topology_are_read(text):
    assert parse_topology(text).nodes


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        # The nodes as a whole
        ("lab: {title: t}", "nodes", "has no nodes"),
        ("nodes: null", "nodes", "has no nodes"),
        ("nodes: []", "nodes", "has no nodes"),
        ("nodes: {n0: R1}", "nodes", "must be a list, not a mapping"),
        ("nodes: R1", "nodes", 'must be a list, not "R1"'),
        (f"nodes: [{R1}, R2]", "nodes[1]", 'must be a mapping, not "R2"'),
        (f"nodes: [{R1}, null]", "nodes[1]", "must be a mapping, not null"),
        # Labels, ids and definitions
        ("nodes: [{id: n0, node_definition: iosv}]", "nodes[0].label", "label is missing"),
        ("nodes: [{id: n0, label: '  ', node_definition: iosv}]", "nodes[0].label", "label is empty"),
        ("nodes: [{id: n0, label: 12, node_definition: iosv}]", "nodes[0].label", 'Put it in quotes: "12"'),
        ("nodes: [{id: n0, label: no, node_definition: iosv}]", "nodes[0].label", "must be text"),
        ("nodes: [{id: n0, label: 2024-01-01, node_definition: iosv}]", "nodes[0].label", "must be text"),
        (
            "nodes: [{id: n0, label: [R1], node_definition: iosv}]",
            "nodes[0].label",
            "must be text, not a list",
        ),
        ('nodes: [{id: n0, label: "a\\nb", node_definition: iosv}]', "nodes[0].label", "line break"),
        (
            f"nodes: [{{id: n0, label: {'x' * 129}, node_definition: iosv}}]",
            "nodes[0].label",
            "longer than 128",
        ),
        (
            f"nodes: [{{id: n0, label: R1, node_definition: {'x' * 129}}}]",
            "nodes[0].node_definition",
            "longer than 128",
        ),
        ("nodes: [{id: n0, label: R1}]", "nodes[0].node_definition", "node_definition is missing"),
        ("nodes: [{label: R1, node_definition: iosv}]", "nodes[0].id", "id is missing"),
        ("nodes: [{id: true, label: R1, node_definition: iosv}]", "nodes[0].id", "id must be text"),
        (f"nodes: [{R1}, {R2.replace('R2', 'R1')}]", "nodes[1].label", '"R1" is already used by nodes[0]'),
        (f"nodes: [{R1}, {R2.replace('n1', 'n0')}]", "nodes[1].id", '"n0" is already used by nodes[0]'),
        (node(image_definition="[a]"), "nodes[0].image_definition", "must be text, not a list"),
        # Sizes
        (node(cpus="two"), "nodes[0].cpus", 'whole number from 0 to 128, not "two"'),
        (node(cpus='"2"'), "nodes[0].cpus", 'not "2"'),
        (node(cpus="true"), "nodes[0].cpus", "not true"),
        (node(cpus="1.5"), "nodes[0].cpus", "not 1.5"),
        (node(cpus="-1"), "nodes[0].cpus", "not -1"),
        (node(cpus="1000"), "nodes[0].cpus", "not 1000"),
        (node(cpus="0x10"), "nodes[0].cpus", "not 0x10"),
        (node(cpus="1:30"), "nodes[0].cpus", "not 1:30"),
        (node(cpus="[]"), "nodes[0].cpus", "not a list"),
        (node(ram="-512"), "nodes[0].ram", "from 0 to 1,048,576 MB, not -512"),
        (node(ram=".nan"), "nodes[0].ram", "not .nan"),
        (node(ram=".inf"), "nodes[0].ram", "not .inf"),
        (node(ram="1.0e+999"), "nodes[0].ram", "not 1.0e+999"),
        (node(ram="9" * 18), "nodes[0].ram", "not 999999999999999999"),
        (node(ram="9" * 60), "nodes[0].ram", "not 9999999999"),
        (node(ram="9" * 10_000), "nodes[0].ram", "not"),
        (node(cpu_limit=0), "nodes[0].cpu_limit", "from 1 to 100 percent, not 0"),
        (node(cpu_limit=101), "nodes[0].cpu_limit", "not 101"),
        (node(boot_disk_size=-1), "nodes[0].boot_disk_size", "GB, not -1"),
        (node(data_volume="big"), "nodes[0].data_volume", 'not "big"'),
        (node(x="left"), "nodes[0].x", 'must be a number up to 1,000,000, not "left"'),
        (node(y=".nan"), "nodes[0].y", "must be a number"),
        (node(y="false"), "nodes[0].y", "not false"),
        (node(configuration="5"), "nodes[0].configuration", "must be text or a list of name and content"),
        (node(configuration="[a]"), "nodes[0].configuration", "must be text or a list"),
        # Tags and ports
        (node(tags="core"), "nodes[0].tags", 'must be a list, not "core"'),
        (node(tags="[null]"), "nodes[0].tags[0]", "must be text, not null"),
        (node(tags="[core, {serial: 5041}]"), "nodes[0].tags[1]", "must be text, not a mapping"),
        (node(tags="[22:22]"), "nodes[0].tags[0]", 'Put it in quotes: "22:22"'),
        (node(tags='["serial:x"]'), "nodes[0].tags[0]", "must have a number"),
        (node(tags='["serial:70000"]'), "nodes[0].tags[0]", "out of range"),
        (node(tags='["serial:5:1:1"]'), "nodes[0].tags[0]", "not of the form"),
        (
            node(tags='["serial:5041", core, "vnc:5041"]'),
            "nodes[0].tags[2]",
            "5041/tcp is already used by R1 (nodes[0].tags[0])",
        ),
        # Interfaces and links
        (node(interfaces="{id: i0}"), "nodes[0].interfaces", "must be a list"),
        (node(interfaces="[{label: a}]"), "nodes[0].interfaces[0].id", "id is missing"),
        (node(interfaces="[{id: i0}, {id: i0}]"), "nodes[0].interfaces[1].id", '"i0" is already used'),
        (f"{PAIR}\nlinks: {{}}", "links", "must be a list"),
        (f"{PAIR}\nlinks: [l0]", "links[0]", "must be a mapping"),
        (f"{PAIR}\nlinks: [{{n1: n0, i1: i0, n2: n9, i2: i0}}]", "links[0].n2", 'No node has the ID "n9"'),
        (
            f"{PAIR}\nlinks: [{{n1: n0, i1: i7, n2: n1, i2: i0}}]",
            "links[0].i1",
            'R1 has no interface with the ID "i7"',
        ),
        (f"{PAIR}\nlinks: [{{n1: n0, i1: i0, n2: n1}}]", "links[0].i2", "i2 is missing"),
        (f"{PAIR}\nlinks: [{{n1: n0, i1: i0, n2: n0, i2: i0}}]", "links[0].i2", "already used by links[0]"),
        # The lab block
        (f"lab: hello\n{PAIR}", "lab", "must be a mapping"),
        (f"lab: {{title: [a]}}\n{PAIR}", "lab.title", "must be text, not a list"),
    ],
)
def test_a_broken_rule_is_reported_with_its_path(text, path, message):
    found = errors_of(text)
    assert list(found) == [path]
    assert len(found[path]) == 1
    assert message in found[path][0]


def test_two_nodes_cannot_have_the_same_outside_port():
    text = (
        'nodes: [{id: a, label: A, node_definition: iosv, tags: ["pat:udp:5041:1", "serial:5041"]},'
        ' {id: b, label: B, node_definition: iosv, tags: ["vnc:5041"]}]'
    )
    (message,) = errors_of(text)["nodes[1].tags[0]"]
    assert "5041/tcp is already used by A (nodes[0].tags[1])" in message


def test_every_problem_is_reported_at_once():
    text = """
    lab: 5
    nodes:
      - {id: n0, label: R1, cpus: two, ram: -1, tags: ["serial:0"]}
      - {id: n0, label: R1, node_definition: iosv, label: R9}
    links: [{n1: nowhere, i1: i0, n2: n0, i2: i5}]
    """
    assert sorted(errors_of(text)) == [
        "lab",
        "links[0].i2",
        "links[0].n1",
        "nodes[0].cpus",
        "nodes[0].node_definition",
        "nodes[0].ram",
        "nodes[0].tags[0]",
        "nodes[1].id",
        "nodes[1].label",
    ]


def test_the_error_has_paths_and_messages():
    with pytest.raises(TopologyError) as caught:
        parse_topology(node(cpus="two"))
    (error,) = caught.value.errors
    assert error.path == "nodes[0].cpus"
    assert str(caught.value) == f"nodes[0].cpus: {error.message}"


def test_the_list_of_problems_is_limited():
    with pytest.raises(TopologyError) as caught:
        parse_topology("nodes: [" + "1, " * 500 + "]")
    assert len(caught.value.errors) == 101
    assert "Only the first 100" in caught.value.errors[-1].message


def lab(**values: str) -> str:
    return f"lab: {{{', '.join(f'{name}: {value}' for name, value in values.items())}}}\n{node()}"


def interfaces(count: int, label: str = "Gi0") -> str:
    return f"[{', '.join(f'{{id: i{index}, label: {label}}}' for index in range(count))}]"


def links(count: int, label: str = "") -> str:
    ends = ", ".join(
        f"{{id: l{index}, n1: n0, i1: a, n2: n0, i2: b, label: {label}}}" for index in range(count)
    )
    return f"{node()}\nlinks: [{ends}]"


LIMITS = [
    (
        lambda excess: node(tags=f"[{'a, ' * (64 + excess)}]"),
        "nodes[0].tags",
        "tags has 65 entries; at most 64",
    ),
    (
        lambda excess: node(tags=f"[{'a' * (64 + excess)}]"),
        "nodes[0].tags[0]",
        f'tags[0] is longer than 64 characters: it has 65 and starts with "{"a" * 40}…"',
    ),
    (
        lambda excess: node(interfaces=interfaces(256 + excess)),
        "nodes[0].interfaces",
        "interfaces has 257 entries; at most 256",
    ),
    (
        lambda excess: node(interfaces=interfaces(1, "x" * (128 + excess))),
        "nodes[0].interfaces[0].label",
        "longer than 128 characters: it has 129",
    ),
    (
        lambda excess: f"nodes: [{{id: {'n' * (64 + excess)}, label: R1, node_definition: iosv}}]",
        "nodes[0].id",
        "longer than 64 characters: it has 65",
    ),
    (lambda excess: lab(title="x" * (250 + excess)), "lab.title", "longer than 250 characters: it has 251"),
    (
        lambda excess: lab(description="x" * (4096 + excess)),
        "lab.description",
        "longer than 4,096 characters",
    ),
    (lambda excess: lab(notes="x" * (32_768 + excess)), "lab.notes", "longer than 32,768 characters"),
]


@pytest.mark.parametrize(("make", "path", "message"), LIMITS)
def test_values_up_to_a_limit_are_read_and_longer_ones_rejected(make, path, message):
    assert parse_topology(make(0)).nodes
    assert message in errors_of(make(1))[path][0]


def test_links_and_their_labels_have_limits():
    assert "links has 10,001 entries; at most 10,000" in errors_of(links(10_001))["links"][0]
    assert "longer than 300 characters" in errors_of(links(1, "x" * 301))["links[0].label"][0]
    assert "links[0].label" not in errors_of(links(1, "x" * 300))


def test_a_thousand_nodes_are_read_and_one_more_is_not():
    def nodes(count: int) -> str:
        return "nodes:\n" + "".join(
            f"- {{id: n{i}, label: R{i}, node_definition: iosv}}\n" for i in range(count)
        )

    assert parse_topology(nodes(MAX_NODES)).requirements.cpu_cores == Decimal(1000)
    assert "nodes has 1,001 entries; at most 1,000" in errors_of(nodes(MAX_NODES + 1))["nodes"][0]


def test_the_size_is_checked_in_bytes_before_anything_is_read():
    accented = "# " + "é" * (MAX_BYTES // 2)
    assert "must be at most 2 MB" in errors_of(accented)["topology"][0]
    assert "must be at most 2 MB" in errors_of(b"\xff" * (MAX_BYTES + 1))["topology"][0]
