"""Import of a CML topology: from the YAML of a lab to nodes, links, ports and requirements."""

from dataclasses import dataclass

from lcm.cml.ports import port_template
from lcm.cml.topology.epoch import topology_epoch
from lcm.cml.topology.errors import FieldError, Problems, TopologyError
from lcm.cml.topology.fields import Section
from lcm.cml.topology.limits import MAX_DESCRIPTION, MAX_NODES, MAX_NOTES, MAX_TITLE
from lcm.cml.topology.links import read_links
from lcm.cml.topology.model import NodeInterface, Topology, TopologyLink, TopologyNode
from lcm.cml.topology.nodes import read_nodes
from lcm.cml.topology.requirements import assumptions, estimate_requirements, unknown_definitions
from lcm.cml.topology.yaml_loader import MAX_BYTES, load_mapping

__all__ = [
    "MAX_BYTES",
    "MAX_NODES",
    "FieldError",
    "NodeInterface",
    "Topology",
    "TopologyError",
    "TopologyLink",
    "TopologyNode",
    "parse_topology",
]

KNOWN_SCHEMAS = frozenset(
    {"0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5", "0.1.0", "0.2.0", "0.2.1", "0.2.2", "0.3.0"}
)


@dataclass(frozen=True)
class _Lab:
    """The fields that describe the lab as a whole."""

    title: str
    description: str
    notes: str
    version: str


def parse_topology(text: str | bytes) -> Topology:
    """Parse a topology. Raises TopologyError with all problems."""
    problems = Problems()
    root = Section(load_mapping(text, problems), "", problems)
    lab = _read_lab(root)
    nodes = read_nodes(root)
    links = read_links(root, nodes)
    problems.raise_if_any()
    return Topology(
        title=lab.title,
        description=lab.description,
        notes=lab.notes,
        schema_version=lab.version,
        nodes=nodes,
        links=links,
        ports=tuple(port_template(nodes)),
        requirements=estimate_requirements(nodes),
        assumptions=assumptions(nodes),
        warnings=(*problems.warnings, *unknown_definitions(nodes)),
        epoch=topology_epoch(nodes, links),
    )


def _read_lab(root: Section) -> _Lab:
    """Read the lab block: `lab.title` and so on, or `lab_title` in files of older controllers."""
    block = root.section("lab")

    def either(key: str, limit: int) -> str:
        places = ((block, key), (block, f"lab_{key}"), (root, f"lab_{key}"))
        return next((text for section, name in places if (text := section.free_text(name, limit=limit))), "")

    title, description = either("title", MAX_TITLE).strip(), either("description", MAX_DESCRIPTION)
    lab = _Lab(title, description, either("notes", MAX_NOTES), block.free_text("version", limit=MAX_TITLE))
    if not lab.title:
        root.problems.warn("The topology has no title.")
    if lab.version and lab.version not in KNOWN_SCHEMAS:
        root.problems.warn(f"Schema version {lab.version[:20]} is unknown. Check the imported values.")
    return lab
