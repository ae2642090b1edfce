"""Reading the tags of a node, and who has which outside port."""

from dataclasses import dataclass, field

from lcm.cml.fields import Section, short_text
from lcm.cml.limits import MAX_TAG, MAX_TAGS
from lcm.cml.ports import PortTag, TagError, parse_tag


@dataclass
class PortLedger:
    """The outside ports of a topology and who has them; TCP and UDP are counted apart."""

    holders: dict[tuple[str, int], str] = field(default_factory=dict)

    def claim(self, port: PortTag, holder: str) -> str | None:
        """Give a port to a holder, or say who already has it."""
        held_by = self.holders.setdefault((port.transport, port.outside), holder)
        return None if held_by == holder else held_by


def read_tags(section: Section, label: str, ledger: PortLedger) -> tuple[str, ...]:
    """The tags of a node; one that names a port must be readable and its outside port free."""
    tags = []
    for index, item in enumerate(section.items("tags", limit=MAX_TAGS)):
        path = f"{section.place('tags')}[{index}]"
        if item is None:
            section.problems.add(path, "A tag must be text, not null.")
        elif tag := short_text(item, path, section.problems, limit=MAX_TAG):
            tags.append(tag)
            if problem := _port_problem(tag, f"{label or 'a node'} ({path})", ledger):
                section.problems.add(path, problem)
    return tuple(tags)


def _port_problem(tag: str, holder: str, ledger: PortLedger) -> str | None:
    """What is wrong with the port of a tag, if it has one."""
    try:
        port = parse_tag(tag)
    except TagError as error:
        return str(error)
    if port is None or (held_by := ledger.claim(port, holder)) is None:
        return None
    return f"The outside port {port.outside}/{port.transport} is already used by {held_by}."
