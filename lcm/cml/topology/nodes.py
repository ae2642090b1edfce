"""Reading the nodes of a topology."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lcm.cml.ports import PortTag, TagError, parse_tag
from lcm.cml.topology.fields import Section, short_text
from lcm.cml.topology.limits import (
    MAX_INTERFACE_LABEL,
    MAX_INTERFACES,
    MAX_NODE_NAME,
    MAX_NODES,
    MAX_TAG,
    MAX_TAGS,
)
from lcm.cml.topology.model import NodeInterface, TopologyNode
from lcm.cml.topology.requirements import effective_resources
from lcm.cml.topology.yaml_scalars import display_value


@dataclass
class PortRegistry:
    """Outside ports of a topology and their holders. TCP and UDP ports are separate."""

    holders: dict[tuple[str, int], str] = field(default_factory=dict)

    def claim(self, port: PortTag, holder: str) -> str | None:
        """Register a port for a holder, or return the problem that another node holds it."""
        held_by = self.holders.setdefault((port.transport, port.outside), holder)
        if held_by == holder:
            return None
        return f"The outside port {port.outside}/{port.transport} is already used by {held_by}."


def read_tags(section: Section, label: str, registry: PortRegistry) -> tuple[str, ...]:
    """Return the tags of a node. A port tag must be well-formed and its outside port unused."""
    tags = []
    for index, item in enumerate(section.items("tags", limit=MAX_TAGS)):
        path = f"{section.path_of('tags')}[{index}]"
        if item is None:
            section.problems.add(path, "A tag must be text, not null.")
        elif tag := short_text(item, path, section.problems, limit=MAX_TAG):
            tags.append(tag)
            if problem := _port_problem(tag, f"{label or 'a node'} ({path})", registry):
                section.problems.add(path, problem)
    return tuple(tags)


def _port_problem(tag: str, holder: str, registry: PortRegistry) -> str | None:
    """Return the problem of a port tag, or None."""
    try:
        port = parse_tag(tag)
    except TagError as error:
        return str(error)
    return registry.claim(port, holder) if port else None


MAX_CPUS = 128
MAX_RAM_MB = 1024 * 1024
MAX_DISK_GB = 4096
LOWEST_CPU_LIMIT = 20


def read_nodes(root: Section) -> tuple[TopologyNode, ...]:
    """Return all nodes, and record the problems of each and conflicts between them."""
    entries = root.values.get("nodes")
    if entries is None or entries == []:
        root.problem("nodes", "The topology has no nodes.")
    sections = list(root.sections("nodes", limit=MAX_NODES))
    registry = PortRegistry()
    nodes = tuple(_read_node(section, registry) for section in sections)
    _reject_repeated(sections, "label", [node.label for node in nodes])
    _reject_repeated(sections, "id", [node.id for node in nodes])
    return nodes


def _read_node(section: Section, registry: PortRegistry) -> TopologyNode:
    """Return one node. A field with a problem reads as not set."""
    label = section.required_text("label", limit=MAX_NODE_NAME)
    definition = section.required_text("node_definition", limit=MAX_NODE_NAME)
    # Exports of older controllers write 0 for “use the node definition's default”.
    cpus = section.integer("cpus", low=0, high=MAX_CPUS) or None
    ram_mb = section.integer("ram", low=0, high=MAX_RAM_MB, unit="MB") or None
    boot_disk_gb = section.integer("boot_disk_size", low=0, high=MAX_DISK_GB, unit="GB") or None
    data_volume_gb = section.integer("data_volume", low=0, high=MAX_DISK_GB, unit="GB") or None
    cpu_limit = _read_cpu_limit(section, label)
    _check_configuration(section)
    size = effective_resources(
        definition,
        cpus=cpus,
        cpu_limit=cpu_limit,
        ram_mb=ram_mb,
        boot_disk_gb=boot_disk_gb,
        data_volume_gb=data_volume_gb,
    )
    return TopologyNode(
        id=section.required_identifier("id"),
        label=label,
        node_definition=definition,
        image_definition=section.text("image_definition"),
        cpus=cpus,
        cpu_limit=cpu_limit,
        ram_mb=ram_mb,
        boot_disk_gb=boot_disk_gb,
        data_volume_gb=data_volume_gb,
        tags=read_tags(section, label, registry),
        x=section.coordinate("x"),
        y=section.coordinate("y"),
        interfaces=_read_interfaces(section),
        cpu_cores=size.cpu_cores,
        memory_mb=size.memory_mb,
        storage_gb=size.storage_gb,
    )


def _read_cpu_limit(section: Section, label: str) -> int | None:
    """Return the percentage of its CPUs that a node may use."""
    limit = section.integer("cpu_limit", low=1, high=100, unit="percent")
    if limit is not None and limit < LOWEST_CPU_LIMIT:
        section.problems.warn(
            f"{label}: a cpu_limit of {limit} percent is below {LOWEST_CPU_LIMIT}, the minimum of CML."
        )
    return limit


def _check_configuration(section: Section) -> None:
    """Record a problem for what CML would reject. The message omits the text, which may hold a password."""
    value = section.values.get("configuration")
    files = [value] if isinstance(value, dict) else value
    if files is None or isinstance(files, str):
        return
    if not isinstance(files, list) or not all(isinstance(entry, dict) for entry in files):
        section.problem("configuration", "configuration must be text or a list of name and content.")


def _read_interfaces(section: Section) -> tuple[NodeInterface, ...]:
    """Return the interfaces. An interface without a label uses its id."""
    entries = list(section.sections("interfaces", limit=MAX_INTERFACES))
    ids = [entry.required_identifier("id") for entry in entries]
    _reject_repeated(entries, "id", ids)
    labels = [entry.text("label", limit=MAX_INTERFACE_LABEL) for entry in entries]
    return tuple(NodeInterface(id, label or id) for id, label in zip(ids, labels, strict=True))


def _reject_repeated(sections: Iterable[Section], key: str, values: Iterable[str]) -> None:
    """Record a problem for each value that an earlier entry already has."""
    first: dict[str, Section] = {}
    for section, value in zip(sections, values, strict=True):
        if value and first.setdefault(value, section) is not section:
            section.problem(key, f"{key} {display_value(value)} is already used by {first[value].path}.")
