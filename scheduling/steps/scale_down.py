"""Step 6: slots that nobody has used for a while."""

from __future__ import annotations

from datetime import timedelta

from scheduling.models import Slot, SlotState
from scheduling.selectors.capacity import SERVING, serving_slots
from scheduling.services.slots import move_slot
from scheduling.steps.context import TickContext


def drain_idle(tick: TickContext) -> None:
    """Drain what is idle for too long, never below the minimum and the warm slots, never one with a lease."""
    pool = tick.pool
    serving = serving_slots(pool, now=tick.now)
    surplus = min(serving.ready - pool.floor, serving.idle - pool.warm_slots)
    if surplus <= 0:
        return
    since = tick.now - timedelta(seconds=pool.idle_seconds)
    idle = (
        Slot.objects.select_related("pool")
        .filter(SERVING, pool=pool, state=SlotState.READY, lease_count=0, idle_since__lte=since)
        .order_by("-number")
    )
    for slot in idle[:surplus]:
        tick.count("drained", _drain(slot, tick))


def _drain(slot: Slot, tick: TickContext) -> bool:
    """READY without a lease → DRAINING is one compare-and-set, in which a placement is noticed."""
    return move_slot(slot=slot, to=SlotState.DRAINING, now=tick.now, reason="idle", unleased=True)
