"""Step 6: drain slots that are idle for long or block an on-demand launch."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet

from scheduling.capacity.launcher import may_launch
from scheduling.capacity.steps.context import TickContext
from scheduling.models import Phase, Pool, Reservation, Slot, SlotState
from scheduling.placement.framework.demand import slots_needed
from scheduling.selectors.launchable_slots import LaunchableSlots
from scheduling.selectors.new_slots import incoming_supplies
from scheduling.selectors.slots import SERVING, emptying_slots, occupied_slots, serving_slots
from scheduling.services.slots import move_slot


def scale_down(tick: TickContext) -> None:
    drain_idle(tick)
    drain_for_on_demand(tick)


def drain_idle(tick: TickContext) -> None:
    """Drain slots that are idle for too long; keep the minimum, the warm slots and slots with a lease."""
    pool = tick.pool
    serving = serving_slots(pool, now=tick.now)
    surplus = min(serving.ready - pool.floor, serving.idle - pool.warm_slots)
    if surplus <= 0:
        return
    since = tick.now - timedelta(seconds=pool.idle_seconds)
    for slot in _idle(tick).filter(idle_since__lte=since)[:surplus]:
        tick.count("drained", _drain(slot, tick, "idle"))


def drain_for_on_demand(tick: TickContext) -> None:
    """Drain idle spot slots when only their places could hold the on-demand slot that non-preemptible work
    needs."""
    if all(job.preemptible for job in tick.unmet) or not may_launch(tick.pool, tick.now):
        return
    holding = Reservation.objects.filter(pool=tick.pool, phase=Phase.PENDING, held_slot__isnull=False)
    idle = list(_idle(tick).filter(is_spot=True).exclude(pk__in=holding.values("held_slot")))
    if idle:
        for slot in idle[: _blocking_count(tick, len(idle))]:
            tick.count("drained_for_on_demand", _drain(slot, tick, "makes room for non-preemptible work"))


def _blocking_count(tick: TickContext, idle: int) -> int:
    """Return how many idle spot slots must go, beyond places that are free or becoming free."""
    pool = tick.pool
    free = pool.max_slots - occupied_slots(pool) + emptying_slots(pool)
    most = free + idle
    if most <= 0:
        return 0
    stock = LaunchableSlots(tick.new_slots, tick.runtime, most=most, now=tick.now)
    needed = slots_needed(
        tick.unmet, incoming_supplies(tick.new_slots, now=tick.now), stock.supplies(), limit=most
    )
    needed_count = min(sum(not node.spot for node in needed.new[max(free, 0) :]), _drain_limit(pool, free))
    return needed_count - min(free, 0) if needed_count else 0


def _drain_limit(pool: Pool, free: int) -> int:
    """Return the most slots to drain: one, plus the starting on-demand slots, minus the open attempts.

    The provider may refuse on-demand capacity; then as few warm slots as possible are lost.
    """
    slots = Slot.objects.filter(pool=pool)
    starting = slots.filter(state__in=(SlotState.BOOTING, SlotState.BINDING), is_spot=False).count()
    launching = slots.filter(state=SlotState.LAUNCHING).count()
    return max(1 + starting - launching - max(free, 0), 0)


def _idle(tick: TickContext) -> QuerySet[Slot]:
    """Return READY slots without a lease, highest numbers first."""
    idle = Slot.objects.select_related("pool").filter(
        SERVING, pool=tick.pool, state=SlotState.READY, lease_count=0
    )
    return idle.order_by("-number")


def _drain(slot: Slot, tick: TickContext, reason: str) -> bool:
    """Move READY → DRAINING by compare-and-set, which fails if a session was placed meanwhile."""
    return tick.is_lease_held() and move_slot(
        slot=slot, to=SlotState.DRAINING, now=tick.now, reason=reason, unleased=True
    )
