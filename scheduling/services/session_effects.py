"""Effects of session transitions on reservations and ports."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from lcm.domain.lifecycle import FINAL, SessionStatus
from lcm.models import LabletSession
from scheduling.capacity.tick_trigger import trigger_tick
from scheduling.models import Phase, Reservation
from scheduling.services.port_allocation import mark_ports_leaked
from scheduling.services.reservations import (
    end_session_reservations,
    requeue_reservations,
)

S = SessionStatus
HAD_A_LAB = (S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING)


def update_priority(*, session: LabletSession, now: datetime) -> None:
    """Move the waiting reservation of a session to its new position in the queue."""
    waiting = Reservation.objects.select_related("pool").filter(session=session, phase=Phase.PENDING)
    for reservation in waiting:
        Reservation.objects.filter(pk=reservation.pk, phase=Phase.PENDING).update(priority=session.priority)
        trigger_tick(reservation.pool)


def update_reservations(
    *,
    session_ids: Sequence[UUID],
    old: SessionStatus,
    new: SessionStatus,
    now: datetime,
    lab_removed: bool,
) -> None:
    """Release the reservations of final sessions; create new ones for sessions that return to the queue.

    The ports of a lab that may still be on its worker stay reserved as leaked until they are observed free.
    """
    if not lab_removed and old in HAD_A_LAB and new in (S.FAILED, S.PENDING):
        mark_ports_leaked(session_ids, now=now)
    if new in FINAL:
        pending = Phase.EXPIRED if new == SessionStatus.EXPIRED else Phase.CANCELLED
        end_session_reservations(
            session_ids=session_ids, pending=pending, now=now, reason=f"session {new.label.lower()}"
        )
    elif new == SessionStatus.PENDING:
        end_session_reservations(
            session_ids=session_ids, pending=Phase.CANCELLED, now=now, reason="back to the queue"
        )
        requeue_reservations(session_ids=session_ids, now=now)
