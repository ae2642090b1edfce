"""The nodes as arrays of free amounts, updated by every virtual placement."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduling.placement.framework.amounts import GPU, NOTHING, UNIT, Units
from scheduling.placement.framework.model import FOREVER, Job, JobPart, Node

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indexes = NDArray[np.intp]
Number = TypeVar("Number", bound=np.generic)
NO_DEVICE = -1
NO_MINIMUM = -(1 << 62)
# Columns of the free amounts, after the resources.
WIDTH = len(NOTHING)
LEASES, PORTS = WIDTH, WIDTH + 1


class NodeTable:
    """All nodes of a cycle, by name; placements lower `levels`.

    A row of `levels` holds the free amounts of a node: one column per resource, then leases, then ports.
    `left` holds the same as plain numbers, which is quicker for a single node.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.rows = sorted(nodes, key=lambda node: (node.name, node.key))
        rows = self.rows
        self.index = {node.key: number for number, node in enumerate(rows)}
        self.capacity: Ints = np.array([node.capacity for node in rows], np.int64).reshape(len(rows), WIDTH)
        self.levels: Ints = np.empty((len(rows), PORTS + 1), np.int64)
        taken = np.array([node.taken for node in rows], np.int64).reshape(len(rows), WIDTH)
        self.levels[:, :LEASES] = self.capacity - taken
        self.levels[:, LEASES] = [node.max_leases - node.taken_leases for node in rows]
        self.levels[:, PORTS] = [node.ports - node.leaked for node in rows]
        self.left: list[list[int]] = self.levels.tolist()
        self.free: Ints = self.levels[:, :LEASES]
        self.free_devices: Ints = _devices(rows)
        self.cordoned: Flags = np.array([node.cordoned for node in rows], np.bool_)
        self.spot: Flags = np.array([node.spot for node in rows], np.bool_)
        self.until: Floats = np.array([node.until for node in rows], np.float64)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def total(self) -> Units:
        """Return the total capacity of all nodes."""
        return tuple(self.capacity.sum(axis=0).tolist())

    def take(self, part: JobPart, *, leases: int = 1) -> int:
        """Put a part of a job on its node; return the node's index."""
        return self._add(part, leases, -1)

    def release(self, part: JobPart, *, leases: int = 1) -> int:
        return self._add(part, leases, 1)

    def _add(self, part: JobPart, leases: int, sign: int) -> int:
        number = self.index[part.node]
        row = self.left[number]
        for column, amount in enumerate(part.request):
            row[column] += sign * amount
        row[LEASES] += sign * leases
        row[PORTS] += sign * part.ports
        self.levels[number] = row
        for device, amount in part.devices:
            self.free_devices[number, device] += sign * amount
        return number

    def subtract_running(self, jobs: Iterable[Job]) -> None:
        """Subtract the running jobs; parts on nodes that are gone are ignored."""
        for job in jobs:
            for part in job.parts:
                if part.node in self.index:
                    self.take(part)


class Nodes:
    """A selection of nodes as batch callbacks see it: every attribute is an array over them."""

    __slots__ = ("_levels", "at", "table")

    def __init__(self, table: NodeTable, at: Indexes | None = None) -> None:
        self.table = table
        self.at = at
        self._levels: Ints | None = None

    def __len__(self) -> int:
        return len(self.table) if self.at is None else len(self.at)

    def of(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return the rows of these nodes in an array over all nodes."""
        return values if self.at is None else values.take(self.at, axis=0)

    @property
    def levels(self) -> Ints:
        """Return the free amounts: one row per node, one column per resource, then leases, then ports."""
        if self._levels is None:
            self._levels = self.of(self.table.levels)
        return self._levels

    @property
    def free(self) -> Ints:
        """Return one row per node, one column per resource."""
        return self.levels[:, :LEASES]

    @property
    def capacity(self) -> Ints:
        return self.of(self.table.capacity)

    @property
    def free_leases(self) -> Ints:
        return self.levels[:, LEASES]

    @property
    def free_ports(self) -> Ints:
        return self.levels[:, PORTS]

    @property
    def free_devices(self) -> Ints:
        return self.of(self.table.free_devices)

    @property
    def cordoned(self) -> Flags:
        return self.of(self.table.cordoned)

    @property
    def spot(self) -> Flags:
        return self.of(self.table.spot)

    @property
    def until(self) -> Floats:
        return self.of(self.table.until)

    @property
    def rows(self) -> Sequence[Node]:
        """Return the node objects, for attributes that no array holds."""
        return self.table.rows if self.at is None else [self.table.rows[number] for number in self.at]

    def all(self, value: bool) -> Flags:
        """Return the same result for every node."""
        return np.full(len(self), value, np.bool_)


class NodeState:
    """A single node as scalar callbacks see it: its attributes and its free amounts now."""

    __slots__ = ("_number", "_table", "node")

    def __init__(self, table: NodeTable, number: int) -> None:
        self.node = table.rows[number]
        self._table = table
        self._number = number

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def capacity(self) -> Units:
        return self.node.capacity

    @property
    def free(self) -> tuple[int, ...]:
        return tuple(self._table.left[self._number][:LEASES])

    @property
    def free_leases(self) -> int:
        return self._table.left[self._number][LEASES]

    @property
    def free_ports(self) -> int:
        return self._table.left[self._number][PORTS]

    @property
    def free_devices(self) -> tuple[int, ...]:
        """Return the free share of each GPU."""
        left = self._table.free_devices[self._number].tolist()
        return tuple(left[: len(self.node.gpus())])


def kind_of(node: Node) -> Hashable:
    """Return a key that is equal for nodes that could hold the same jobs when empty."""
    labels = tuple(sorted(node.labels.items()))
    return node.capacity, node.system, labels, node.spot, node.max_leases, node.ports, node.devices


def empty_node_kinds(nodes: Iterable[Node]) -> NodeTable:
    """Return the kinds of nodes, each as an empty and healthy node."""
    kinds: dict[Hashable, Node] = {}
    for node in nodes:
        kind = kind_of(node)
        if kind not in kinds:
            kinds[kind] = replace(
                node, cordoned=False, until=FOREVER, leaked=0, taken=NOTHING, taken_leases=0, taken_devices=()
            )
    return NodeTable(kinds.values())


def _devices(rows: Sequence[Node]) -> Ints:
    """Return one row per node, one column per GPU; `NO_DEVICE` where a node has fewer."""
    gpus = [node.gpus() if node.capacity[GPU] or node.devices else () for node in rows]
    widest = max((len(gpus_of_node) for gpus_of_node in gpus), default=0)
    table = np.full((len(rows), widest), NO_DEVICE, np.int64)
    for number, gpus_of_node in enumerate(gpus):
        table[number, : len(gpus_of_node)] = gpus_of_node
        for device, amount in rows[number].taken_devices:
            if device < len(gpus_of_node):
                table[number, device] -= amount
    return table


def at_least(requested: int) -> int:
    """Return the minimum free amount for a request; a request of 0 also fits an overcommitted node."""
    return requested or NO_MINIMUM


def fits_devices(free: Ints, amount: int) -> Flags:
    """Return which nodes have the requested whole GPUs free, and one more GPU for the fraction."""
    whole, fraction = divmod(amount, UNIT)
    whole_free = (free >= UNIT).sum(axis=1)
    if not fraction:
        return np.asarray(whole_free >= whole, np.bool_)
    # GPUs with space for the fraction include the free ones: one more is needed than the whole part uses.
    return np.asarray((whole_free >= whole) & ((free >= fraction).sum(axis=1) > whole), np.bool_)
