"""Step 2: drain slots with an interruption notice."""

from __future__ import annotations

import logging
from typing import Any

from scheduling.capacity.steps.context import TickContext
from scheduling.models import LIVE, Slot, SlotState
from scheduling.services.lost_slots import fail_sessions_on_slot, stop_sessions_on_slot
from scheduling.services.slots import move_slot

logger = logging.getLogger(__name__)


def interrupt(tick: TickContext) -> None:
    """Drain slots with an interruption notice, in any state; at its deadline the worker is gone."""
    noticed = Slot.objects.select_related("pool").filter(
        pool=tick.pool, state__in=LIVE, interruption_deadline__isnull=False
    )
    failed: list[Exception] = []
    for slot in noticed:
        if not tick.is_lease_held():
            break
        try:
            _take_away(slot, tick)
        except Exception as error:
            logger.exception("interruption_failed", extra={"slot": slot.name})
            failed.append(error)
    if failed:
        raise failed[0]


def _take_away(slot: Slot, tick: TickContext) -> None:
    deadline = slot.interruption_deadline
    assert deadline is not None
    reason = f"its worker is interrupted at {deadline:%H:%M:%S} UTC"
    if deadline <= tick.now:
        fail_sessions_on_slot(slot=slot, reason=reason, now=tick.now)
        _end(slot, tick)
    else:
        stop_sessions_on_slot(slot=slot, deadline=deadline, reason=reason, now=tick.now)
        if slot.state != SlotState.DRAINING:
            _drain(slot, tick)


def _drain(slot: Slot, tick: TickContext) -> None:
    to = SlotState.TERMINATING if slot.state == SlotState.LAUNCHING else SlotState.DRAINING
    deadline: dict[str, Any] = (
        {} if to == SlotState.TERMINATING else {"state_deadline": slot.interruption_deadline}
    )
    if move_slot(slot=slot, to=to, now=tick.now, reason="interruption notice", **deadline):
        tick.count("interrupted", 1)


def _end(slot: Slot, tick: TickContext) -> None:
    if move_slot(slot=slot, to=SlotState.TERMINATING, now=tick.now, reason="interrupted by the provider"):
        tick.count("lost", 1)
