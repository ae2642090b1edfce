"""Order of waiting reservations, and their decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery

from scheduling.models import Decision, DecisionOutcome, Phase, Pool, QueueOrder, Reservation
from scheduling.selectors.fair_share import LevelFactors, Subject, factors_for
from scheduling.selectors.lead_time import is_advance_booking, is_queued
from scheduling.selectors.reservations import reservations

ID = 16
# The most decisions that are counted for a lead.
DECISIONS_COUNTED = 10_000


@dataclass(frozen=True)
class QueueSnapshot:
    """A pool's queue in the order of its last cycle."""

    at: datetime | None = None
    ids: bytes = b""

    def __len__(self) -> int:
        return len(self.ids) // ID

    def position_of(self, key: UUID) -> int | None:
        """Return the position from 1; None before the first cycle."""
        found = self.ids.find(key.bytes)
        while found % ID:
            if found < 0:
                return None
            found = self.ids.find(key.bytes, found + 1)
        return found // ID + 1

    def keys(self) -> Iterable[UUID]:
        return (UUID(bytes=self.ids[start : start + ID]) for start in range(0, len(self.ids), ID))


def queue_snapshot(pool: Pool) -> QueueSnapshot:
    """Return the pool's queue order, prefetched with the pool if requested."""
    try:
        found = pool.queue_order
    except QueueOrder.DoesNotExist:
        return QueueSnapshot()
    return QueueSnapshot(found.at, bytes(found.ids))


def waiting() -> QuerySet[Reservation]:
    """Return waiting reservations, each with its newest decision.

    A reservation ends in the same transaction as its session's wait, so its phase is sufficient. Joining the
    sessions of a long queue would take longer than the rest of the page.
    """
    newest = Decision.objects.filter(reservation=OuterRef("pk")).order_by("-at").values("pk")[:1]
    rows = reservations().filter(phase=Phase.PENDING)
    return rows.select_related("session__project__domain").annotate(decision_id=Subquery(newest))


def waiting_by_pool(now: datetime) -> dict[str, tuple[int, int]]:
    """Return the number of waiting and booked reservations by pool name; pools without any are missing."""
    due = is_queued(now)
    rows = Reservation.objects.filter(phase=Phase.PENDING).order_by().values_list("pool__name")
    found = rows.annotate(claims=Count("pool", filter=due), booked=Count("pool", filter=~due))
    return {pool: (claims, booked) for pool, claims, booked in found}


class OrderedQueue(NamedTuple):
    """Ids of reservations in the order of their pools, how many are advance bookings, and those orders."""

    keys: list[UUID]
    booked: int
    orders: dict[UUID, QueueSnapshot]


def in_scheduler_order(rows: QuerySet[Reservation], *, now: datetime) -> OrderedQueue:
    """Return these rows pool by pool; rows without a position come last in their pool."""
    by_pool: dict[UUID, list[UUID]] = {}
    booked = 0
    found = rows.order_by("pool__name", "created_at", "pk").values_list("pool_id", "pk", "joins_queue_at")
    for pool_id, key, joins_at in found:
        by_pool.setdefault(pool_id, []).append(key)
        booked += joins_at is not None and joins_at > now
    newest = QueueOrder.objects.filter(pool_id__in=by_pool).values_list("pool_id", "at", "ids")
    orders = {pool_id: QueueSnapshot(at, bytes(ids)) for pool_id, at, ids in newest}
    offsets = {pool_id: _offsets(order.ids) for pool_id, order in orders.items()}
    ordered = [key for pool_id, keys in by_pool.items() for key in _sorted(keys, offsets.get(pool_id, {}))]
    return OrderedQueue(ordered, booked, orders)


def _sorted(keys: list[UUID], offsets: dict[bytes, int]) -> list[UUID]:
    last = len(offsets) * ID
    return sorted(keys, key=lambda key: offsets.get(key.bytes, last))


def _offsets(ids: bytes) -> dict[bytes, int]:
    """Return the offset of each id."""
    return {ids[start : start + ID]: start for start in range(0, len(ids), ID)}


def annotate_waiting(rows: Sequence[Any], *, orders: Mapping[UUID, QueueSnapshot], now: datetime) -> None:
    """Add position, newest decision, fair-share factors and waiting time to the rows of a page."""
    sessions = [(row.pool_id, row.session) for row in rows if row.session]
    factors_by_subject = factors_for(
        {(pool, session.owner_id, session.project_id) for pool, session in sessions}
    )
    newest = decisions().in_bulk([row.decision_id for row in rows if row.decision_id])
    for row in rows:
        order = orders.get(row.pool_id)
        row.position = order.position_of(row.pk) if order else None
        row.decision = newest.get(row.decision_id)
        row.factors = _factors_of(row, factors_by_subject) if row.session else None
        row.is_advance_booking = is_advance_booking(row, now)
        row.waits_from = row.joins_queue_at or row.created_at
        row.exceeds_target_wait = now - row.waits_from > timedelta(seconds=row.pool.target_wait_seconds)


def _factors_of(row: Any, factors_by_subject: Mapping[Subject, LevelFactors]) -> LevelFactors:
    return factors_by_subject.get((row.pool_id, row.session.owner_id, row.session.project_id), LevelFactors())


def decisions() -> QuerySet[Decision]:
    """Return decisions with their reservation, slot and reason."""
    rows = Decision.objects.select_related(
        "pool", "slot__pool", "why", "reservation__session__definition", "reservation__session__owner"
    )
    return rows.defer(
        *(f"reservation__session__definition__{name}" for name in ("topology_yaml", "nodes", "links"))
    )


def decided_since(moment: datetime) -> tuple[int, int, bool]:
    """Return how many were placed and not placed since then, and whether the count is capped."""
    # Filter by pool ids, the first column of the index.
    rows = Decision.objects.filter(pool__in=Pool.objects.values("pk"), at__gte=moment).order_by()
    found = Counter(rows.values_list("outcome", flat=True)[: DECISIONS_COUNTED + 1])
    placed, total = found[DecisionOutcome.PLACED], found.total()
    return placed, total - placed, total > DECISIONS_COUNTED


def decisions_of(reservation: Reservation, limit: int) -> list[Decision]:
    return list(decisions().filter(reservation=reservation).order_by("-at", "-pk")[:limit])
