"""Reports about sessions: a lab failed, or the user arrived."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext

from lcm.domain.actors import Actor
from lcm.domain.lifecycle import FINAL, SessionStatus
from lcm.events.change_feed import append_session_changes
from lcm.models import LabletSession
from lcm.services.changelog import log_change
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import wrong_status

S = SessionStatus


def report_failure(
    *, session: LabletSession, reason: str, lab_removed: bool, actor: Actor, now: datetime
) -> LabletSession:
    """Record that a lab failed: queue the session again, stop the lab, or fail the session.

    `lab_removed`: nothing of the lab is left on the worker.
    """
    with transaction.atomic():
        for step in _steps(session, lab_removed=lab_removed):
            session = transition_session(
                session=session, to=step, actor=actor, now=now, reason=reason, lab_removed=lab_removed
            )
    return session


def _steps(session: LabletSession, *, lab_removed: bool) -> tuple[S, ...]:
    match SessionStatus(session.status):
        case S.SCHEDULED | S.INSTANTIATING if not _is_last_attempt(session):
            return (S.PENDING,)
        case S.SCHEDULED:
            return (S.INSTANTIATING, S.FAILED)
        case S.INSTANTIATING:
            return (S.FAILED,)
        case S.READY | S.RUNNING | S.COLLECTING:
            return (S.STOPPING, S.FAILED) if lab_removed else (S.STOPPING,)
        case S.STOPPING:
            return (S.FAILED,)
        case _:
            raise wrong_status(session, gettext("%(session)s is %(status)s and has no lab that could fail."))


def _is_last_attempt(session: LabletSession) -> bool:
    return session.attempt >= int(settings.CONFIG["SESSION_ATTEMPTS"])


def record_arrival(*, session: LabletSession, actor: Actor, now: datetime) -> LabletSession:
    """Record the user's first arrival; a lab that waits for its user can start to run."""
    if session.status in FINAL:
        raise wrong_status(session, gettext("%(session)s is %(status)s, so its user can no longer arrive."))
    with transaction.atomic():
        if LabletSession.objects.filter(pk=session.pk, arrived_at=None).update(arrived_at=now):
            session.arrived_at = now
            message = f"the user of {session} arrived"
            log_change(session, actor=actor, event="session.user_arrived", message=message, now=now)
            append_session_changes([session.pk], now=now)
    return session
