"""Comparison of the port template with the ports of observed labs."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lcm.cml.ports import MAX_PORT, PortTag, PortTemplateEntry, format_tag, port_template
from lcm.cml.topology.port_templates import NodePort

ADD, REMOVE = "add", "remove"

# Node, protocol, transport, port on the node, and an index among identical ports.
Key = tuple[str, str, str, int | None, int]


@dataclass(frozen=True)
class Lab:
    """Ports of one observed lab: ports with a known tag, and the names of other ports."""

    ports: Sequence[PortTemplateEntry]
    other_names: Collection[str] = ()


@dataclass(frozen=True)
class PortLine:
    """One port of the template or of observed labs; `observed` of `of` sessions have it.

    `problem` says why an observed port cannot be added.
    """

    name: str
    observed: int
    of: int
    in_template: bool
    port: PortTemplateEntry | None = None
    problem: str = ""

    @property
    def action(self) -> str:
        """The change that an administrator can choose if template and labs differ."""
        if self.in_template:
            return REMOVE if self.observed < self.of else ""
        return "" if self.problem else ADD

    @property
    def suggested(self) -> bool:
        """Whether to suggest the change: add ports that most sessions have, remove ports that most lack."""
        if self.action == ADD:
            return self.observed * 2 > self.of
        return self.action == REMOVE and self.observed * 2 < self.of

    @property
    def line(self) -> str:
        return str(node_port(self.port)) if self.port else ""


def node_port(entry: PortTemplateEntry) -> NodePort:
    tag = PortTag(entry.protocol, entry.outside, entry.inside, entry.transport)
    return NodePort(entry.node_label, format_tag(tag))


def compare_template(
    template: Sequence[PortTemplateEntry], labs: Sequence[Lab], labels: Collection[str]
) -> list[PortLine]:
    """Return the ports of the template in order, then the other observed ports by name.

    `labs` are sorted newest first: an added port gets the outside port of the newest lab. `labels` are the
    nodes of the topology.
    """
    planned = _by_key(template)
    observed_ports = [_by_key(lab.ports) for lab in labs]
    extra: dict[Key, PortTemplateEntry] = {}
    for ports in observed_ports:
        extra = {key: entry for key, entry in ports.items() if key not in planned} | extra
    n = len(labs)
    lines = [
        PortLine(entry.name, sum(key in ports for ports in observed_ports), n, in_template=True, port=entry)
        for key, entry in planned.items()
    ]
    others = [
        PortLine(
            entry.name,
            sum(key in ports for ports in observed_ports),
            n,
            in_template=False,
            port=entry,
            problem="" if entry.node_label in labels else f"There is no node “{entry.node_label}”.",
        )
        for key, entry in zip(extra, _with_free_outside(extra.values(), template), strict=True)
    ]
    others += [
        PortLine(
            name,
            sum(name in lab.other_names for lab in labs),
            n,
            in_template=False,
            problem="No observed tag describes this port.",
        )
        for name in {name for lab in labs for name in lab.other_names}
    ]
    return [*lines, *sorted(others, key=lambda line: line.name)]


def suggested_template(lines: Sequence[PortLine]) -> list[PortTemplateEntry]:
    """Return the template with all suggested changes, named as when applied."""
    kept = [line.port for line in lines if line.port and line.in_template != line.suggested]
    return port_template([node_port(entry) for entry in kept])


def _by_key(entries: Iterable[PortTemplateEntry]) -> dict[Key, PortTemplateEntry]:
    """Return entries by target, because names and outside ports differ between labs."""
    by_key: dict[Key, PortTemplateEntry] = {}
    for entry in entries:
        index = 0
        while (key := (entry.node_label, entry.protocol, entry.transport, entry.inside, index)) in by_key:
            index += 1
        by_key[key] = entry
    return by_key


def _with_free_outside(
    entries: Iterable[PortTemplateEntry], template: Iterable[PortTemplateEntry]
) -> list[PortTemplateEntry]:
    """Give each added port an outside port that the template does not use."""
    taken = {(entry.transport, entry.outside) for entry in template}
    ports = []
    for entry in entries:
        outside = entry.outside
        while (entry.transport, outside) in taken:
            outside = outside % MAX_PORT + 1
        taken.add((entry.transport, outside))
        ports.append(replace(entry, outside=outside))
    return ports
