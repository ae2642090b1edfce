"""Sessions on slots that are interrupted or lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.services.changelog import log_change
from lcm.services.session_transitions import transition_sessions
from lcm.services.sessions import create_session
from scheduling.models import Phase, Reservation, Slot
from scheduling.services.reservations import end_reservations

NOT_STARTED = (S.SCHEDULED, S.INSTANTIATING)
STARTED = (S.READY, S.RUNNING, S.COLLECTING)
# A session that an interruption ends in one of these is requested again. Collecting sessions end anyway.
REQUESTED_AGAIN = (S.READY, S.RUNNING)


def stop_sessions_on_slot(*, slot: Slot, deadline: datetime, reason: str, now: datetime) -> int:
    """Move the sessions away from a slot that terminates at the deadline; return how many moved.

    Sessions that have not started return to the queue, and ready sessions stop. Running sessions use the
    remaining time: they are collected, and so observed, when just enough time is left for the teardown.

    Each status has its own transaction: releasing leases and then locking more sessions in one transaction
    could deadlock with a cancellation.
    """
    moved = _move(slot, NOT_STARTED, S.PENDING, reason, now) + _move(
        slot, (S.READY,), S.STOPPING, reason, now
    )
    if now >= deadline - timedelta(seconds=settings.CONFIG["INTERRUPTION_TEARDOWN"]):
        moved += _move(slot, (S.RUNNING,), S.COLLECTING, reason, now)
    return moved


def fail_sessions_on_slot(*, slot: Slot, reason: str, now: datetime) -> int:
    """Fail the sessions of a lost slot: its labs no longer run."""
    moved = _move(slot, NOT_STARTED, S.PENDING, reason, now) + _move(slot, STARTED, S.STOPPING, reason, now)
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
        move = partial(transition_sessions, old=old, to=to, actor=SYSTEM, now=now, reason=reason)
        if not sessions:
            continue
        if slot.interruption_deadline is None or old not in REQUESTED_AGAIN:
            moved += len(move(sessions=sessions))
            continue
        # One transaction for each session: LCM requests it again exactly once. A transaction for several
        # would lock their definitions and memberships in an order that can deadlock with other requests.
        for session in sessions:
            with transaction.atomic():
                for interrupted in move(sessions=[session]):
                    message = _request_again(interrupted, lost_at=slot.interruption_deadline, now=now)
                    log_change(
                        interrupted, actor=SYSTEM, event="session.interrupted", message=message, now=now
                    )
                    moved += 1
    return moved


def _request_again(session: LabletSession, *, lost_at: datetime, now: datetime) -> str:
    """Request the rest of an interrupted session's timeslot, if its definition may be interrupted.

    Return what happened, for the change log.

    The lifecycle does not requeue a session whose lab was used, so this is a new session. Its reservation is
    as old as the interrupted one, so it keeps the position in the queue.
    """
    # Read again: the session may have been extended after it was read, until it was moved.
    session.refresh_from_db(fields=["ends_at"])
    if not session.definition.preemptible or session.ends_at <= max(lost_at, now):
        return f"{session} was interrupted and is not requested again"
    held = Reservation.objects.filter(session=session, phase=Phase.READY).order_by("-attempt").first()
    try:
        replacement = create_session(
            definition=session.definition,
            owner=session.owner,
            project=session.project,
            starts_at=now,
            ends_at=session.ends_at,
            priority=session.priority,
            pool=session.pool,
            actor=SYSTEM,
            now=now,
            reason=f"for the rest of the timeslot of {session}, which was interrupted",
        )
    except InvalidInput as error:
        return f"{session} was interrupted and cannot be requested again: {error.message}"
    if held is not None:
        claim = Reservation.objects.filter(session=replacement)
        claim.update(created_at=held.created_at, joins_queue_at=held.joins_queue_at)
    return f"{session} was interrupted and is requested again as {replacement}"


def _sessions_on(slot: Slot) -> list[UUID]:
    """Return sessions with any part on the slot: a spread session is moved as a whole."""
    claims = Reservation.objects.filter(Q(slot=slot) | Q(parts__slot=slot), phase=Phase.READY)
    return [key for key in claims.values_list("session_id", flat=True).distinct() if key]
