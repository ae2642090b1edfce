"""Background work that belongs to no app: each task may run twice, or not at all, without harm."""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from celery import shared_task
from django.http import QueryDict
from django.utils import timezone

from lcm.actors import Actor
from lcm.lifecycle import CANCEL_TO
from lcm.models import LabletSession
from lcm.services import housekeeping
from lcm.services.feed import forget_entries
from lcm.services.sessions import cancel_sessions
from lcm.web.filters import SessionFilter

CANCEL_BATCH = 500
CANCEL_BATCHES = 20
logger = logging.getLogger(__name__)


@shared_task
def beat_heartbeat() -> None:
    """Prove that beat sends and a worker works: `/readyz` looks at how long ago this was."""
    housekeeping.record_heartbeat(name="beat", now=timezone.now())


@shared_task
def clean_up() -> None:
    housekeeping.remove_expired(now=timezone.now())


@shared_task
def forget_changes() -> None:
    """The change feed is kept for a while; controllers that were away longer list again."""
    forget_entries(now=timezone.now())


@shared_task
def cancel_selected_sessions(
    filter_query: str, asked_at: str, actor_label: str, user_id: str, reason: str
) -> None:
    """Cancel the sessions that matched a list's filters when it was asked for, some thousands a run.

    A second run finds nothing left to do; what is left after a run is done by the next one.
    """
    actor = Actor(label=actor_label, user_id=UUID(user_id))
    filters = SessionFilter(QueryDict(filter_query), queryset=LabletSession.objects.all())
    if not filters.is_valid():
        logger.error("bulk_cancel_refused", extra={"filters": filter_query, "errors": dict(filters.errors)})
        return
    rows = filters.qs.filter(status__in=list(CANCEL_TO), created_at__lte=datetime.fromisoformat(asked_at))
    for _ in range(CANCEL_BATCHES):
        batch = list(rows.order_by("pk")[:CANCEL_BATCH])
        cancelled, _missed = cancel_sessions(sessions=batch, actor=actor, now=timezone.now(), reason=reason)
        if not cancelled:
            return
    cancel_selected_sessions.delay(filter_query, asked_at, actor_label, user_id, reason)
