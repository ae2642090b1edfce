"""Typed results of lab calls. Missing or malformed values are None; `raw` keeps CML's response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Generic, TypeVar

from lcm.cml.client.errors import CmlError
from lcm.cml.json_values import (
    Json,
    as_bool,
    as_decimal,
    as_integer,
    as_mapping,
    as_number,
    as_text,
    as_texts,
    plain_numbers,
)

T = TypeVar("T")

MAX_PERCENT = 1e6


@dataclass(frozen=True)
class Entries(Generic[T], Sequence[T]):
    """The readable entries of a list, and the indexes of unreadable ones."""

    items: tuple[T, ...] = ()
    unreadable: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> T:  # type: ignore[override]
        return self.items[index]


def entries(values: Sequence[object], read: Callable[[Json], T | None]) -> Entries[T]:
    """Read a list. Entries without an id are recorded as unreadable."""
    found = [read(value) if isinstance(value, dict) else None for value in values]
    items = tuple(item for item in found if item is not None)
    return Entries(items, tuple(index for index, item in enumerate(found) if item is None))


@dataclass(frozen=True)
class CmlLab:
    """A lab's title, owner, state and size."""

    id: str
    title: str
    state: str | None
    owner: str | None
    node_count: int | None
    created: str | None
    raw: Json = field(repr=False)

    @classmethod
    def read(cls, values: Json, lab_id: str) -> CmlLab | None:
        """Return None without a title: every lab has one, and the owner mark is in it."""
        title = as_text(values.get("lab_title"))
        if not title:
            return None
        return cls(
            id=as_text(values.get("id")) or lab_id,
            title=title,
            state=as_text(values.get("state")),
            owner=as_text(values.get("owner_username")) or as_text(values.get("owner")),
            node_count=as_integer(values.get("node_count")),
            created=as_text(values.get("created")),
            raw=values,
        )


@dataclass(frozen=True)
class CmlNode:
    """A node. Operational values take precedence over configured ones; None means unknown.

    Controllers before 2.5 return operational values at the top level; both forms are read.
    """

    id: str
    label: str
    node_definition: str
    image_definition: str | None
    state: str | None
    compute_id: str | None
    tags: tuple[str, ...]
    cpus: int | None
    cpu_limit: int | None
    ram_mb: int | None
    boot_disk_gb: int | None
    data_volume_gb: int | None
    raw: Json = field(repr=False)

    @classmethod
    def read(cls, values: Json) -> CmlNode | None:
        node_id = as_text(values.get("id"))
        if not node_id:
            return None
        operational = as_mapping(values.get("operational"))

        def live(key: str) -> object:
            value = operational.get(key)
            return values.get(key) if value is None else value

        return cls(
            id=node_id,
            label=as_text(values.get("label")) or node_id,
            node_definition=as_text(values.get("node_definition")) or "",
            image_definition=as_text(live("image_definition")),
            state=as_text(values.get("state")),
            compute_id=as_text(live("compute_id")),
            tags=as_texts(values.get("tags")),
            cpus=as_integer(live("cpus"), 10_000),
            cpu_limit=as_integer(live("cpu_limit"), 100),
            ram_mb=as_integer(live("ram"), 10**9),
            boot_disk_gb=as_integer(live("boot_disk_size"), 10**6),
            data_volume_gb=as_integer(live("data_volume"), 10**6),
            raw=values,
        )


@dataclass(frozen=True)
class CmlInterface:
    """An interface of a node. The MAC address is the one in use, or else the configured one."""

    id: str
    node_id: str | None
    label: str
    slot: int | None
    type: str | None
    state: str | None
    is_connected: bool | None
    mac_address: str | None
    raw: Json = field(repr=False)

    @classmethod
    def reader(cls, node_id: str | None) -> Callable[[Json], CmlInterface | None]:
        """Return a reader for the interfaces of one node, or of the nodes they name."""

        def read(values: Json) -> CmlInterface | None:
            interface_id = as_text(values.get("id"))
            if not interface_id:
                return None
            operational = as_mapping(values.get("operational"))
            return cls(
                id=interface_id,
                node_id=node_id or as_text(values.get("node")),
                label=as_text(values.get("label")) or interface_id,
                slot=as_integer(values.get("slot")),
                type=as_text(values.get("type")),
                state=as_text(values.get("state")),
                is_connected=as_bool(values.get("is_connected")),
                mac_address=as_text(operational.get("mac_address")) or as_text(values.get("mac_address")),
                raw=values,
            )

        return read


InterfacesByNode = Mapping[str, "Entries[CmlInterface] | CmlError"]


def by_node(found: Entries[CmlInterface], node_ids: Iterable[str]) -> InterfacesByNode:
    """Group interfaces by node. An unreadable entry may belong to any node."""
    grouped: dict[str, list[CmlInterface]] = {node_id: [] for node_id in node_ids}
    for interface in found.items:
        if interface.node_id in grouped:
            grouped[interface.node_id].append(interface)
    return {node_id: Entries(tuple(items), found.unreadable) for node_id, items in grouped.items()}


@dataclass(frozen=True)
class InterfaceAddresses:
    """Addresses snooped on an interface."""

    ip4: tuple[str, ...]
    ip6: tuple[str, ...]


@dataclass(frozen=True)
class Layer3Addresses:
    """Addresses by interface id."""

    by_interface: dict[str, InterfaceAddresses]

    @classmethod
    def read(cls, values: Json) -> Layer3Addresses:
        found: dict[str, InterfaceAddresses] = {}
        for node in values.values():
            for entry in as_mapping(as_mapping(node).get("interfaces")).values():
                interface = as_mapping(entry)
                if interface_id := as_text(interface.get("id")):
                    addresses = as_texts(interface.get("ip4")), as_texts(interface.get("ip6"))
                    found[interface_id] = InterfaceAddresses(*addresses)
        return cls(found)


@dataclass(frozen=True)
class NodeStatistics:
    """Usage of a node: CPU percent (may exceed 100), RAM percent, disk in MB."""

    cpu_percent: Decimal | None
    ram_percent: Decimal | None
    disk_mb: int | None
    figures: dict[str, float | int]

    @classmethod
    def read(cls, values: Json) -> NodeStatistics:
        disk = as_number(values.get("disk_usage"))
        return cls(
            cpu_percent=as_decimal(values.get("cpu_usage"), MAX_PERCENT),
            ram_percent=as_decimal(values.get("ram_usage"), MAX_PERCENT),
            disk_mb=None if disk is None else round(disk),
            figures=plain_numbers(values),
        )


@dataclass(frozen=True)
class LinkEnds:
    """The nodes at both ends of a link."""

    a: str
    b: str

    @classmethod
    def read_all(cls, topology: Json) -> dict[str, LinkEnds]:
        """Return the ends by link id. Links with a missing end are omitted."""
        found = {}
        links = topology.get("links")
        for link in links if isinstance(links, list) else ():
            values = as_mapping(link)
            names = [as_text(values.get(key)) for key in ("id", "n1", "n2")]
            if all(names):
                found[names[0] or ""] = cls(names[1] or "", names[2] or "")
        return found


@dataclass(frozen=True)
class SimulationStats:
    """Statistics of nodes and links by id."""

    nodes: dict[str, NodeStatistics]
    links: dict[str, dict[str, float | int]]

    @classmethod
    def read(cls, values: Json) -> SimulationStats:
        return cls(
            {id: NodeStatistics.read(item) for id, item in _mappings(values.get("nodes"))},
            {id: plain_numbers(item) for id, item in _mappings(values.get("links"))},
        )


def _mappings(value: object) -> list[tuple[str, Json]]:
    """Return the nested mappings by key."""
    return [(as_text(key) or "", item) for key, item in as_mapping(value).items() if isinstance(item, dict)]
