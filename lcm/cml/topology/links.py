"""Reading the links of a topology."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from lcm.cml.topology.fields import Section
from lcm.cml.topology.limits import MAX_LINK_LABEL, MAX_LINKS
from lcm.cml.topology.model import TopologyLink, TopologyNode
from lcm.cml.topology.yaml_scalars import display_value


@dataclass
class _Ends:
    """Possible ends of links, and the ends in use."""

    nodes: dict[str, TopologyNode]
    interfaces: set[tuple[str, str]]
    used: dict[tuple[str, str], str] = field(default_factory=dict)

    def read(self, link: Section, node_key: str, interface_key: str) -> tuple[str, str]:
        """Return the node id and interface id of one end of a link."""
        node_id, interface_id = link.required_identifier(node_key), link.required_identifier(interface_key)
        node = self.nodes.get(node_id)
        if node is None:
            if node_id:
                link.problem(node_key, f"No node has the ID {display_value(node_id)}.")
            return node_id, interface_id
        if interface_id and (node_id, interface_id) not in self.interfaces:
            link.problem(
                interface_key, f"{node.label} has no interface with the ID {display_value(interface_id)}."
            )
        elif interface_id:
            self._take(link, interface_key, node, interface_id)
        return node_id, interface_id

    def _take(self, link: Section, key: str, node: TopologyNode, interface_id: str) -> None:
        """Mark an interface as used; it can have only one link."""
        end = (node.id, interface_id)
        if end in self.used:
            link.problem(
                key,
                f"Interface {display_value(interface_id)} of {node.label} is already used by "
                f"{self.used[end]}.",
            )
        self.used.setdefault(end, link.path)


def read_links(root: Section, nodes: Iterable[TopologyNode]) -> tuple[TopologyLink, ...]:
    """Return all links, and record a problem for each end that does not exist."""
    by_id = {node.id: node for node in nodes if node.id}
    interfaces = {(node.id, interface.id) for node in nodes for interface in node.interfaces}
    ends = _Ends(by_id, interfaces)
    return tuple(_read_link(section, ends) for section in root.sections("links", limit=MAX_LINKS))


def _read_link(section: Section, ends: _Ends) -> TopologyLink:
    """Return one link. If it has no id, its path serves as the id."""
    n1, i1 = ends.read(section, "n1", "i1")
    n2, i2 = ends.read(section, "n2", "i2")
    id = section.identifier("id") or section.path
    return TopologyLink(id, section.free_text("label", limit=MAX_LINK_LABEL), n1, i1, n2, i2)
