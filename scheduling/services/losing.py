"""When a slot is taken away or vanishes: what becomes of the sessions on it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import Q

from lcm.actors import SYSTEM
from lcm.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.services.sessions import move_sessions
from scheduling.models import Phase, Reservation, Slot
from scheduling.services.reservations import end_reservations

NOT_STARTED = (S.SCHEDULED, S.INSTANTIATING)
STARTED = (S.READY, S.RUNNING, S.COLLECTING)


def warn_sessions(*, slot: Slot, reason: str, now: datetime) -> int:
    """The slot will go: those that have not started return to the queue, the others are asked to stop.

    A transaction for each status: one that has given back leases and then locks more sessions would wait for
    a cancellation that waits for it.
    """
    return _move(slot, NOT_STARTED, S.PENDING, reason, now) + _move(slot, STARTED, S.STOPPING, reason, now)


def lose_sessions(*, slot: Slot, reason: str, now: datetime) -> int:
    """The slot is gone, with all that was on it: nothing is left to stop."""
    moved = warn_sessions(slot=slot, reason=reason, now=now)
    _move(slot, (S.STOPPING,), S.FAILED, reason, now)
    bare = Reservation.objects.filter(slot=slot, phase=Phase.READY, session=None)
    end_reservations(
        bare.values_list("pk", flat=True),
        ready=Phase.FAILED,
        pending=Phase.FAILED,
        now=now,
        reason=reason,
    )
    return moved


def _move(slot: Slot, statuses: tuple[S, ...], to: S, reason: str, now: datetime) -> int:
    moved = 0
    for old in statuses:
        sessions = list(LabletSession.objects.filter(pk__in=_sessions_on(slot), status=old))
        if sessions:
            moved += len(
                move_sessions(sessions=sessions, old=old, to=to, actor=SYSTEM, now=now, reason=reason)
            )
    return moved


def _sessions_on(slot: Slot) -> list[UUID]:
    """Those with anything on the slot: a session that is spread goes as a whole."""
    here = Reservation.objects.filter(Q(slot=slot) | Q(parts__slot=slot), phase=Phase.READY)
    return [key for key in here.values_list("session_id", flat=True).distinct() if key]
