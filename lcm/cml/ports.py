"""Ports in node tags: `serial:5041`, `vnc:5044`, `pat:udp:2161:161`, `ssh:5022:22`, and their names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lcm.cml.records import Record

TCP = "tcp"
UDP = "udp"
PAT = "pat"
SERIAL = "serial"
VNC = "vnc"
WITH_INSIDE_PORT = frozenset({"ssh", "telnet", "http", "https"})
PROTOCOLS = frozenset({SERIAL, VNC, PAT}) | WITH_INSIDE_PORT

MAX_PORT = 65535
MAX_SERIAL_LINE = 15

FORMS = {
    SERIAL: "serial:<port> or serial:<port>:<line>",
    VNC: "vnc:<port>",
    PAT: "pat:<outside>:<inside>, pat:tcp:<outside>:<inside> or pat:udp:<outside>:<inside>",
}


class TagError(ValueError):
    """A tag starts with a port protocol but is malformed."""


@dataclass(frozen=True)
class PortTag(Record):
    """A port in a tag. `inside` is the node's port, or the line number for serial."""

    protocol: str
    outside: int
    inside: int | None = None
    transport: str = TCP


@dataclass(frozen=True)
class PortTemplateEntry(Record):
    """A port that every session of a topology has."""

    name: str
    node_label: str
    protocol: str
    outside: int
    inside: int | None
    transport: str


class TaggedNode(Protocol):
    """A node with a label and tags."""

    @property
    def label(self) -> str: ...

    @property
    def tags(self) -> Sequence[str]: ...


def parse_tag(tag: str) -> PortTag | None:
    """Return the port that a tag requests, or None for an ordinary tag. Raises TagError if malformed."""
    prefix, colon, rest = tag.partition(":")
    protocol = prefix.strip().lower()
    if not colon or protocol not in PROTOCOLS or rest.startswith("//"):
        return None
    parts = rest.split(":")
    transport = TCP
    if protocol == PAT and parts[0] in (TCP, UDP):
        transport = parts.pop(0)
    fewest, most = (2, 2) if protocol == PAT else (1, 1 if protocol == VNC else 2)
    if not fewest <= len(parts) <= most:
        raise TagError(f'The tag "{_short(tag)}" is not of the form {tag_format(protocol)}.')
    inside = None if len(parts) == 1 else _inside(tag, protocol, parts[1])
    return PortTag(protocol, _number(tag, parts[0], 1, MAX_PORT), inside, transport)


def readable_port(tag: str) -> PortTag | None:
    """Return the port that a tag requests, or None for an ordinary or malformed tag."""
    try:
        return parse_tag(tag)
    except TagError:
        return None


def format_tag(port: PortTag) -> str:
    """Return the tag of a port: the inverse of parse_tag."""
    parts = [port.protocol]
    if port.transport != TCP:
        parts.append(port.transport)
    parts.append(str(port.outside))
    if port.inside is not None:
        parts.append(str(port.inside))
    return ":".join(parts)


def tag_format(protocol: str) -> str:
    """Return the syntax of a tag of this protocol."""
    return FORMS.get(protocol, f"{protocol}:<outside> or {protocol}:<outside>:<inside>")


def port_template(nodes: Iterable[TaggedNode]) -> list[PortTemplateEntry]:
    """Return the ports of all nodes in order, each with a unique name."""
    ports = [(node.label, port) for node in nodes for tag in node.tags if (port := parse_tag(tag))]
    names = _names(ports)
    return [
        PortTemplateEntry(name, label, port.protocol, port.outside, port.inside, port.transport)
        for name, (label, port) in zip(names, ports, strict=True)
    ]


@dataclass
class _NameRegistry:
    """Names in use, and the next number of each base name."""

    taken: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def register(self, base: str, inside: int | None) -> str:
        """Return the base name, or one with the inside port, or one with the first free number."""
        candidates = [base] if inside is None else [base, f"{base}_{inside}"]
        name = next((candidate for candidate in candidates if candidate not in self.taken), base)
        while name in self.taken:
            self.counts[base] = self.counts.get(base, 1) + 1
            name = f"{base}_{self.counts[base]}"
        self.taken.add(name)
        return name


def _names(ports: Sequence[tuple[str, PortTag]]) -> list[str]:
    """Return a name per port that does not depend on the order of nodes or of unrelated tags."""

    def by_target(index: int) -> tuple[str, str, int, str, int]:
        label, port = ports[index]
        return label, port.protocol, -1 if port.inside is None else port.inside, port.transport, index

    registry = _NameRegistry()
    names = [""] * len(ports)
    for index in sorted(range(len(ports)), key=by_target):
        label, port = ports[index]
        names[index] = registry.register(
            re.sub(r"[^A-Za-z0-9_-]", "_", f"{label}_{port.protocol}"), port.inside
        )
    return names


def _inside(tag: str, protocol: str, part: str) -> int:
    """Return the node's port, or the number of the serial line."""
    return _number(tag, part, 0, MAX_SERIAL_LINE) if protocol == SERIAL else _number(tag, part, 1, MAX_PORT)


def _number(tag: str, part: str, low: int, high: int) -> int:
    """Return a part of a tag as a number in a range."""
    if not (part.isascii() and part.isdigit()):
        raise TagError(f'The tag "{_short(tag)}" must have a number instead of "{_short(part)}".')
    number = int(part[:10])
    if not low <= number <= high:
        raise TagError(f'In the tag "{_short(tag)}" the number {part[:10]} is out of range: {low} to {high}.')
    return number


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
