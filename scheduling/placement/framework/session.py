"""The session of one cycle: the nodes with their virtual placements, and the registered callbacks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from operator import attrgetter
from time import perf_counter
from typing import Any

from scheduling.placement.framework.amounts import GPU, UNIT
from scheduling.placement.framework.callbacks import (  # fmt: skip
    Band,
    BatchPredicate,
    BatchScore,
    CompareJobs,
    CompareQueues,
    CompareTasks,
    EventHandler,
    Failures,
    Need,
    OrderFn,
    Predicate,
    PredicateFn,
    RanksBy,
    Reason,
    Score,
    ScoreFn,
    ShapeOf,
    Summary,
    Timings,
    When,
    order_key,
)
from scheduling.placement.framework.candidates import Candidates, candidates_for
from scheduling.placement.framework.model import Job, JobPart, Queue, Snapshot, Task
from scheduling.placement.framework.node_order import NodeOrder
from scheduling.placement.framework.nodes import NodeState, NodeTable, empty_node_kinds
from scheduling.placement.framework.plugin import Plugin
from scheduling.placement.framework.plugin_calls import (
    MAX_SCORE,
    FixedResults,
    fixed_results,
    invalid_score,
)
from scheduling.placement.framework.statement import PlacementStatement

PrePredicate = Callable[[Task, Job], Reason | None]
OverCapacity = Callable[[Job], Reason | None]
VictimFilter = Callable[[Job, Sequence[Job]], Sequence[Job]]
GpuOrder = Callable[[Task, NodeState, int], float]
OnChange = Callable[[Job, JobPart], None]

# Limit of node orders per node: every change of a node updates each order.
MAX_NODE_ORDERS = 32


class SchedulingSession:
    """The plugins' view of a cycle: they register on open, are called by actions, and clean up on close."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.now = snapshot.now
        self.queues = snapshot.queues
        self.nodes = NodeTable(snapshot.nodes)
        self.nodes.subtract_running(snapshot.running)
        self.predicates: list[PredicateFn] = []
        self.pre_predicates: list[tuple[str, PrePredicate]] = []
        self.scores: list[ScoreFn] = []
        self.gpu_orders: list[tuple[str, GpuOrder]] = []
        self.orders: list[OrderFn] = []
        self.reclaimable: list[tuple[str, VictimFilter]] = []
        self.preemptable: list[tuple[str, VictimFilter]] = []
        self.over_capacity: tuple[str, OverCapacity] | None = None
        self.failures = Failures()
        self.timings = Timings()
        # The node index of every placement and every release, in order.
        self.changed = array("q")
        self.release_count = 0
        # The number of disabled scores; a change invalidates sums of scores.
        self.scores_excluded = 0
        self._handlers: list[EventHandler] = []
        self._shapes: list[tuple[str, ShapeOf]] = []
        self._candidates: dict[Hashable, Candidates] = {}
        self._fixed: dict[Hashable, FixedResults] = {}
        self._alike: dict[Hashable, FixedResults] = {}
        self._rankings: dict[Hashable, NodeOrder] = {}
        self._ranked = 0
        self._plugins: list[Plugin] = []
        self._opening = ""

    def open(self, plugins: Iterable[Plugin]) -> None:
        """Let each plugin register; a plugin that fails is skipped and reported."""
        for plugin in plugins:
            self._opening = plugin.name
            if self._guarded(plugin.name, plugin.on_session_open, self) is not _FAILED:
                self._plugins.append(plugin)
            else:
                self._unregister(plugin.name)
        self._opening = ""

    def _unregister(self, plugin: str) -> None:
        """Remove the callbacks that a plugin registered before it failed."""
        entries: Any
        for entries in (self.predicates, self.scores, self.orders, self._handlers):
            entries[:] = [entry for entry in entries if entry.plugin != plugin]
        for entries in (
            self.pre_predicates,
            self.gpu_orders,
            self.reclaimable,
            self.preemptable,
            self._shapes,
        ):
            entries[:] = [pair for pair in entries if pair[0] != plugin]
        if self.over_capacity is not None and self.over_capacity[0] == plugin:
            self.over_capacity = None

    def close(self) -> None:
        for plugin in self._plugins:
            self._guarded(plugin.name, plugin.on_session_close, self)

    @cached_property
    def empty_node_kinds(self) -> NodeTable:
        """Return every kind of node that is present, incoming or launchable, as an empty node."""
        snapshot = self.snapshot
        return empty_node_kinds((*snapshot.nodes, *snapshot.coming, *snapshot.templates))

    def statement(self) -> PlacementStatement:
        return PlacementStatement(self)

    # Registration, called by plugins.

    def add_predicate_fn(
        self,
        fn: Predicate,
        *,
        batch: BatchPredicate | None = None,
        code: str = "",
        summary: Summary | None = None,
        fixed: bool = False,
        when: When | None = None,
        need: Need | None = None,
    ) -> None:
        """Register whether a task of a job may be placed on a node.

        `code`: the code of all its reasons; without it each `Reason` is counted by its own code. `fixed`: the
        result depends only on the node and the job's system, labels and preemptible flag, not on placements
        or the request. `when`: the tasks to call it for. `need`: equivalent to a minimum in a column of the
        free amounts, which is quicker than a batch.
        """
        self.predicates.append(PredicateFn(self._opening, code, fn, batch, summary, fixed, when, need))

    def add_pre_predicate_fn(self, fn: PrePredicate) -> None:
        """Register whether a job may be placed at all now, on any node."""
        self.pre_predicates.append((self._opening, fn))

    def add_node_order_fn(
        self,
        fn: Score,
        *,
        batch: BatchScore | None = None,
        band: Band = Band.PLACEMENT,
        weight: float = 1.0,
        fixed: bool = False,
        ranks_by: RanksBy | None = None,
    ) -> None:
        """Register the score of a node for a task, from 0 to 1.

        `fixed`: as for predicates. `ranks_by`: the property of a task that the node order depends on; tasks
        with an equal value have scores that differ by a constant, and share one order.
        """
        if not abs(weight) * band < MAX_SCORE:
            raise ValueError(f"a weight of {weight:g} is out of bounds")
        self.scores.append(ScoreFn(self._opening, weight * band, fn, batch, fixed, ranks_by))

    def add_gpu_order_fn(self, fn: GpuOrder) -> None:
        """Register the order of GPUs on the chosen node."""
        self.gpu_orders.append((self._opening, fn))

    def add_queue_order_fn(
        self, compare: CompareQueues | None = None, *, key: Callable[[Queue], Any] | None = None
    ) -> None:
        """Register the order of queues. It may change with placements in the queue's branch."""
        self.orders.append(OrderFn(self._opening, "queue", order_key(self._safe(compare), key)))

    def add_job_order_fn(
        self, compare: CompareJobs | None = None, *, key: Callable[[Job], Any] | None = None
    ) -> None:
        """Register the order of jobs, called once a cycle. Before any queue order it makes bands, after one
        it sorts."""
        self.orders.append(OrderFn(self._opening, "job", order_key(self._safe(compare), key)))

    def add_task_order_fn(
        self, compare: CompareTasks | None = None, *, key: Callable[[Task], Any] | None = None
    ) -> None:
        """Register the order of tasks of a spread job."""
        self.orders.append(OrderFn(self._opening, "task", order_key(self._safe(compare), key)))

    def add_reclaimable_fn(self, fn: VictimFilter) -> None:
        """Register which jobs of other queues a job may evict."""
        self.reclaimable.append((self._opening, fn))

    def add_preemptable_fn(self, fn: VictimFilter) -> None:
        """Register which jobs of its own queue a job may evict."""
        self.preemptable.append((self._opening, fn))

    def add_job_over_capacity_fn(self, fn: OverCapacity) -> None:
        """Register whether a job would exceed the quota of its queue. Only one plugin can register it."""
        if self.over_capacity is not None:
            raise ValueError(f"The quota gate is already registered by “{self.over_capacity[0]}”.")
        self.over_capacity = (self._opening, fn)

    def add_event_handler(self, *, allocate: OnChange, deallocate: OnChange) -> None:
        """Register a handler of every virtual placement, release and their undo."""
        self._handlers.append(EventHandler(self._opening, allocate, deallocate))

    def add_shape_fn(self, fn: ShapeOf) -> None:
        """Register further properties of a job that the plugin's results depend on.

        Jobs of one shape share predicates and scores: same request, ports, system, labels, preemptible flag.
        """
        self._shapes.append((self._opening, lambda job: _hashable(fn, job)))

    def disable_score(self, fn: ScoreFn, score: float) -> None:
        """Disable an invalid score for the rest of the cycle, and report its plugin."""
        self.failures.record(fn.plugin, invalid_score(score))
        if not fn.excluded:
            fn.excluded = True
            self.scores_excluded += 1

    # Queries, called by actions.

    def candidates(self, task: Task, job: Job) -> Candidates:
        """Return the candidate nodes of this shape."""
        more = tuple(self._guarded(plugin, fn, job) for plugin, fn in self._shapes) if self._shapes else ()
        key = (job.system, job.labels, job.preemptible, more)
        shape = (task.request, task.ports, key)
        candidates = self._candidates.get(shape)
        if candidates is None:
            fixed = self._fixed.get(key)
            if fixed is None:
                results = fixed_results(self, task, job)
                fixed = self._fixed[key] = self._alike.setdefault(results.signature, results)
            candidates = self._candidates[shape] = candidates_for(self, task, job, fixed)
        return candidates

    def node_order(self, task: Task, job: Job, fixed: FixedResults, needs: Sequence[int]) -> NodeOrder | None:
        """Return the node order that tasks like this share; None if there is none."""
        key: list[Hashable] = [id(fixed)]
        for fn in self.scores:
            if not fn.fixed:
                unknown = fn.ranks_by is None or fn.clipped
                ranked = _FAILED if unknown else self._guarded(fn.plugin, _hashable, fn.ranks_by, task)
                if ranked is _FAILED:
                    return None
                key.append(ranked)
        order = self._rankings.get(tuple(key))
        if order is None and self._ranked < MAX_NODE_ORDERS * len(self.nodes):
            self._ranked += int(fixed.allowed.sum())
            order = NodeOrder(self, task, job, fixed, needs)
            if any(fn.clipped for fn in order.active):
                return None
            self._rankings[tuple(key)] = order
        return order

    def refused(self, job: Job) -> list[tuple[str, Reason]]:
        """Return every reason why the job may not be placed on any node, with its plugin."""
        reasons: list[tuple[str, Reason]] = []
        if self.over_capacity is not None:
            plugin, fn = self.over_capacity
            reason = self._guarded(plugin, fn, job)
            if isinstance(reason, Reason):
                reasons.append((plugin, reason))
        for plugin, check in self.pre_predicates:
            reason = self._guarded(plugin, check, job.whole, job)
            if isinstance(reason, Reason):
                reasons.append((plugin, reason))
        return reasons

    def victims(
        self, job: Job, filters: Sequence[tuple[str, VictimFilter]], candidates: Sequence[Job]
    ) -> list[Job]:
        """Return the victims that all filters agree on; none if a filter fails."""
        agreed = list(candidates)
        for plugin, fn in filters:
            accepted = self._guarded(plugin, _ids, fn, job, agreed)
            if accepted is _FAILED:
                return []
            agreed = [victim for victim in agreed if id(victim) in accepted]
        return agreed

    def tasks_in_order(self, job: Job) -> list[Task]:
        """Return the tasks in order; a failing order is ignored."""
        tasks = sorted(job.tasks, key=attrgetter("name"))
        for order in reversed([order for order in self.orders if order.kind == "task"]):
            in_order = self._guarded(order.plugin, _sorted_by, order.key, tasks)
            tasks = tasks if in_order is _FAILED else in_order
        return tasks

    def part_on(self, task: Task, number: int) -> JobPart:
        """Return the task's part on a node, with the GPUs it gets there."""
        devices = self._choose_devices(task, number) if task.request[GPU] else ()
        return JobPart(self.nodes.rows[number].key, (task,), devices)

    def _choose_devices(self, task: Task, number: int) -> tuple[tuple[int, int], ...]:
        """Choose whole GPUs first, then one for the fraction; highest score, then lowest index."""
        state = NodeState(self.nodes, number)
        free = state.free_devices
        ranked = sorted(
            range(len(free)),
            key=lambda device: (
                -sum(self._gpu_score(order, task, state, device) for order in self.gpu_orders),
                device,
            ),
        )
        whole, fraction = divmod(task.request[GPU], UNIT)
        chosen = [(device, UNIT) for device in ranked if free[device] >= UNIT][:whole]
        taken = {device for device, _ in chosen}
        if fraction:
            partly_free = (number for number in ranked if free[number] >= fraction and number not in taken)
            chosen += [(number, fraction) for number in islice(partly_free, 1)]
        return tuple(sorted(chosen))

    def _gpu_score(self, order: tuple[str, GpuOrder], task: Task, state: NodeState, device: int) -> float:
        score = self._guarded(order[0], lambda: float(order[1](task, state, device)))
        if score is _FAILED or -MAX_SCORE < score < MAX_SCORE:
            return 0.0 if score is _FAILED else score
        self.failures.record(order[0], invalid_score(score))
        return 0.0

    def change(self, job: Job, part: JobPart, leases: int, *, taking: bool) -> None:
        """Add a part to its node or remove it, and call the event handlers."""
        if taking:
            number = self.nodes.take(part, leases=leases)
        else:
            number = self.nodes.release(part, leases=leases)
            self.release_count += 1
        self.changed.append(number)
        started = perf_counter()
        for handler in self._handlers:
            try:
                (handler.allocate if taking else handler.deallocate)(job, part)
            except Exception as error:
                self.failures.record(handler.plugin, error)
            # One clock read per handler: the end of one is the start of the next.
            ended = perf_counter()
            self.timings.seconds[handler.plugin] += ended - started
            started = ended

    def _safe(self, compare: Callable[[Any, Any], int] | None) -> Callable[[Any, Any], int] | None:
        """Return a comparison that treats both as equal if it fails."""
        if compare is None:
            return None
        plugin, compare_fn = self._opening, compare

        def safe(left: object, right: object) -> int:
            result = self._guarded(plugin, _compared, compare_fn, left, right)
            return 0 if result is _FAILED else result

        return safe

    def _guarded(self, plugin: str, fn: Callable[..., Any], *values: object) -> Any:
        started = perf_counter()
        try:
            return fn(*values)
        except Exception as error:
            self.failures.record(plugin, error)
            return _FAILED
        finally:
            self.timings.seconds[plugin] += perf_counter() - started


_FAILED: Any = object()


def _compared(compare: Callable[[Any, Any], int], left: object, right: object) -> int:
    return int(compare(left, right))


def _sorted_by(key: Callable[[Task], Any], tasks: list[Task]) -> list[Task]:
    return sorted(tasks, key=key)


def _ids(fn: VictimFilter, job: Job, victims: Sequence[Job]) -> set[int]:
    return {id(victim) for victim in fn(job, victims)}


def _hashable(fn: Callable[[Any], Hashable], job_or_task: Job | Task) -> Hashable:
    key = fn(job_or_task)
    hash(key)
    return key
