"""Heartbeats and removal of expired rows."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session

from lcm.db.bulk import delete_in_batches
from lcm.models import Heartbeat, IdempotentResponse, Job
from lcm.services.deliveries import remove_old_deliveries
from lcm.services.jobs import expired_jobs

BATCH = 5_000


def record_heartbeat(*, name: str, now: datetime) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"at": now})


def remove_expired(*, now: datetime) -> int:
    """Remove expired idempotent responses, sign-in sessions, jobs and old deliveries; return how many."""
    retention = timedelta(hours=settings.CONFIG["IDEMPOTENCY_HOURS"])
    responses = delete_in_batches(IdempotentResponse.objects.filter(created_at__lt=now - retention), BATCH)
    jobs = delete_in_batches(Job.objects.filter(expired_jobs(now=now)), BATCH)
    sessions = delete_in_batches(Session.objects.filter(expire_date__lt=now), BATCH)
    return responses + jobs + sessions + remove_old_deliveries(now=now)
