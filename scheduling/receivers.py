"""Receivers of session events: create, release and requeue reservations."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.dispatch import receiver

from lcm.domain.lifecycle import FINAL, SessionStatus
from lcm.events.signals import session_created, sessions_moved
from lcm.models import LabletSession
from scheduling.models import Phase
from scheduling.services.port_allocation import mark_ports_leaked
from scheduling.services.reservations import (
    end_session_reservations,
    requeue_reservations,
    reserve_for_session,
)

S = SessionStatus
HAD_A_LAB = (S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING)


@receiver(session_created)
def reserve(sender: Any, session: LabletSession, now: datetime, **kwargs: Any) -> None:
    reserve_for_session(session=session, now=now)


@receiver(sessions_moved)
def update_reservations(
    sender: Any,
    session_ids: list[UUID],
    old: SessionStatus,
    new: SessionStatus,
    now: datetime,
    lab_removed: bool,
    **kwargs: Any,
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
