"""Workers without heartbeat: LCM probes them and gives up unreachable ones."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from lcm.domain.actors import SYSTEM
from lcm.domain.storable_text import remove_unstorable
from lcm.services.changelog import log_change
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
# If several are silent and none responds, LCM probably cannot reach them and their labs still run.
UNREACHABLE = timedelta(minutes=30)


def is_silent(slot: Slot, now: datetime) -> bool:
    """Return whether the slot is READY and has had no heartbeat for too long."""
    return slot.state == SlotState.READY and _has_no_contact(slot, now)


def _has_no_contact(slot: Slot, now: datetime) -> bool:
    last_contact = slot.last_heartbeat or slot.last_state_change
    return last_contact <= now - SILENCE


def record_lost_heartbeat(slot: Slot, now: datetime) -> None:
    """Log once that a READY or DRAINING worker sends no heartbeats, unless one arrived meanwhile."""
    if slot.heartbeat_lost_at is not None or not _has_no_contact(slot, now):
        return
    same = Slot.objects.filter(
        pk=slot.pk, state=slot.state, heartbeat_lost_at=None, last_heartbeat=slot.last_heartbeat
    )
    with transaction.atomic():
        if same.update(heartbeat_lost_at=now):
            slot.heartbeat_lost_at = now
            last = slot.last_heartbeat or slot.last_state_change
            message = f"{slot}: no heartbeat since {last.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
            log_change(slot, actor=SYSTEM, event="slot.heartbeat_lost", message=message, now=now)


def is_pool_unreachable(probed: Collection[Health]) -> bool:
    """Return whether several silent workers of a pool were probed and none responded."""
    return len(probed) > 1 and not any(health.ready for health in probed)


def check_silent_worker(slot: Slot, health: Health | None, *, pool_unreachable: bool, now: datetime) -> bool:
    """Record the probe of a silent worker; return whether LCM gives up the worker.

    If the worker responds, only its controller is missing. `pool_unreachable`: no probed worker responded;
    the worker then gets more time, until its next heartbeat.
    """
    if health is None:
        return False
    if health.ready:
        if slot.unanswered_since is not None:
            _record_probe(slot, **PROBE_RESET)
        return False
    since, probes = slot.unanswered_since or now, slot.failed_probes + 1
    pool_unreachable = pool_unreachable or slot.failed_together
    time_limit = UNREACHABLE if pool_unreachable else UNANSWERED
    if probes < FAILED_PROBES or now - since < time_limit:
        _record_probe(slot, unanswered_since=since, failed_probes=probes, failed_together=pool_unreachable)
        return False
    return _give_up(slot, health, now)


def _give_up(slot: Slot, health: Health, now: datetime) -> bool:
    """Give up the slot unless a heartbeat arrived meanwhile, then fail its sessions."""
    reason = remove_unstorable(f"its worker no longer responds: {health.reason}")[:500]
    condition = {"last_heartbeat": slot.last_heartbeat}
    if not move_slot(slot=slot, to=SlotState.TERMINATING, now=now, reason=reason, condition=condition):
        return False
    fail_sessions_on_slot(slot=slot, reason=reason, now=now)
    return True


def _record_probe(slot: Slot, **fields: Any) -> None:
    """Record the probe, unless a heartbeat arrived meanwhile."""
    same = Slot.objects.filter(pk=slot.pk, state=SlotState.READY, last_heartbeat=slot.last_heartbeat)
    same.update(**fields)
