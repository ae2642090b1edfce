"""Typed results of lab calls. Missing or malformed values are None; `raw` keeps CML's response."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from lcm.cml.client.errors import CmlError
from lcm.cml.json_values import (
    Flag,
    Integer,
    Json,
    Raw,
    Text,
    TextOrEmpty,
    Texts,
    as_mapping,
    as_text,
    decimal,
    integer,
    number,
    plain_numbers,
    read_model,
)
from lcm.domain.validation import read_by

T = TypeVar("T")

MAX_PERCENT = 1e6
# Operational values of a node that take precedence.
LIVE = ("image_definition", "compute_id", "cpus", "cpu_limit", "ram", "boot_disk_size", "data_volume")


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
    results = [read(value) if isinstance(value, dict) else None for value in values]
    items = tuple(item for item in results if item is not None)
    return Entries(items, tuple(index for index, item in enumerate(results) if item is None))


@dataclass(frozen=True)
class CmlLab:
    """A lab's title, owner, state and size."""

    id: TextOrEmpty
    title: Annotated[TextOrEmpty, Field(alias="lab_title")]
    state: Text = None
    owner: Text = None
    node_count: Integer = None
    created: Text = None
    raw: Raw = field(repr=False, default_factory=dict)

    @classmethod
    def read(cls, values: Json, lab_id: str) -> CmlLab | None:
        """Return None without a title: every lab has one, and the owner mark is in it."""
        if not as_text(values.get("lab_title")):
            return None
        owner = as_text(values.get("owner_username")) or values.get("owner")
        return read_model(cls, values, id=as_text(values.get("id")) or lab_id, owner=owner)


@dataclass(frozen=True)
class CmlNode:
    """A node. Operational values take precedence over configured ones; None means unknown.

    Controllers before 2.5 return operational values at the top level; both forms are read.
    """

    id: TextOrEmpty
    label: TextOrEmpty
    node_definition: TextOrEmpty = ""
    image_definition: Text = None
    state: Text = None
    compute_id: Text = None
    tags: Texts = ()
    cpus: Annotated[int | None, integer(10_000)] = None
    cpu_limit: Annotated[int | None, integer(100)] = None
    ram_mb: Annotated[int | None, integer(10**9), Field(alias="ram")] = None
    boot_disk_gb: Annotated[int | None, integer(10**6), Field(alias="boot_disk_size")] = None
    data_volume_gb: Annotated[int | None, integer(10**6), Field(alias="data_volume")] = None
    raw: Raw = field(repr=False, default_factory=dict)

    @classmethod
    def read(cls, values: Json) -> CmlNode | None:
        node_id = as_text(values.get("id"))
        if not node_id:
            return None
        operational = as_mapping(values.get("operational"))
        live = {key: value for key in LIVE if (value := operational.get(key)) is not None}
        return read_model(cls, values, **live, label=as_text(values.get("label")) or node_id)


@dataclass(frozen=True)
class CmlInterface:
    """An interface of a node. The MAC address is the one in use, or else the configured one."""

    id: TextOrEmpty
    label: TextOrEmpty
    node_id: Annotated[Text, Field(alias="node")] = None
    slot: Integer = None
    type: Text = None
    state: Text = None
    is_connected: Flag = None
    mac_address: Text = None
    raw: Raw = field(repr=False, default_factory=dict)

    @classmethod
    def reader(cls, node_id: str | None) -> Callable[[Json], CmlInterface | None]:
        """Return a reader for the interfaces of one node, or of the nodes they name."""

        def read(values: Json) -> CmlInterface | None:
            interface_id = as_text(values.get("id"))
            if not interface_id:
                return None
            in_use = as_text(as_mapping(values.get("operational")).get("mac_address"))
            return read_model(
                cls,
                values,
                label=as_text(values.get("label")) or interface_id,
                node=node_id or values.get("node"),
                mac_address=in_use or values.get("mac_address"),
            )

        return read


InterfacesByNode = Mapping[str, "Entries[CmlInterface] | CmlError"]


def by_node(interfaces: Entries[CmlInterface], node_ids: Iterable[str]) -> InterfacesByNode:
    """Group interfaces by node. An unreadable entry may belong to any node."""
    grouped: dict[str, list[CmlInterface]] = {node_id: [] for node_id in node_ids}
    for interface in interfaces.items:
        if interface.node_id in grouped:
            grouped[interface.node_id].append(interface)
    return {node_id: Entries(tuple(items), interfaces.unreadable) for node_id, items in grouped.items()}


@dataclass(frozen=True)
class InterfaceAddresses:
    """Addresses snooped on an interface."""

    ip4: Texts = ()
    ip6: Texts = ()


@dataclass(frozen=True)
class Layer3Addresses:
    """Addresses by interface id."""

    by_interface: dict[str, InterfaceAddresses]

    @classmethod
    def read(cls, values: Json) -> Layer3Addresses:
        by_interface: dict[str, InterfaceAddresses] = {}
        for node in values.values():
            for entry in as_mapping(as_mapping(node).get("interfaces")).values():
                interface = as_mapping(entry)
                if interface_id := as_text(interface.get("id")):
                    by_interface[interface_id] = read_model(InterfaceAddresses, interface)
        return cls(by_interface)


@dataclass(frozen=True)
class NodeStatistics:
    """Usage of a node: CPU percent (may exceed 100), RAM percent, disk in MB."""

    figures: Annotated[dict[str, float | int], read_by(plain_numbers, {}), Field(alias="raw")]
    cpu_percent: Annotated[Decimal | None, decimal(MAX_PERCENT), Field(alias="cpu_usage")] = None
    ram_percent: Annotated[Decimal | None, decimal(MAX_PERCENT), Field(alias="ram_usage")] = None
    disk_mb: Annotated[int | None, number(round), Field(alias="disk_usage")] = None

    @classmethod
    def read(cls, values: Json) -> NodeStatistics:
        return read_model(cls, values)


@dataclass(frozen=True)
class LinkEnds:
    """The nodes at both ends of a link."""

    a: str
    b: str

    @classmethod
    def read_all(cls, topology: Json) -> dict[str, LinkEnds]:
        """Return the ends by link id. Links with a missing end are omitted."""
        ends = {}
        links = topology.get("links")
        for link in links if isinstance(links, list) else ():
            values = as_mapping(link)
            names = [as_text(values.get(key)) for key in ("id", "n1", "n2")]
            if all(names):
                ends[names[0] or ""] = cls(names[1] or "", names[2] or "")
        return ends


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
