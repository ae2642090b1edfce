"""Parsing, validation and comparison of port templates."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lcm.cml.ports import (
    PROTOCOLS,
    PortTag,
    PortTemplateEntry,
    TagError,
    format_tag,
    parse_tag,
    port_template,
)
from lcm.cml.records import Record
from lcm.cml.topology.errors import MAX_ERRORS
from lcm.cml.topology.limits import MAX_TAG, MAX_TAGS
from lcm.cml.topology.nodes import PortRegistry

SHOWN_PORTS = 10


class TemplateError(ValueError):
    """The port template is invalid. `problems` has a message for each invalid port."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems[0])
        self.problems = problems


@dataclass(frozen=True)
class NodePort:
    """A port of a node as a node tag, and its expected name."""

    label: str
    tag: str
    name: str = ""

    @property
    def tags(self) -> tuple[str, ...]:
        return (self.tag,)

    def __str__(self) -> str:
        return f"{self.label} {self.tag}".strip()


def read_lines(text: str) -> list[dict[str, str]]:
    """Parse lines such as `r1 serial:5041`: node label, space, tag."""
    parts = (line.rsplit(maxsplit=1) for line in text.splitlines() if line.strip())
    return [{"node_label": " ".join(part[:-1]).strip(), "tag": part[-1]} for part in parts]


def read_entry(entry: Mapping[str, Any]) -> NodePort:
    """Read an entry of a stored template, or a line. `name`, `inside` and `transport` are optional."""
    if "tag" in entry:
        return NodePort(entry["node_label"], entry["tag"])
    port = PortTag(entry["protocol"], entry["outside"], entry.get("inside"), entry.get("transport", "tcp"))
    return NodePort(entry["node_label"], format_tag(port), entry.get("name", ""))


def check_template(ports: Sequence[NodePort], labels: Collection[str]) -> list[PortTemplateEntry]:
    """Return the template of these ports, checked as on import and named as in observations.

    `labels` are the nodes of the topology. Raises TemplateError with all problems.
    """
    registry, per_node = PortRegistry(), dict.fromkeys(labels, 0)
    problems: list[str] = []
    for number, port in enumerate(ports, 1):
        per_node[port.label] = per_node.get(port.label, 0) + 1
        problem = _problem(port, f"{port.label} (port {number})", labels, registry)
        if problem is None and per_node[port.label] > MAX_TAGS:
            problem = f"A node has at most {MAX_TAGS} ports."
        if problem and len(problems) < MAX_ERRORS:
            problems.append(f"Port {number}, “{_short(port)}”: {problem}")
    if problems:
        raise TemplateError(problems)
    template = port_template(ports)
    for number, (port, entry) in enumerate(zip(ports, template, strict=True), 1):
        if port.name and port.name != entry.name and len(problems) < MAX_ERRORS:
            problems.append(
                f"Port {number}, “{_short(port)}”: its name is {entry.name}, not {port.name[:60]}. "
                "LCM names ports after their node and protocol; leave the name out."
            )
    if problems:
        raise TemplateError(problems)
    return template


def _problem(port: NodePort, holder: str, labels: Collection[str], registry: PortRegistry) -> str | None:
    if port.label not in labels:
        return f"There is no node “{port.label[:60]}”." if port.label else "The label of a node is missing."
    if len(port.tag) > MAX_TAG:
        return f"A tag can have at most {MAX_TAG} characters."
    try:
        tag = parse_tag(port.tag)
    except TagError as error:
        return str(error)
    if tag is None:
        return f"This is not a port. A port starts with one of {', '.join(sorted(PROTOCOLS))} and a colon."
    return registry.claim(tag, holder)


def _short(port: NodePort) -> str:
    text = str(port)
    return text if len(text) <= 80 else f"{text[:80]}…"


@dataclass(frozen=True)
class PortChanges(Record):
    """Names of the ports that a revision added, removed and changed."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def __str__(self) -> str:
        return self._text(self._count)

    @property
    def short(self) -> str:
        """The first SHOWN_PORTS names and the number of the others."""
        others = self._count - SHOWN_PORTS
        return self._text(SHOWN_PORTS) + (f" and {others} more" if others > 0 else "")

    @property
    def _count(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)

    def _text(self, limit: int) -> str:
        parts = []
        for word, names in (("added", self.added), ("removed", self.removed), ("changed", self.changed)):
            if shown := names[:limit]:
                parts.append(f"{word} {', '.join(shown)}")
            limit -= len(shown)
        return "; ".join(parts)


def port_changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> PortChanges:
    """Compare two stored templates by port name."""
    old, new = ({entry["name"]: entry for entry in template} for template in (before, after))
    return PortChanges(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(name for name in new if name in old and new[name] != old[name]),
    )
