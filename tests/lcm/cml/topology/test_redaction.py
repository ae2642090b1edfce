"""Redacted topologies: no form of a configuration is left, and everything else stays."""

from pathlib import Path

import pytest

from lcm.cml.topology.parser import parse_topology
from lcm.cml.topology.redaction import REDACTED, redact_topology

DEMO = sorted((Path(__file__).parents[4] / "lcm/demo/topologies").glob("*.yaml"))
LAB = """
lab: {{title: Lab, created: 2024-01-01, mac: 0x1F}}  # secret
{root}
nodes:
  - id: n0
    label: r1
    node_definition: iosv
    {node}
    interfaces: [{{id: i0, label: Gi0/0}}]
links: []
"""
SECRETS = [
    ("", "configuration: secret"),
    ("", "configuration: |\n      enable\n      secret"),
    ("", "configuration: {name: Main, content: secret}"),
    ("", "configuration: [{name: a, content: secret}, {name: b, content: secret}]"),
    ("", "'configuration': &kept secret\n    boot: *kept"),
    ("", "configurations: [{name: a, content: secret}]"),
    ("", "pyats: {username: cisco, password: secret}"),
    ("", "parameters: {user_data: secret}"),
    ("configuration: secret", ""),
    ("annotations: [{text_content: Hall 1, configuration: secret}]", ""),
]


@pytest.mark.parametrize(("root", "node"), SECRETS)
def test_no_form_of_a_configuration_is_left(root, node):
    text = LAB.format(root=root, node=node)
    redacted = redact_topology(text)
    assert "secret" not in redacted
    assert REDACTED in redacted
    assert parse_topology(redacted) == parse_topology(text)


def test_an_empty_configuration_and_unsupported_scalars_stay():
    redacted = redact_topology(LAB.format(root="", node="configuration: ''"))
    assert "configuration: ''" in redacted
    assert "created: 2024-01-01" in redacted
    assert "mac: 0x1F" in redacted


@pytest.mark.parametrize("path", DEMO, ids=lambda path: path.stem)
def test_a_redacted_demo_topology_parses_to_the_same_values(path):
    assert parse_topology(redact_topology(path.read_text())) == parse_topology(path.read_text())


@pytest.mark.parametrize("text", ["", "secret", "nodes: [secret", "a: &a [*a]", "- configuration: secret"])
def test_a_text_that_cannot_be_parsed_is_hidden_completely(text):
    assert redact_topology(text) == ""
