"""Queue order: bands of jobs, within a band the tree of queues, within a queue its jobs.

Job orders registered before the first queue order split the jobs into bands (priority, for example). Within a
band two jobs are compared at the level where their queues differ, from the top of the tree down. Equal queues
are compared at the next level (a queue without children comes first), and finally by the job orders, the age
and the id. The position of a queue may change with each placement, so the tree consists of heaps that are
updated along one path after each job.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from scheduling.placement.framework.callbacks import OrderFn
from scheduling.placement.framework.model import ROOT, Job, Queue, effective_parent

if TYPE_CHECKING:
    from scheduling.placement.framework.session import SchedulingSession

# A job with its position in its band.
Entry = tuple[int, Job]
QueueKey = Callable[[Queue], tuple[Any, ...]]


def jobs_in_order(ssn: SchedulingSession, jobs: Iterable[Job]) -> Iterator[Job]:
    """Yield the jobs in plugin order, one by one, since a placement can change the next."""
    banding, sorting, queue_orders = _orders(ssn)
    # Sort by one order after the other, the last first: plain numbers and texts sort quickly.
    rows = sorted(sorted(jobs, key=attrgetter("id")), key=attrgetter("created"))
    for order in reversed(sorting):
        _, rows = _sorted(ssn, order, rows)
    bands = _bands(ssn, banding, rows)
    if not queue_orders:
        yield from chain.from_iterable(bands)
        return
    for band in bands:
        yield from _by_queue(ssn, band, queue_orders)


def _by_queue(ssn: SchedulingSession, band: list[Job], orders: list[OrderFn]) -> Iterator[Job]:
    """Yield one band; a queue order whose keys do not compare is dropped from this band on."""
    entries = list(enumerate(band))
    while entries and orders:
        queue_key = _queue_key(ssn, orders)
        try:
            entries = _by_queue_rank(ssn, entries, queue_key)
        except Exception as error:
            _drop_failing_orders(ssn, orders, error)
            continue
        entries = yield from _sorted_until_placement(ssn, entries)
        entries = yield from _tree(ssn, entries, queue_key, orders)
    yield from map(itemgetter(1), entries)


def _drop_failing_orders(ssn: SchedulingSession, orders: list[OrderFn], error: Exception) -> None:
    """Drop the orders whose keys do not compare; all if the failing one cannot be determined."""
    wrong = [order for order in orders if not _sorts_queues(ssn, order)] or list(orders)
    for order in wrong:
        ssn.failures.record(order.plugin, error)
    orders[:] = [order for order in orders if order not in wrong]


def _sorts_queues(ssn: SchedulingSession, order: OrderFn) -> bool:
    try:
        sorted(_order_key(ssn, order, queue) for queue in ssn.queues.values())
    except Exception:
        return False
    return True


def _by_queue_rank(ssn: SchedulingSession, band: list[Entry], queue_key: QueueKey) -> list[Entry]:
    """Return the jobs sorted by the current order of their queues."""
    leaves = dict.fromkeys(job.leaf for _, job in band)
    keys = {leaf: (*_path_key(leaf, ssn.queues, queue_key), 0) for leaf in leaves}
    ranks: dict[str, int] = {}
    for rank, (_, same) in enumerate(groupby(sorted(keys, key=keys.__getitem__), key=keys.__getitem__)):
        ranks.update(dict.fromkeys(same, rank))
    return sorted(band, key=lambda entry: ranks[entry[1].leaf])


def _sorted_until_placement(
    ssn: SchedulingSession, entries: list[Entry]
) -> Generator[Job, None, list[Entry]]:
    """Yield jobs sorted once until a placement changes the order; return the rest."""
    before = len(ssn.changed)
    for number, (_, job) in enumerate(entries, 1):
        yield job
        if len(ssn.changed) != before:
            return entries[number:]
    return []


def _path_key(leaf: str, queues: Mapping[str, Queue], queue_key: QueueKey) -> tuple[Any, ...]:
    """Return the sort key of a queue from the top of the tree down."""
    key: list[Any] = []
    name = leaf
    while name in queues:
        key[:0] = [queue_key(queues[name]), 1]
        name = effective_parent(name, queues)
    return tuple(key[:-1]) if key else ((),)


class _QueueNode:
    """A queue in the tree: its own jobs, or its child queues; the first is next."""

    __slots__ = ("has_children", "queue", "waiting")

    def __init__(self, queue: Queue | None, *, has_children: bool) -> None:
        self.queue = queue
        self.has_children = has_children
        # Jobs in order, or a heap of child queues by key and sequence number.
        self.waiting: Any = [] if has_children else deque()

    def key(self, queue_key: QueueKey) -> tuple[Any, ...]:
        return queue_key(self.queue) if self.queue else (), self.has_children, self.waiting[0][0]


def _tree(
    ssn: SchedulingSession, band: Iterable[Entry], queue_key: QueueKey, orders: list[OrderFn]
) -> Generator[Job, None, list[Entry]]:
    """Yield the jobs, updating queue order after each; return the rest if keys do not compare."""
    leaves = _by_leaf(band, ssn.queues)
    clock, seconds, plugin = time.perf_counter, ssn.timings.seconds, orders[0].plugin
    try:
        root = _build_tree(leaves, ssn.queues, queue_key)
        while root.waiting:
            path = [root]
            while (node := path[-1].waiting[0][2]).has_children:
                path.append(node)
            yield node.waiting.popleft()[1]
            started = clock()
            _restore_heaps(path, node, queue_key)
            seconds[plugin] += clock() - started
    except Exception as error:
        _drop_failing_orders(ssn, orders, error)
    return sorted((entry for node in leaves.values() for entry in node.waiting), key=itemgetter(0))


def _restore_heaps(path: list[_QueueNode], node: _QueueNode, queue_key: QueueKey) -> None:
    """Update the head of each heap on the path; nothing else has changed."""
    for parent in reversed(path):
        heap, waiting = parent.waiting, node.waiting
        if waiting:
            key = queue_key(node.queue) if node.queue else ()
            heapreplace(heap, ((key, node.has_children, waiting[0][0]), heap[0][1], node))
        else:
            heappop(heap)
        node = parent


def _by_leaf(band: Iterable[Entry], queues: Mapping[str, Queue]) -> dict[str, _QueueNode]:
    leaves: dict[str, _QueueNode] = {}
    for entry in band:
        leaf = entry[1].leaf
        if leaf not in leaves:
            leaves[leaf] = _QueueNode(queues.get(leaf), has_children=False)
        leaves[leaf].waiting.append(entry)
    return leaves


def _build_tree(
    leaves: Mapping[str, _QueueNode], queues: Mapping[str, Queue], queue_key: QueueKey
) -> _QueueNode:
    """Build the tree of queues with jobs in this band; own jobs are siblings of the child queues."""
    parents: dict[str, _QueueNode] = {ROOT: _QueueNode(None, has_children=True)}
    children: dict[str, list[_QueueNode]] = {ROOT: []}
    for name, node in leaves.items():
        children[_tree_parent(name, queues, parents, children)].append(node)
    _fill(ROOT, parents, children, queue_key)
    return parents[ROOT]


def _tree_parent(
    name: str,
    queues: Mapping[str, Queue],
    parents: dict[str, _QueueNode],
    children: dict[str, list[_QueueNode]],
) -> str:
    """Return the parent of a queue in the tree; create it and its ancestors."""
    parent = effective_parent(name, queues) if name in queues else ROOT
    if parent == ROOT or parent not in queues:
        return ROOT
    if parent not in parents:
        parents[parent] = _QueueNode(queues[parent], has_children=True)
        children[parent] = []
        children[_tree_parent(parent, queues, parents, children)].append(parents[parent])
    return parent


def _fill(
    name: str,
    parents: Mapping[str, _QueueNode],
    children: Mapping[str, list[_QueueNode]],
    queue_key: QueueKey,
) -> None:
    """Build the heaps bottom-up, since the key of a queue is that of its best child."""
    for child in children[name]:
        if child.has_children and child.queue:
            _fill(child.queue.name, parents, children, queue_key)
    heap = parents[name].waiting = [
        (child.key(queue_key), number, child) for number, child in enumerate(children[name])
    ]
    heapify(heap)


def _orders(ssn: SchedulingSession) -> tuple[list[OrderFn], list[OrderFn], list[OrderFn]]:
    orders = [order for order in ssn.orders if order.kind != "task"]
    first = next((number for number, order in enumerate(orders) if order.kind == "queue"), len(orders))
    banding = orders[:first]
    sorting = [order for order in orders[first:] if order.kind == "job"]
    return banding, sorting, [order for order in orders if order.kind == "queue"]


def _bands(ssn: SchedulingSession, orders: Sequence[OrderFn], rows: list[Job]) -> list[list[Job]]:
    """Return groups of jobs that are equal in all orders, in their given order."""
    if not orders:
        return [rows]
    keys, rows = _sorted(ssn, orders[0], rows)
    alike = groupby(zip(keys, rows, strict=True), key=itemgetter(0))
    bands = [[job for _, job in same] for _, same in alike]
    return [part for band in bands for part in _bands(ssn, orders[1:], band)]


def _sorted(ssn: SchedulingSession, order: OrderFn, rows: list[Job]) -> tuple[list[Any], list[Job]]:
    """Sort the jobs by one order, stably, with their keys; unchanged if the order fails."""
    keys = _keys_of(ssn, order, rows)
    try:
        indexes = sorted(range(len(rows)), key=keys.__getitem__)
    except Exception as error:
        ssn.failures.record(order.plugin, error)
        return [0] * len(rows), rows
    return [keys[index] for index in indexes], [rows[index] for index in indexes]


def _keys_of(ssn: SchedulingSession, order: OrderFn, rows: list[Job]) -> list[Any]:
    """Return one order's key for each job; jobs it fails for come last, and the plugin is reported."""
    started = time.perf_counter()
    try:
        return [order.key(job) for job in rows]
    except Exception:
        return [_order_key(ssn, order, job) for job in rows]
    finally:
        ssn.timings.add(order.plugin, started)


def _queue_key(ssn: SchedulingSession, orders: list[OrderFn]) -> QueueKey:
    """Return the key of a queue; timed as a whole because it is called at every step."""
    if len(orders) > 1:
        return lambda queue: tuple(_order_key(ssn, order, queue) for order in orders)
    plugin, key_fn = orders[0].plugin, orders[0].key

    def key(queue: Queue) -> Any:
        try:
            return 0, key_fn(queue)
        except Exception as error:
            ssn.failures.record(plugin, error)
            return 1, 0

    return key


def _order_key(ssn: SchedulingSession, order: OrderFn, item: object) -> Any:
    """Return one order's key; a failed key sorts last."""
    started = time.perf_counter()
    try:
        return 0, order.key(item)
    except Exception as error:
        ssn.failures.record(order.plugin, error)
        return 1, 0
    finally:
        ssn.timings.add(order.plugin, started)
