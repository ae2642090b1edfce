"""Plugin that orders queues by fair share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

from scheduling.options import number
from scheduling.placement.framework.amounts import NOTHING, Units, add, negative
from scheduling.placement.framework.model import ROOT, Job, JobPart, Queue, effective_parent
from scheduling.placement.framework.plugin import Plugin, register_plugin
from scheduling.placement.framework.session import SchedulingSession

MAX_EXPONENT = 100.0
# Charges are counted in this fraction of the pool.
SCALE = 1 << 40


@register_plugin("fairshare")
@dataclass(frozen=True)
class FairSharePlugin(Plugin):
    """Order queues by fair-share factor, lowered by placements of this cycle; reclaim from queues over their
    share."""

    charge: Annotated[float, number(0, 100)] = 1
    """Usage that a placement of the whole pool adds for a queue with a share of 1; 1 halves its factor."""

    def on_session_open(self, ssn: SchedulingSession) -> None:
        factors = _CycleFactors(ssn, self.charge)
        ssn.add_queue_order_fn(key=factors.key)
        ssn.add_event_handler(allocate=factors.charge, deallocate=factors.refund)
        ssn.add_reclaimable_fn(factors.reclaimable)


class _Account:
    """A queue's factor, with the placements of this cycle for it and its descendants."""

    __slots__ = ("base", "charged", "factor", "share")

    def __init__(self, factor: float) -> None:
        self.base = self.factor = factor
        # An integer, so that a charge and its refund cancel exactly.
        self.charged = 0
        self.share = 1.0


class _CycleFactors:
    """The factors of a cycle, with provisional charges for its placements."""

    def __init__(self, ssn: SchedulingSession, rate: float) -> None:
        self._ssn, self._rate = ssn, rate
        self._queues = ssn.queues
        self._total = ssn.nodes.total
        self._accounts = {name: _Account(queue.factor) for name, queue in ssn.queues.items()}
        self._charged: dict[str, tuple[_Account, ...]] = {}
        self._paths: dict[str, tuple[str, ...]] = {}
        self._dominant: dict[Units, float] = {}
        self._costs: dict[Units, int] = {}
        self._held: dict[str, Units] = {}
        # Changes that are not in `_held` yet: only reclaim needs them. An evicted job holds nothing any more.
        self._log: list[tuple[Job, JobPart, int]] = [
            (job, part, 1) for job in ssn.snapshot.running if not job.leaving for part in job.parts
        ]

    def key(self, queue: Queue) -> float:
        return -self._accounts[queue.name].factor

    def charge(self, job: Job, part: JobPart) -> None:
        self._change(job, part, 1)

    def refund(self, job: Job, part: JobPart) -> None:
        self._change(job, part, -1)

    def _change(self, job: Job, part: JobPart, sign: int) -> None:
        leaf, request = job.leaf, part.request
        amount = sign * (self._costs.get(request) or self._cost_of(request))
        for account in self._charged.get(leaf) or self._accounts_of(leaf):
            account.charged = charged = account.charged + amount
            # Clamp the exponent: a refund to a queue with a tiny share must not overflow.
            exponent = charged / account.share if account.share else charged
            exponent = max(-MAX_EXPONENT, min(exponent, MAX_EXPONENT))
            account.factor = account.base * 2.0**-exponent
        self._log.append((job, part, sign))

    def _accounts_of(self, leaf: str) -> tuple[_Account, ...]:
        """Return the accounts that a placement for this queue is charged to: its own and its ancestors'."""
        accounts = []
        for name in self._path(leaf):
            account = self._accounts[name]
            account.share = SCALE * self.entitled[name]
            accounts.append(account)
        return self._charged.setdefault(leaf, tuple(accounts))

    def _cost_of(self, amounts: Units) -> int:
        cost = self._costs[amounts] = round(self._rate * self._share_of(amounts) * SCALE)
        return cost

    def reclaimable(self, job: Job, victims: Sequence[Job]) -> list[Job]:
        """Return the victims whose queues stay at or over their share without them, if the job's queue stays
        within its own."""
        return [victim for victim in victims if self._may_evict(job, victim)]

    def _may_evict(self, job: Job, victim: Job) -> bool:
        """Compare the queues at the level where they differ: projects of one domain, or domains."""
        own_path, victim_path = self._path(job.leaf), self._path(victim.leaf)
        for own_queue, victim_queue in zip(reversed(own_path), reversed(victim_path), strict=False):
            if own_queue != victim_queue:
                held_after = add(self.held(own_queue), job.request)
                left_after = add(self.held(victim_queue), negative(victim.request))
                return (
                    self._share_of(held_after) <= self.entitled[own_queue]
                    and self._share_of(left_after) >= self.entitled[victim_queue]
                )
        return False

    @cached_property
    def entitled(self) -> dict[str, float]:
        """Return each queue's share of the pool: its weight among its siblings, down the tree."""
        sums: dict[str, float] = {}
        for queue in self._queues.values():
            if not queue.joins:
                above = effective_parent(queue.name, self._queues)
                sums[above] = sums.get(above, 0.0) + queue.weight
        shares: dict[str, float] = {}
        for name in self._queues:
            share = 1.0
            for part in self._path(name):
                queue = self._queues[part]
                if not queue.joins:
                    weight_sum = sums[effective_parent(part, self._queues)]
                    share *= queue.weight / weight_sum if queue.weight else 0.0
            shares[name] = share
        return shares

    def held(self, queue: str) -> Units:
        """Return what a queue and its descendants hold now."""
        for job, part, sign in self._log:
            change = part.request if sign > 0 else negative(part.request)
            for name in self._path(job.leaf):
                self._held[name] = add(self._held.get(name, NOTHING), change)
        self._log.clear()
        return self._held.get(queue, NOTHING)

    def _share_of(self, amounts: Units) -> float:
        """Return the dominant share: the largest fraction of any resource of the pool."""
        share = self._dominant.get(amounts)
        if share is None:
            share = max(
                (held / available for held, available in zip(amounts, self._total, strict=True) if available),
                default=0.0,
            )
            self._dominant[amounts] = share
        return share

    def _path(self, leaf: str) -> tuple[str, ...]:
        """Return the queue and its ancestors."""
        path = self._paths.get(leaf)
        if path is None:
            names, name = [], leaf
            while name != ROOT and name in self._queues:
                names.append(name)
                name = effective_parent(name, self._queues)
            path = self._paths[leaf] = tuple(names)
        return path
