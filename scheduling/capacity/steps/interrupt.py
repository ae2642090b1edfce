"""Step 2: drain slots with an interruption notice."""

from __future__ import annotations

import logging

from scheduling.capacity.steps.context import TickContext
from scheduling.models import LIVE, Slot, SlotState
from scheduling.services.lost_slots import fail_sessions_on_slot, stop_sessions_on_slot
from scheduling.services.slots import move_slot

NOTICE = "interruption notice"
logger = logging.getLogger(__name__)


def interrupt(tick: TickContext) -> None:
    """Drain slots with an interruption notice, in any state; terminate them at its deadline."""
    noticed = Slot.objects.select_related("pool").filter(
        pool=tick.pool, state__in=LIVE, interruption_deadline__isnull=False
    )
    failed: list[Exception] = []
    for slot in noticed:
        if not tick.is_lease_held():
            break
        try:
            _interrupt_slot(slot, tick)
        except Exception as error:
            logger.exception("interruption_failed", extra={"slot": slot.name})
            failed.append(error)
    if failed:
        raise failed[0]


def _interrupt_slot(slot: Slot, tick: TickContext) -> None:
    deadline = slot.interruption_deadline
    assert deadline is not None
    reason = f"its worker is interrupted at {deadline:%H:%M:%S} UTC"
    if deadline <= tick.now:
        fail_sessions_on_slot(slot=slot, reason=reason, now=tick.now)
        over = "interrupted by the provider"
        tick.count("lost", move_slot(slot=slot, to=SlotState.TERMINATING, now=tick.now, reason=over))
        return
    stop_sessions_on_slot(slot=slot, deadline=deadline, reason=reason, now=tick.now)
    if slot.state == SlotState.LAUNCHING:
        moved = move_slot(slot=slot, to=SlotState.TERMINATING, now=tick.now, reason=NOTICE)
    elif slot.state != SlotState.DRAINING:
        to = SlotState.DRAINING
        moved = move_slot(slot=slot, to=to, now=tick.now, reason=NOTICE, state_deadline=deadline)
    else:
        return
    tick.count("interrupted", moved)
