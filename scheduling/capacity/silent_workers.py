"""Workers without heartbeat: LCM probes them and gives up unreachable ones."""

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

# Without a heartbeat for this long, LCM probes a READY worker.
SILENCE = timedelta(minutes=5)
# LCM gives up a worker after this many failed probes over this time.
FAILED_PROBES = 3
UNANSWERED = timedelta(minutes=5)
# If several are silent and none answers, more likely LCM cannot reach them and their labs still run.
UNREACHABLE = timedelta(minutes=30)


def is_silent(slot: Slot, now: datetime) -> bool:
    """Return whether the slot is READY and has had no heartbeat for too long."""
    last_contact = slot.last_heartbeat or slot.last_state_change
    return slot.state == SlotState.READY and last_contact <= now - SILENCE


def is_pool_unreachable(probed: Collection[Health]) -> bool:
    """Return whether several silent workers of a pool were probed and none answered."""
    return len(probed) > 1 and not any(health.ready for health in probed)


def check_silent_worker(slot: Slot, health: Health | None, *, together: bool, now: datetime) -> bool:
    """Return whether a silent worker is given up, by its probe. If it answers, only its controller is gone.

    `together`: no probed worker answered; the worker then gets more time, until its next heartbeat.
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
    """Give up the slot unless a heartbeat arrived meanwhile, then fail its sessions."""
    reason = remove_unstorable(f"its worker no longer responds: {health.reason}")[:500]
    still = {"last_heartbeat": slot.last_heartbeat}
    if not move_slot(slot=slot, to=SlotState.TERMINATING, now=now, reason=reason, still=still):
        return False
    fail_sessions_on_slot(slot=slot, reason=reason, now=now)
    return True


def _note(slot: Slot, **fields: Any) -> None:
    """Record the probe, unless a heartbeat arrived meanwhile."""
    same = Slot.objects.filter(pk=slot.pk, state=SlotState.READY, last_heartbeat=slot.last_heartbeat)
    same.update(**fields)
