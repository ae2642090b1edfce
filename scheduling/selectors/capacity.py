"""Queries of pools with their usage and demand, slots, reservations and ticks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db.models import Case, Count, F, Max, Min, OuterRef, Q, QuerySet, Subquery, Sum, Value, When
from django.db.models.functions import Coalesce

from lcm.domain.access import ControllerScope
from lcm.domain.lifecycle import FINAL
from lcm.models import LabletSession
from lcm.selectors.names import SUGGESTIONS
from scheduling.capacity.resources import NAMES, Resources
from scheduling.models import (
    IN_FLIGHT,
    OCCUPIED,
    LaunchAttempt,
    Phase,
    Pool,
    PortAllocation,
    Reservation,
    ReservationPart,
    Slot,
    SlotState,
    TickRun,
)
from scheduling.placement.framework.amounts import NOTHING, UNIT, Amounts
from scheduling.selectors.allocated_resources import amounts_by_slot, ports_by_slot
from scheduling.selectors.lead_time import QUEUED_SINCE, is_queued

POOL_STATES = ("enabled", "off", "stopped", "backing off")
_SLOT_NAME = re.compile(r"^(?P<pool>[a-z0-9-]+)-(?P<number>[0-9]{1,6})$")
# Columns of a session's definition that no list shows.
_LONG = ("topology_yaml", "nodes", "links")


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

    Advance bookings count as waiting from their queue entry on; until then they are `ahead`.
    """
    pending = Reservation.objects.filter(phase=Phase.PENDING)
    waiting = pending.filter(is_queued(now))
    found: QuerySet[Any] = pools_with_state(now).annotate(
        waiting=Coalesce(_for_each(waiting, Count("*")), 0),
        oldest_waiting_since=_for_each(waiting, Min(QUEUED_SINCE)),
        ahead=Coalesce(_for_each(pending.filter(joins_queue_at__gt=now), Count("*")), 0),
    )
    return found


def pools_with_state(now: datetime) -> QuerySet[Any]:
    return Pool.objects.annotate(state=pool_state(now))


def pool_state(now: datetime) -> Case:
    """Annotate whether new slots may be launched: one of `POOL_STATES`."""
    return Case(
        When(enabled=False, then=Value("off")),
        When(~Q(stopped_reason=""), then=Value("stopped")),
        When(backoff_until__gt=now, then=Value("backing off")),
        default=Value("enabled"),
    )


# Slots that accept sessions, or will once they are READY.
SERVING = Q(cordoned=False, interruption_deadline=None)


def overdue_grace() -> timedelta:
    """Return how long an overdue slot is checked again before it is ended as a failure.

    Meanwhile no other launch takes its place.
    """
    return max(timedelta(minutes=1), 3 * timedelta(seconds=settings.CONFIG["RECONCILE_INTERVAL"]))


def is_in_flight(now: datetime) -> Q:
    """Filter slots that are expected to become READY; overdue slots are about to be ended."""
    return SERVING & Q(state__in=IN_FLIGHT, state_deadline__gt=now - overdue_grace())


def is_slot_in_flight(slot: Slot, now: datetime) -> bool:
    """Return the same for a loaded slot."""
    if slot.cordoned or slot.interruption_deadline or slot.state not in IN_FLIGHT or not slot.state_deadline:
        return False
    return slot.state_deadline > now - overdue_grace()


class ServingCounts(NamedTuple):
    """Numbers of serving slots of a pool: READY, READY without a lease, incoming."""

    ready: int
    idle: int
    in_flight: int


def serving_slots(pool: Pool, *, now: datetime) -> ServingCounts:
    ready = Q(state=SlotState.READY)
    counts = Slot.objects.filter(SERVING, pool=pool).aggregate(
        ready=Count("pk", filter=ready),
        idle=Count("pk", filter=ready & Q(lease_count=0)),
        in_flight=Count("pk", filter=is_in_flight(now)),
    )
    return ServingCounts(**counts)


def occupied_slots(pool: Pool) -> int:
    """Return the slots that count against the pool's maximum."""
    return Slot.objects.filter(pool=pool, state__in=OCCUPIED).count()


def emptying_slots(pool: Pool) -> int:
    """Return how many of them become free without action: no lease is left on them."""
    leaving = Q(state=SlotState.TERMINATING) | Q(state=SlotState.DRAINING, lease_count=0)
    return Slot.objects.filter(leaving, pool=pool).count()


def is_leaving(slot: Slot) -> bool:
    """Return the same for a loaded slot."""
    idle = slot.state == SlotState.DRAINING and not slot.lease_count
    return idle or slot.state == SlotState.TERMINATING


def pool_names() -> list[str]:
    return list(Pool.objects.order_by("name").values_list("name", flat=True))


def enabled_pools() -> list[str]:
    return list(Pool.objects.filter(enabled=True).order_by("name").values_list("name", flat=True))


def other_pools(session: LabletSession) -> list[str]:
    """Return the pools that a session could be moved to, by name."""
    pools = Pool.objects.filter(enabled=True, system=session.definition.system).exclude(name=session.pool)
    return list(pools.order_by("name").values_list("name", flat=True))


def slots() -> QuerySet[Slot]:
    return Slot.objects.select_related("pool")


def search_slots(rows: QuerySet[Slot], text: str, *, also: Q | None = None) -> QuerySet[Slot]:
    """Search slots by name, instance, address or offering."""
    found = also or Q()
    for column in ("pool__name", "instance_id", "endpoint", "offering"):
        found |= Q(**{f"{column}__icontains": text})
    if named := _SLOT_NAME.match(text):
        found |= Q(pool__name=named["pool"], number=int(named["number"]))
    return rows.filter(found)


def slots_in_scope(scope: ControllerScope) -> QuerySet[Slot]:
    """Return the slots that a controller may see and report on."""
    rows = slots().filter(pool__name__in=scope.pools)
    return rows if scope.slot_id is None else rows.filter(pk=scope.slot_id)


def reservations() -> QuerySet[Reservation]:
    """Return reservations with their session, user and slot."""
    rows = Reservation.objects.select_related(
        "pool", "slot__pool", "session__definition", "session__owner", "last_verdict"
    )
    return rows.defer(*(f"session__definition__{name}" for name in _LONG))


def reservation_counts(now: datetime) -> tuple[int, int, int]:
    """Return how many are placed, waiting and booked; each phase has its own index."""
    due = is_queued(now)
    queue = Reservation.objects.filter(phase=Phase.PENDING).aggregate(
        waiting=Count("pool", filter=due), ahead=Count("pool", filter=~due)
    )
    held = Reservation.objects.filter(phase=Phase.READY).count()
    return held, queue["waiting"], queue["ahead"]


def reservations_on(slot: Slot) -> QuerySet[Reservation]:
    """Return the reservations with a lease on the slot, largest first."""
    # Query the ids first: with a subquery the database would scan all reservations.
    spread = list(ReservationPart.objects.filter(slot=slot).values_list("reservation_id", flat=True))
    here = Q(slot=slot) | Q(pk__in=spread)
    return reservations().filter(here, phase=Phase.READY).order_by("-memory_gb", "-cpu_cores", "pk")


@dataclass(frozen=True)
class SlotOccupancy:
    """Number of leases of a slot, how many have no session, and when the last one ends."""

    count: int
    without_session: int
    last_end: datetime | None


def slot_occupancy(slot: Slot) -> SlotOccupancy:
    found = reservations_on(slot).aggregate(
        count=Count("pk"),
        without_session=Count("pk", filter=Q(session=None)),
        last_end=Max(Coalesce("session__ends_at", "expires_at")),
    )
    return SlotOccupancy(**found)


def parts_of(rows: Sequence[Reservation]) -> dict[UUID, list[ReservationPart]]:
    """Return the parts of spread reservations by slot."""
    keys = [row.pk for row in rows if row.spread]
    found: dict[UUID, list[ReservationPart]] = {}
    if keys:
        parts = ReservationPart.objects.filter(reservation_id__in=keys).select_related("slot__pool")
        for part in parts.order_by("slot__number"):
            found.setdefault(part.reservation_id, []).append(part)
    return found


def reservations_of(session: LabletSession, limit: int) -> list[Reservation]:
    """Return a session's reservations, the one of the current attempt first."""
    return list(reservations().filter(session=session).order_by("-attempt", "-created_at")[:limit])


def suggest_pools(text: str) -> list[str]:
    rows = Pool.objects.filter(name__icontains=text, enabled=True).order_by("name")
    return list(rows.values_list("name", flat=True)[:SUGGESTIONS])


def last_reservations(session_ids: Sequence[UUID]) -> dict[UUID, Reservation]:
    """Return each session's reservation on its current slot, or on its last one."""
    here = Q(phase=Phase.READY) | Q(session__status__in=FINAL)
    rows = Reservation.objects.filter(here, session_id__in=session_ids, slot__isnull=False)
    placed = rows.select_related("slot__pool").order_by("attempt", "created_at")
    return {row.session_id: row for row in placed if row.session_id}


def ticks() -> QuerySet[TickRun]:
    return TickRun.objects.select_related("pool")


def tick_summary(moment: datetime) -> tuple[int, int | None]:
    """Return the number of failed ticks and the slowest duration in ms since then; None without ticks."""
    found = TickRun.objects.filter(started_at__gte=moment).aggregate(
        failed=Count("pk", filter=~Q(errors={})), slowest=Max("duration_ms")
    )
    return found["failed"], found["slowest"]


def ticks_since(moment: datetime, *, limit: int) -> list[tuple[datetime, int, str, dict[str, int]]]:
    """Return start, duration, pool and results of the ticks since then."""
    rows = TickRun.objects.filter(started_at__gte=moment).order_by("-started_at", "-pk")
    return list(rows.values_list("started_at", "duration_ms", "pool__name", "counts")[:limit])


def attempts_of(slot: Slot, limit: int) -> list[LaunchAttempt]:
    return list(slot.attempts.order_by("-requested_at", "-pk")[:limit])


def ports_of(slot: Slot) -> list[PortAllocation]:
    """Return the taken ports of a slot, in order, with their sessions."""
    return list(slot.ports.order_by("port").select_related("session"))


@dataclass(frozen=True)
class SlotAllocation:
    """Allocated amounts of a slot."""

    taken: Resources
    ports: int


def slot_allocations(pool: Pool, rows: list[Slot]) -> dict[UUID, SlotAllocation]:
    """Return the allocated amounts of slots of one pool, in one or two queries."""
    keys = [slot.pk for slot in rows]
    amounts, ports = amounts_by_slot(keys), ports_by_slot(pool, keys)
    return {key: SlotAllocation(_in_numbers(amounts.get(key, NOTHING)), ports.get(key, 0)) for key in keys}


def _in_numbers(amounts: Amounts) -> Resources:
    return Resources(*(Decimal(amount) / UNIT for amount in amounts))


@dataclass(frozen=True)
class PoolFigures:
    """Figures of a pool."""

    by_state: dict[str, int]
    leases: int
    lease_limit: int
    room: Resources
    taken: Resources
    waiting: int
    waiting_without_session: int
    # Advance bookings.
    ahead: int
    oldest_waiting_since: datetime | None

    @property
    def ready(self) -> int:
        return self.by_state.get(SlotState.READY, 0)

    def in_states(self, states: Iterable[str]) -> int:
        return sum(self.by_state.get(state, 0) for state in states)


def figures_of(pool: Pool, now: datetime) -> PoolFigures:
    sums: Any = {name: Sum(name) for name in NAMES}
    rows: Any = Slot.objects.filter(pool=pool).order_by().values("state")
    states = {
        row["state"]: row
        for row in rows.annotate(slots=Count("pk"), held=Sum("lease_count"), most=Sum("max_leases"), **sums)
    }
    ready = states.get(SlotState.READY, {})
    due = is_queued(now)
    queue = Reservation.objects.filter(pool=pool, phase=Phase.PENDING).aggregate(
        waiting=Count("pk", filter=due),
        bare=Count("pk", filter=due & Q(session=None)),
        ahead=Count("pk", filter=~due),
        oldest_waiting_since=Min(QUEUED_SINCE, filter=due),
    )
    return PoolFigures(
        by_state={state: row["slots"] for state, row in states.items()},
        leases=ready.get("held") or 0,
        lease_limit=ready.get("most") or 0,
        room=_resources(ready),
        taken=_held_on_ready([pool.pk]).get(pool.pk, Resources()),
        waiting=queue["waiting"],
        waiting_without_session=queue["bare"],
        ahead=queue["ahead"],
        oldest_waiting_since=queue["oldest_waiting_since"],
    )


def pool_allocations(rows: Sequence[Pool]) -> dict[UUID, tuple[Resources, Resources]]:
    """Return allocated amounts and capacity of each pool's READY slots, in three queries."""
    keys = [pool.pk for pool in rows]
    room = _sums_by("pool", Slot.objects.filter(pool__in=keys, state=SlotState.READY))
    held = _held_on_ready(keys)
    return {key: (held.get(key, Resources()), room.get(key, Resources())) for key in keys}


def _held_on_ready(pools: Sequence[UUID]) -> dict[UUID, Resources]:
    """Return the allocated amounts of READY slots, by pool; of spread reservations the parts there."""
    whole = Reservation.objects.filter(
        pool__in=pools, phase=Phase.READY, slot__state=SlotState.READY, spread=False
    )
    parts = ReservationPart.objects.filter(slot__pool__in=pools, slot__state=SlotState.READY)
    held = _sums_by("pool", whole)
    for pool, amounts in _sums_by("slot__pool", parts).items():
        held[pool] = held.get(pool, Resources()) + amounts
    return held


def _sums_by(pool: str, rows: QuerySet[Any]) -> dict[UUID, Resources]:
    sums: Any = {name: Sum(name) for name in NAMES}
    return {row[pool]: _resources(row) for row in rows.order_by().values(pool).annotate(**sums)}


def board_slots(pool: Pool, *, now: datetime, start: int, limit: int) -> list[Slot]:
    """Return a pool's slots that are not EMPTY: problems first, then transitions, then the fullest."""
    troubled = Q(state=SlotState.ERROR) | Q(interruption_deadline__isnull=False)
    overdue = Q(state_deadline__lt=now) & ~Q(state=SlotState.DRAINING, lease_count__gt=0)
    order = Case(
        When(troubled | overdue, then=Value(0)),
        When(state=SlotState.READY, then=Value(2)),
        default=Value(1),
    )
    rows: QuerySet[Any] = Slot.objects.filter(pool=pool).exclude(state=SlotState.EMPTY).annotate(place=order)
    found: list[Slot] = list(rows.order_by("place", F("lease_count").desc(), "number")[start : start + limit])
    for slot in found:
        slot.pool = pool
    return found


def empty_places(pool: Pool, *, start: int, limit: int) -> list[tuple[int, UUID | None]]:
    """Return slot numbers without an instance, with the previous slot if any; up to the pool's maximum."""
    rows = Slot.objects.filter(pool=pool).order_by().values_list("number", "state", "pk")
    known = {number: (state, pk) for number, state, pk in rows}
    taken = sum(state != SlotState.EMPTY for state, _ in known.values())
    free = [
        (number, known[number][1] if number in known else None)
        for number in range(1, pool.max_slots + 1)
        if number not in known or known[number][0] == SlotState.EMPTY
    ]
    return free[: max(pool.max_slots - taken, 0)][start : start + limit]


def _for_each(rows: QuerySet[Any], value: Any) -> Subquery:
    """Return an aggregate over a pool's rows as a subquery."""
    mine = rows.filter(pool=OuterRef("pk")).order_by().values("pool")
    return Subquery(mine.annotate(figure=value).values("figure"))


def _resources(row: Any) -> Resources:
    return Resources(*(row.get(name) or Decimal(0) for name in NAMES))
