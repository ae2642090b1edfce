"""Workers that no controller speaks of: asked by us, and done with when they do not answer for long."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from lcm.domain.storable_text import remove_unstorable
from scheduling.capacity.runtimes.base import Health
from scheduling.models import Slot, SlotState
from scheduling.services.lost_slots import fail_sessions_on_slot
from scheduling.services.slots import PROBE_RESET, move_slot

logger = logging.getLogger(__name__)

# Without a heartbeat for so long a READY worker is asked whether it is there.
SILENCE = timedelta(minutes=5)
# One that does not answer is done with after so many questions, over so long a time.
FAILED_PROBES = 3
UNANSWERED = timedelta(minutes=5)
# When none of several answers, it is rather we who cannot reach them, and their labs run on.
UNREACHABLE = timedelta(minutes=30)


def is_silent(slot: Slot, now: datetime) -> bool:
    """READY, and its controller has said nothing of it for long: perhaps nobody is there any more."""
    heard = slot.last_heartbeat or slot.last_state_change
    return slot.state == SlotState.READY and heard <= now - SILENCE


def is_pool_unreachable(asked: Collection[Health]) -> bool:
    """Whether several silent workers of a pool were asked, and not one answered."""
    return len(asked) > 1 and not any(health.ready for health in asked)


def check_silent_worker(slot: Slot, health: Health | None, *, together: bool, now: datetime) -> bool:
    """Whether a silent worker is done with, by its answer. If it answers, only its controller is gone.

    `together`: none of those that were asked answered; then it has more time, until it is heard of again.
    """
    if health is None:
        return False
    if health.ready:
        if slot.unanswered_since is not None:
            _note(slot, **PROBE_RESET)
        return False
    since, probes = slot.unanswered_since or now, slot.failed_probes + 1
    together = together or slot.failed_together
    patience = UNREACHABLE if together else UNANSWERED
    if probes < FAILED_PROBES or now - since < patience:
        _note(slot, unanswered_since=since, failed_probes=probes, failed_together=together)
        return False
    return _give_up(slot, health, now)


def _give_up(slot: Slot, health: Health, now: datetime) -> bool:
    """First the slot, if nobody has heard of it meanwhile; then what was on it."""
    reason = remove_unstorable(f"its worker does not answer any more: {health.reason}")[:500]
    still = {"last_heartbeat": slot.last_heartbeat}
    if not move_slot(slot=slot, to=SlotState.TERMINATING, now=now, reason=reason, still=still):
        return False
    fail_sessions_on_slot(slot=slot, reason=reason, now=now)
    return True


def _note(slot: Slot, **fields: Any) -> None:
    """Unless a heartbeat came meanwhile, which says more."""
    same = Slot.objects.filter(pk=slot.pk, state=SlotState.READY, last_heartbeat=slot.last_heartbeat)
    same.update(**fields)
