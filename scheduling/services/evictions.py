"""Eviction of running sessions for waiting sessions that get their space."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.services.session_transitions import transition_sessions
from scheduling.models import Phase, Pool, Reservation
from scheduling.placement.framework.cycle import Cycle, VerdictOutcome

# How long space is held for a session before others may use it.
HOLD = timedelta(minutes=15)
STEPS = {S.SCHEDULED: S.PENDING, S.INSTANTIATING: S.STOPPING, S.READY: S.STOPPING, S.RUNNING: S.STOPPING}


def evict_victims(pool: Pool, cycle: Cycle, *, now: datetime) -> int:
    """Hold the space for the waiting session, then stop the victims; return how many were stopped.

    The hold expires: a crash between the two steps blocks the slot only for a while.
    """
    stopped = 0
    held = {verdict.job.id: verdict for verdict in cycle.verdicts if verdict.outcome is VerdictOutcome.HELD}
    by_job: dict[str, list[tuple[UUID, str]]] = {}
    for eviction in cycle.evictions:
        by_job.setdefault(eviction.for_job.id, []).append((UUID(eviction.victim.id), eviction.reason))
    for job_id, verdict in held.items():
        slot = verdict.parts[0].node
        if slot == verdict.job.held_on:
            continue
        claim = Reservation.objects.filter(
            _still_held_on(verdict.job.held_on, now), pk=UUID(job_id), phase=Phase.PENDING
        )
        if claim.update(held_slot_id=UUID(slot), held_until=now + HOLD):
            stopped += sum(_stop(victim, reason, now) for victim, reason in by_job.get(job_id, ()))
    return stopped


def _still_held_on(slot: str, now: datetime) -> Q:
    """Filter reservations whose hold is the same as in the snapshot; a hold of another tick stays."""
    return Q(held_slot_id=UUID(slot)) if slot else Q(held_slot=None) | Q(held_until__lte=now)


def _stop(reservation_id: UUID, reason: str, now: datetime) -> int:
    """Stop through the session lifecycle: a session that has not started returns to the queue."""
    for old, to in STEPS.items():
        sessions = list(LabletSession.objects.filter(reservations=reservation_id, status=old))
        if sessions:
            moved = transition_sessions(
                sessions=sessions, old=old, to=to, actor=SYSTEM, now=now, reason=reason
            )
            return len(moved)
    return 0
