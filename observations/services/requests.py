"""Requests to observe a running session now."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.lifecycle import SessionStatus
from lcm.events.change_feed import append_session_changes
from lcm.models import LabletSession
from lcm.services.changelog import log_change
from lcm.services.sessions import wrong_status
from observations.models import ObservationRequest, RequestState
from observations.services.observation_validation import CLOCK_SKEW


def request_observation(*, session: LabletSession, actor: Actor, now: datetime) -> ObservationRequest:
    """Request an observation from the session's controller; return the open request if there is one."""
    with transaction.atomic():
        fresh = LabletSession.objects.select_for_update().get(pk=session.pk)
        if fresh.status != SessionStatus.RUNNING:
            raise wrong_status(fresh, _("%(session)s is %(status)s; only a running session can be observed."))
        open_request = ObservationRequest.objects.filter(session=session, state=RequestState.OPEN).first()
        if open_request and open_request.state_at(now) == RequestState.OPEN:
            return open_request
        if open_request:
            ObservationRequest.objects.filter(pk=open_request.pk).update(state=RequestState.TIMED_OUT)
        request = ObservationRequest.objects.create(
            session=session,
            actor=actor.label,
            requested_at=now,
            expires_at=now + timedelta(seconds=settings.CONFIG["OBSERVE_TIMEOUT"]),
        )
        message = "Observation requested"
        log_change(session, actor=actor, event="observation.requested", message=message, now=now)
        append_session_changes([session.pk], now=now)
    return request


def complete_requests(*, session_id: UUID, observed_at: datetime, now: datetime) -> None:
    """Complete the open requests made before this observation."""
    requests = ObservationRequest.objects.filter(
        session_id=session_id, state=RequestState.OPEN, requested_at__lte=observed_at + CLOCK_SKEW
    )
    requests.update(state=RequestState.COMPLETED, completed_at=now)
