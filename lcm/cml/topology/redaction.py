"""Redaction of node configurations in a topology, because they can contain device passwords."""

from collections.abc import Mapping

from lcm.cml.topology.errors import Problems, TopologyError
from lcm.cml.topology.yaml_loader import load_mapping
from lcm.cml.topology.yaml_writer import write_yaml

REDACTED = "redacted (needs the role Operator)"
# Keys that describe a node. CML may add keys, so all others are hidden by default.
SHOWN_OF_NODE = frozenset(
    {
        "id", "label", "node_definition", "image_definition", "cpus", "cpu_limit", "ram", "boot_disk_size",
        "data_volume", "tags", "x", "y", "interfaces", "hide_links",
    }
)  # fmt: skip
HIDDEN_EVERYWHERE = frozenset({"configuration", "configurations"})


def redact_topology(text: str) -> str:
    """Return a topology as YAML without node configurations and comments; empty if it cannot be parsed."""
    try:
        root = load_mapping(text, Problems())
    except TopologyError:
        return ""
    return write_yaml({key: _redact_root(key, value) for key, value in root.items()})


def _redact_root(key: str, value: object) -> object:
    if key == "nodes" and isinstance(value, list):
        return [_redact_node(node) for node in value]
    return _hidden(value) if key in HIDDEN_EVERYWHERE else _redact(value)


def _redact_node(node: object) -> object:
    if not isinstance(node, Mapping):
        return _hidden(node)
    return {key: _redact(value) if key in SHOWN_OF_NODE else _hidden(value) for key, value in node.items()}


def _redact(value: object) -> object:
    """Hide configurations at any depth. The parser limits the depth of a document."""
    if isinstance(value, Mapping):
        return {
            key: _hidden(item) if key in HIDDEN_EVERYWHERE else _redact(item) for key, item in value.items()
        }
    return [_redact(item) for item in value] if isinstance(value, list) else value


def _hidden(value: object) -> object:
    """Return the placeholder. An empty value stays, to show that nothing is hidden."""
    return REDACTED if value or value == 0 else value
