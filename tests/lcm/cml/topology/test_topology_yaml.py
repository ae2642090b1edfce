"""YAML that is broken, tricky or hostile."""

import time

import pytest
import yaml

from lcm.cml.topology import yaml_loader
from lcm.cml.topology.document_builder import MAX_ALIASES, MAX_DEPTH
from lcm.cml.topology.parser import TopologyError, parse_topology

NODES = "nodes: [{id: n0, label: R1, node_definition: iosv}]\n"


@pytest.fixture(params=["fast reader", "plain reader"], autouse=True)
def reader(request, monkeypatch):
    """Run each test with and without libyaml."""
    if request.param == "plain reader":
        monkeypatch.setattr(yaml_loader, "_Loader", yaml.SafeLoader)


def error_message(text: str | bytes, path: str = "topology") -> str:
    with pytest.raises(TopologyError) as caught:
        parse_topology(text)
    (message,) = caught.value.as_fields()[path]
    return message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        (b"", "is empty"),
        ("  \n# only a comment\n", "is empty"),
        ("---\n", "is empty"),
        ("null", "is empty"),
        ("just a sentence", "must be a mapping"),
        ("- a\n- b", "must be a mapping"),
        ("42", "must be a mapping"),
        ("nodes: [", "not valid YAML: line"),
        ("a: b: c", "not valid YAML: line 1"),
        ("a:\n\t- b", "not valid YAML: line 2"),
        ("\x00", "not valid YAML"),
        ("\x07", "not valid YAML"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (NODES.encode("utf-16"), "not UTF-8"),
        (b"a: \xe9", "not UTF-8"),
        ("a: \ud800", "not UTF-8"),
        (f"---\n{NODES}---\n{NODES}", "more than one YAML document"),
        ('a: "\\0"', "cannot be stored"),
        # Tags
        ("a: !!python/object/apply:os.system [id]", "YAML tags such as tag:yaml.org,2002:python"),
        ("a: !!python/name:os.system", "YAML tags"),
        ("a: !mine 5", "YAML tags such as !mine"),
        ("a: !!str 5", "YAML tags"),
        ("!!map {a: 1}", "YAML tags"),
        ("a: !!binary aGk=", "YAML tags"),
        ("! a: 1", "YAML tags"),
        # Keys
        ("? [a, b]\n: c", "a key must be text"),
        ("? {a: b}\n: c", "a key must be text"),
        ("a: &x 1\n*x : 2", "a key must be text"),
        ("a: &x {b: 1}\nc: {<<: *x}", "merge keys"),
        # Aliases
        ("a: *missing", "*missing is not defined before it is used"),
        ("a: &a [*a]", "*a is not defined before it is used"),
        ("a: &x 1\nb: [" + "*x, " * (MAX_ALIASES + 1) + "]", "more than 50 aliases"),
        # Nesting
        ("[" * (MAX_DEPTH + 1), "nested too deep"),
        ("{a: " * 100_000, "nested too deep"),
        ("[" * 500_000 + "]" * 500_000, "nested too deep"),
        ("- " * 100_000, "nested too deep"),
        ("\n".join(" " * i + "a:" for i in range(200)), "nested too deep"),
    ],
)
def test_an_unreadable_document_is_rejected_with_the_reason(text, reason):
    assert reason in error_message(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"{NODES}{NODES}", "nodes"),
        ("nodes: [{id: n0, label: R1, label: R2, node_definition: iosv}]", "nodes[0].label"),
        (NODES + 'extra: {deep: [{}, {"k": 1, k: 2}]}', "extra.deep[1].k"),
        (NODES + "extra: {a: [1], a: {b: 1, c: 2}, d: 1}", "extra.a"),
    ],
)
def test_a_duplicate_key_is_rejected_with_its_path(text, path):
    assert "Duplicate key" in error_message(text, path)


def test_all_duplicate_keys_are_named():
    with pytest.raises(TopologyError) as caught:
        parse_topology("a: 1\na: 2\nb: 1\nb: 2\n" + NODES)
    assert list(caught.value.as_fields()) == ["a", "b"]


def test_a_few_aliases_are_expanded():
    text = """
    nodes:
      - {id: n0, label: R1, node_definition: &d csr1000v, tags: &t [core], ram: &r 4096}
      - {id: n1, label: R2, node_definition: *d, tags: *t, ram: *r}
    """
    first, second = parse_topology(text).nodes
    assert (second.node_definition, second.tags, second.ram_mb) == (first.node_definition, ("core",), 4096)


def read_quickly(text: str) -> str:
    """Return the error message for a text, which must not take long."""
    started = time.process_time()
    message = error_message(text)
    assert time.process_time() - started < 5
    return message


def test_a_billion_laughs_are_rejected_quickly():
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10)]
    assert "more than" in read_quickly("\n".join(lines))


def test_few_aliases_that_expand_to_too_many_values_are_rejected_quickly():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 24)]
    assert "more than 250,000 values when written out" in read_quickly("\n".join(lines))


@pytest.mark.parametrize(
    "number", ["1" + ":1" * 900_000, "0x" + "f" * 1_900_000, "9" * 1_900_000, "1_" * 900_000]
)
def test_numbers_that_are_expensive_to_compute_are_not_computed(number):
    started = time.process_time()
    with pytest.raises(TopologyError, match=r"nodes\[0\]\.ram"):
        parse_topology(f"nodes:\n- id: n0\n  label: R1\n  node_definition: iosv\n  ram: {number}\n")
    assert time.process_time() - started < 10
