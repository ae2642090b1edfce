"""Queries of pools: state, queue, figures, allocated amounts and ticks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Case, Count, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from lcm.domain.resources import RESOURCE_NAMES, Amounts
from lcm.models import LabletDefinition, LabletSession
from lcm.selectors.names import SUGGESTIONS
from scheduling.models import (
    OCCUPIED,
    Phase,
    Pool,
    Reservation,
    ReservationPart,
    Slot,
    SlotState,
    TickRun,
)
from scheduling.selectors.lead_time import QUEUED_SINCE, is_queued

BACKING_OFF = "backing off"
POOL_STATES = ("enabled", "off", "stopped", BACKING_OFF)
# States of enabled pools that launch nothing.
HALTED_STATES = ("stopped", BACKING_OFF)
POOL_STATE_NAMES = {
    "enabled": _("Enabled"),
    "off": _("Off"),
    "stopped": _("Stopped"),
    BACKING_OFF: _("Backing off"),
}


def pools(now: datetime) -> QuerySet[Any]:
    """Return pools with their state, their usage (slots and leases) and their queue."""
    slots, ready = Slot.objects.all(), Slot.objects.filter(state=SlotState.READY)
    found: QuerySet[Any] = pools_with_queue(now).annotate(
        occupied=Coalesce(_for_each(slots.filter(state__in=OCCUPIED), Count("*")), 0),
        ready=Coalesce(_for_each(ready, Count("*")), 0),
        leases=Coalesce(_for_each(ready, Sum("lease_count")), 0),
        lease_limit=Coalesce(_for_each(ready, Sum("max_leases")), 0),
    )
    return found


def pools_with_queue(now: datetime) -> QuerySet[Any]:
    """Return pools with their state and their queue, by index-only queries.

    Advance bookings count as waiting from their queue entry on; until then as `booked`.
    """
    pending = Reservation.objects.filter(phase=Phase.PENDING)
    waiting = pending.filter(is_queued(now))
    found: QuerySet[Any] = pools_with_state(now).annotate(
        waiting=Coalesce(_for_each(waiting, Count("*")), 0),
        oldest_waiting_since=_for_each(waiting, Min(QUEUED_SINCE)),
        booked=Coalesce(_for_each(pending.filter(joins_queue_at__gt=now), Count("*")), 0),
    )
    return found


def pools_with_state(now: datetime) -> QuerySet[Any]:
    return Pool.objects.annotate(state=pool_state(now))


def pool_state(now: datetime) -> Case:
    """Annotate whether new slots may be launched: one of `POOL_STATES`."""
    return Case(
        When(enabled=False, then=Value("off")),
        When(~Q(stopped_reason=""), then=Value("stopped")),
        When(backoff_until__gt=now, then=Value(BACKING_OFF)),
        default=Value("enabled"),
    )


def pool_state_name(state: str) -> str:
    """Return the name of a state for pages."""
    return str(POOL_STATE_NAMES[state])


def pool_names() -> list[str]:
    return list(Pool.objects.order_by("name").values_list("name", flat=True))


def enabled_pools() -> list[str]:
    return list(Pool.objects.filter(enabled=True).order_by("name").values_list("name", flat=True))


def other_pools(session: LabletSession) -> list[str]:
    """Return the pools that a session could be moved to, by name."""
    pools = Pool.objects.filter(enabled=True, system=session.definition.system).exclude(name=session.pool)
    return list(pools.order_by("name").values_list("name", flat=True))


def pools_of(definition: LabletDefinition) -> list[Pool]:
    """Return the pools for a definition's sessions: its own, else all enabled pools of its system."""
    if definition.pool:
        return list(Pool.objects.filter(name=definition.pool))
    return list(Pool.objects.filter(system=definition.system, enabled=True))


def suggest_pools(text: str) -> list[str]:
    rows = Pool.objects.filter(name__icontains=text, enabled=True).order_by("name")
    return list(rows.values_list("name", flat=True)[:SUGGESTIONS])


def ticks() -> QuerySet[TickRun]:
    return TickRun.objects.select_related("pool")


def tick_summary(moment: datetime) -> tuple[int, int | None]:
    """Return the number of failed ticks and the slowest duration in ms since then; None without ticks."""
    found = TickRun.objects.filter(started_at__gte=moment).aggregate(
        failed=Count("pk", filter=~Q(errors={})), slowest=Max("duration_ms")
    )
    return found["failed"], found["slowest"]


@dataclass(frozen=True)
class PoolFigures:
    """Figures of a pool."""

    by_state: dict[str, int]
    leases: int
    lease_limit: int
    capacity: Amounts
    allocated: Amounts
    waiting: int
    waiting_without_session: int
    # Advance bookings.
    booked: int
    oldest_waiting_since: datetime | None

    @property
    def ready(self) -> int:
        return self.by_state.get(SlotState.READY, 0)

    def in_states(self, states: Iterable[str]) -> int:
        return sum(self.by_state.get(state, 0) for state in states)


def figures_of(pool: Pool, now: datetime) -> PoolFigures:
    sums: Any = {name: Sum(name) for name in RESOURCE_NAMES}
    rows: Any = Slot.objects.filter(pool=pool).order_by().values("state")
    states = {
        row["state"]: row
        for row in rows.annotate(slots=Count("pk"), held=Sum("lease_count"), limit=Sum("max_leases"), **sums)
    }
    ready = states.get(SlotState.READY, {})
    due = is_queued(now)
    queue = Reservation.objects.filter(pool=pool, phase=Phase.PENDING).aggregate(
        waiting=Count("pk", filter=due),
        bare=Count("pk", filter=due & Q(session=None)),
        booked=Count("pk", filter=~due),
        oldest_waiting_since=Min(QUEUED_SINCE, filter=due),
    )
    return PoolFigures(
        by_state={state: row["slots"] for state, row in states.items()},
        leases=ready.get("held") or 0,
        lease_limit=ready.get("limit") or 0,
        capacity=Amounts.read(ready),
        allocated=_held_on_ready([pool.pk]).get(pool.pk, Amounts()),
        waiting=queue["waiting"],
        waiting_without_session=queue["bare"],
        booked=queue["booked"],
        oldest_waiting_since=queue["oldest_waiting_since"],
    )


def pool_allocations(rows: Sequence[Pool]) -> dict[UUID, tuple[Amounts, Amounts]]:
    """Return allocated amounts and capacity of each pool's READY slots, in three queries."""
    keys = [pool.pk for pool in rows]
    capacity = _sums_by("pool", Slot.objects.filter(pool__in=keys, state=SlotState.READY))
    held = _held_on_ready(keys)
    return {key: (held.get(key, Amounts()), capacity.get(key, Amounts())) for key in keys}


def _held_on_ready(pools: Sequence[UUID]) -> dict[UUID, Amounts]:
    """Return the allocated amounts of READY slots, by pool; of spread reservations the parts there."""
    whole = Reservation.objects.filter(
        pool__in=pools, phase=Phase.READY, slot__state=SlotState.READY, spread=False
    )
    parts = ReservationPart.objects.filter(slot__pool__in=pools, slot__state=SlotState.READY)
    held = _sums_by("pool", whole)
    for pool, amounts in _sums_by("slot__pool", parts).items():
        held[pool] = held.get(pool, Amounts()) + amounts
    return held


def _sums_by(pool: str, rows: QuerySet[Any]) -> dict[UUID, Amounts]:
    sums: Any = {name: Sum(name) for name in RESOURCE_NAMES}
    return {row[pool]: Amounts.read(row) for row in rows.order_by().values(pool).annotate(**sums)}


def _for_each(rows: QuerySet[Any], value: object) -> Subquery:
    """Return an aggregate over a pool's rows as a subquery."""
    pool_rows = rows.filter(pool=OuterRef("pk")).order_by().values("pool")
    return Subquery(pool_rows.annotate(figure=value).values("figure"))
