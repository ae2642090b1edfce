"""The order of the queue: bands of jobs, within a band the tree of queues, within a queue its jobs.

Job orders that come before the first queue order split the jobs into bands (priority, say). Within a band
two jobs are compared where their queues part, from the top of the tree down; equal ones go on to the next
level (a queue with nothing below it comes first), and in the end to the job orders, the age and the id. A
queue's place may change with what was placed for it, so the tree is kept as heaps that are put right along
one path after each job.
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

# A job with its place among those of its band.
Entry = tuple[int, Job]
QueueKey = Callable[[Queue], tuple[Any, ...]]


def jobs_in_order(ssn: SchedulingSession, jobs: Iterable[Job]) -> Iterator[Job]:
    """The jobs as the plugins order them; asked for one by one, since a placement can change who is next."""
    banding, sorting, queue_orders = _orders(ssn)
    # One order after the other, the last one first: plain numbers and texts are sorted quickly.
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
    """One band; a queue order whose answers do not compare is left out, of this band and those after it."""
    rest = list(enumerate(band))
    while rest and orders:
        queue_key = _queue_key(ssn, orders)
        try:
            rest = _by_place(ssn, rest, queue_key)
        except Exception as error:
            _drop_failing_orders(ssn, orders, error)
            continue
        rest = yield from _sorted_until_placement(ssn, rest)
        rest = yield from _tree(ssn, rest, queue_key, orders)
    yield from map(itemgetter(1), rest)


def _drop_failing_orders(ssn: SchedulingSession, orders: list[OrderFn], error: Exception) -> None:
    """Those whose answers do not compare; all of them where it cannot be told which."""
    wrong = [order for order in orders if not _sorts_queues(ssn, order)] or list(orders)
    for order in wrong:
        ssn.failures.note(order.plugin, error)
    orders[:] = [order for order in orders if order not in wrong]


def _sorts_queues(ssn: SchedulingSession, order: OrderFn) -> bool:
    try:
        sorted(_one(ssn, order, queue) for queue in ssn.queues.values())
    except Exception:
        return False
    return True


def _by_place(ssn: SchedulingSession, band: list[Entry], queue_key: QueueKey) -> list[Entry]:
    """The jobs by their queues as these stand now."""
    leaves = dict.fromkeys(job.leaf for _, job in band)
    keys = {leaf: (*_path_key(leaf, ssn.queues, queue_key), 0) for leaf in leaves}
    places: dict[str, int] = {}
    for place, (_, same) in enumerate(groupby(sorted(keys, key=keys.__getitem__), key=keys.__getitem__)):
        places.update(dict.fromkeys(same, place))
    return sorted(band, key=lambda entry: places[entry[1].leaf])


def _sorted_until_placement(
    ssn: SchedulingSession, entries: list[Entry]
) -> Generator[Job, None, list[Entry]]:
    """As long as nothing is placed the order stands still, and sorting once will do; answers who is left."""
    before = len(ssn.changed)
    for number, (_, job) in enumerate(entries, 1):
        yield job
        if len(ssn.changed) != before:
            return entries[number:]
    return []


def _path_key(leaf: str, queues: Mapping[str, Queue], queue_key: QueueKey) -> tuple[Any, ...]:
    """A queue's place from the top of the tree down, as the tree compares it."""
    found: list[Any] = []
    name = leaf
    while name in queues:
        found[:0] = [queue_key(queues[name]), 1]
        name = effective_parent(name, queues)
    return tuple(found[:-1]) if found else ((),)


class _QueueNode:
    """A queue in the tree: its own jobs, or the queues below it; the first of them is next."""

    __slots__ = ("below", "queue", "waiting")

    def __init__(self, queue: Queue | None, *, below: bool) -> None:
        self.queue = queue
        self.below = below
        # Entries of jobs, in their order; or a heap of places, each after its key and a number.
        self.waiting: Any = [] if below else deque()

    def key(self, queue_key: QueueKey) -> tuple[Any, ...]:
        return queue_key(self.queue) if self.queue else (), self.below, self.waiting[0][0]


def _tree(
    ssn: SchedulingSession, band: Iterable[Entry], queue_key: QueueKey, orders: list[OrderFn]
) -> Generator[Job, None, list[Entry]]:
    """The jobs as their queues stand after each of them; answers who is left when these do not compare."""
    own = _by_leaf(band, ssn.queues)
    clock, seconds, plugin = time.perf_counter, ssn.timings.seconds, orders[0].plugin
    try:
        root = _build_tree(own, ssn.queues, queue_key)
        while root.waiting:
            path = [root]
            while (place := path[-1].waiting[0][2]).below:
                path.append(place)
            yield place.waiting.popleft()[1]
            begun = clock()
            _restore_heaps(path, place, queue_key)
            seconds[plugin] += clock() - begun
    except Exception as error:
        _drop_failing_orders(ssn, orders, error)
    return sorted((entry for place in own.values() for entry in place.waiting), key=itemgetter(0))


def _restore_heaps(path: list[_QueueNode], place: _QueueNode, queue_key: QueueKey) -> None:
    """The head of each heap on the path may have changed; nothing else has."""
    for above in reversed(path):
        heap, waiting = above.waiting, place.waiting
        if waiting:
            own = queue_key(place.queue) if place.queue else ()
            heapreplace(heap, ((own, place.below, waiting[0][0]), heap[0][1], place))
        else:
            heappop(heap)
        place = above


def _by_leaf(band: Iterable[Entry], queues: Mapping[str, Queue]) -> dict[str, _QueueNode]:
    own: dict[str, _QueueNode] = {}
    for entry in band:
        leaf = entry[1].leaf
        if leaf not in own:
            own[leaf] = _QueueNode(queues.get(leaf), below=False)
        own[leaf].waiting.append(entry)
    return own


def _build_tree(
    own: Mapping[str, _QueueNode], queues: Mapping[str, Queue], queue_key: QueueKey
) -> _QueueNode:
    """The part of the tree with jobs in this band; a queue's own jobs stand beside the queues below it."""
    above: dict[str, _QueueNode] = {ROOT: _QueueNode(None, below=True)}
    children: dict[str, list[_QueueNode]] = {ROOT: []}
    for name, place in own.items():
        children[_above(name, queues, above, children)].append(place)
    _fill(ROOT, above, children, queue_key)
    return above[ROOT]


def _above(
    name: str,
    queues: Mapping[str, Queue],
    above: dict[str, _QueueNode],
    children: dict[str, list[_QueueNode]],
) -> str:
    """The queue that one hangs on, made with all those above it."""
    parent = effective_parent(name, queues) if name in queues else ROOT
    if parent == ROOT or parent not in queues:
        return ROOT
    if parent not in above:
        above[parent] = _QueueNode(queues[parent], below=True)
        children[parent] = []
        children[_above(parent, queues, above, children)].append(above[parent])
    return parent


def _fill(
    name: str, above: Mapping[str, _QueueNode], children: Mapping[str, list[_QueueNode]], queue_key: QueueKey
) -> None:
    """Heaps from the bottom up, since a place's key is that of its best child."""
    for child in children[name]:
        if child.below and child.queue:
            _fill(child.queue.name, above, children, queue_key)
    heap = above[name].waiting = [
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
    """Those that all orders find equal stay together, as they were."""
    if not orders:
        return [rows]
    keys, rows = _sorted(ssn, orders[0], rows)
    alike = groupby(zip(keys, rows, strict=True), key=itemgetter(0))
    bands = [[job for _, job in same] for _, same in alike]
    return [part for band in bands for part in _bands(ssn, orders[1:], band)]


def _sorted(ssn: SchedulingSession, order: OrderFn, rows: list[Job]) -> tuple[list[Any], list[Job]]:
    """The jobs by one order, with their keys; equal ones as they were, and all of them if it fails."""
    keys = _keys_of(ssn, order, rows)
    try:
        places = sorted(range(len(rows)), key=keys.__getitem__)
    except Exception as error:
        ssn.failures.note(order.plugin, error)
        return [0] * len(rows), rows
    return [keys[place] for place in places], [rows[place] for place in places]


def _keys_of(ssn: SchedulingSession, order: OrderFn, rows: list[Job]) -> list[Any]:
    """One order over all jobs; those it fails for come last in it, and the plugin is named."""
    begun = time.perf_counter()
    try:
        return [order.key(job) for job in rows]
    except Exception:
        return [_one(ssn, order, job) for job in rows]
    finally:
        ssn.timings.add(order.plugin, begun)


def _queue_key(ssn: SchedulingSession, orders: list[OrderFn]) -> QueueKey:
    """Asked at every step of the queue, so it is timed as a whole."""
    if len(orders) > 1:
        return _chained(ssn, orders)
    plugin, ask = orders[0].plugin, orders[0].key

    def key(queue: Queue) -> Any:
        try:
            return 0, ask(queue)
        except Exception as error:
            ssn.failures.note(plugin, error)
            return 1, 0

    return key


def _chained(ssn: SchedulingSession, orders: list[OrderFn]) -> Callable[[Any], tuple[Any, ...]]:
    """The keys of several orders as one; what an order fails for comes last in it."""
    return lambda of: tuple(_one(ssn, order, of) for order in orders)


def _one(ssn: SchedulingSession, order: OrderFn, of: Any) -> Any:
    begun = time.perf_counter()
    try:
        return 0, order.key(of)
    except Exception as error:
        ssn.failures.note(order.plugin, error)
        return 1, 0
    finally:
        ssn.timings.add(order.plugin, begun)
