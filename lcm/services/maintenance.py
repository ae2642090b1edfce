"""Heartbeats and removal of expired rows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import QuerySet

from lcm.models import Heartbeat, IdempotentResponse, Job
from lcm.services.jobs import expired_jobs

BATCH = 5_000


def record_heartbeat(*, name: str, now: datetime) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"at": now})


def remove_expired(*, now: datetime) -> int:
    """Remove expired idempotent responses, sign-in sessions and jobs; return how many."""
    retention = timedelta(hours=settings.CONFIG["IDEMPOTENCY_HOURS"])
    responses = _remove(IdempotentResponse.objects.filter(created_at__lt=now - retention))
    jobs = _remove(Job.objects.filter(expired_jobs(now=now)))
    return responses + jobs + _remove(Session.objects.filter(expire_date__lt=now))


def _remove(rows: QuerySet[Any]) -> int:
    """Delete in batches to keep transactions short."""
    removed = 0
    while keys := list(rows.values_list("pk", flat=True)[:BATCH]):
        removed += rows.model._default_manager.filter(pk__in=keys).delete()[0]
    return removed
