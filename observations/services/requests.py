"""Requests to observe a running session now."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.events.signals import observation_requested
from lcm.models import LabletSession
from lcm.services.changelog import log_change
from observations.models import ObservationRequest, RequestState
from observations.services.observation_validation import CLOCK_SKEW


def request_observation(*, session: LabletSession, actor: Actor, now: datetime) -> ObservationRequest:
    """Request an observation from the session's controller; return the open request if there is one."""
    with transaction.atomic():
        fresh = LabletSession.objects.select_for_update().get(pk=session.pk)
        if fresh.status != SessionStatus.RUNNING:
            text = _("%(session)s is %(status)s; only a running session can be observed.") % {
                "session": session,
                "status": fresh.get_status_display().lower(),
            }
            raise StateConflict(text, details={"status": fresh.status})
        waiting = ObservationRequest.objects.filter(session=session, state=RequestState.OPEN).first()
        if waiting and waiting.state_at(now) == RequestState.OPEN:
            return waiting
        if waiting:
            ObservationRequest.objects.filter(pk=waiting.pk).update(state=RequestState.TIMED_OUT)
        made = ObservationRequest.objects.create(
            session=session,
            actor=actor.label,
            requested_at=now,
            expires_at=now + timedelta(seconds=settings.CONFIG["OBSERVE_TIMEOUT"]),
        )
        message = "Observation requested"
        log_change(session, actor=actor, event="observation_requested", message=message, now=now)
        observation_requested.send(LabletSession, session=session, now=now)
    return made


def answer_requests(*, session_id: UUID, observed_at: datetime, now: datetime) -> None:
    """Complete the open requests made before this observation."""
    asked = ObservationRequest.objects.filter(
        session_id=session_id, state=RequestState.OPEN, requested_at__lte=observed_at + CLOCK_SKEW
    )
    asked.update(state=RequestState.ANSWERED, answered_at=now)
