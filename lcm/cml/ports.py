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
    """A tag names a port protocol but cannot be read as a port."""


@dataclass(frozen=True)
class PortTag(Record):
    """A port as a tag gives it; `inside` is the node's port, or for serial the number of the line."""

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
    """What a node must have for its ports to be found."""

    @property
    def label(self) -> str: ...

    @property
    def tags(self) -> Sequence[str]: ...


def parse_tag(tag: str) -> PortTag | None:
    """The port that a tag asks for, or None for an ordinary tag; raises TagError when it is malformed."""
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


def format_tag(port: PortTag) -> str:
    """The tag that asks for a port: the inverse of parse_tag."""
    parts = [port.protocol]
    if port.transport != TCP:
        parts.append(port.transport)
    parts.append(str(port.outside))
    if port.inside is not None:
        parts.append(str(port.inside))
    return ":".join(parts)


def tag_format(protocol: str) -> str:
    """How a tag of this protocol is written."""
    return FORMS.get(protocol, f"{protocol}:<outside> or {protocol}:<outside>:<inside>")


def port_template(nodes: Iterable[TaggedNode]) -> list[PortTemplateEntry]:
    """The ports of all nodes, in the order of the nodes and tags, each with a name of its own."""
    found = [(node.label, port) for node in nodes for tag in node.tags if (port := parse_tag(tag))]
    names = _names(found)
    return [
        PortTemplateEntry(name, label, port.protocol, port.outside, port.inside, port.transport)
        for name, (label, port) in zip(names, found, strict=True)
    ]


@dataclass
class _NameBook:
    """The names given so far, and for each plain name the number that comes next."""

    taken: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def enter(self, base: str, inside: int | None) -> str:
        """The plain name, else with the inside port, else with the first free number."""
        candidates = [base] if inside is None else [base, f"{base}_{inside}"]
        name = next((candidate for candidate in candidates if candidate not in self.taken), base)
        while name in self.taken:
            self.counts[base] = self.counts.get(base, 1) + 1
            name = f"{base}_{self.counts[base]}"
        self.taken.add(name)
        return name


def _names(found: Sequence[tuple[str, PortTag]]) -> list[str]:
    """A name per port; which of a kind comes first does not hang on the order of nodes or of unlike tags."""

    def by_what_it_leads_to(index: int) -> tuple[str, str, int, str, int]:
        label, port = found[index]
        return label, port.protocol, -1 if port.inside is None else port.inside, port.transport, index

    book = _NameBook()
    names = [""] * len(found)
    for index in sorted(range(len(found)), key=by_what_it_leads_to):
        label, port = found[index]
        names[index] = book.enter(re.sub(r"[^A-Za-z0-9_-]", "_", f"{label}_{port.protocol}"), port.inside)
    return names


def _inside(tag: str, protocol: str, part: str) -> int:
    """The node's port, or the number of the serial line."""
    return _number(tag, part, 0, MAX_SERIAL_LINE) if protocol == SERIAL else _number(tag, part, 1, MAX_PORT)


def _number(tag: str, part: str, low: int, high: int) -> int:
    """A part of a tag as a number in a range."""
    if not (part.isascii() and part.isdigit()):
        raise TagError(f'The tag "{_short(tag)}" needs a number where it has "{_short(part)}".')
    number = int(part[:10])
    if not low <= number <= high:
        raise TagError(f'In the tag "{_short(tag)}" the number {part[:10]} is out of range: {low} to {high}.')
    return number


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
