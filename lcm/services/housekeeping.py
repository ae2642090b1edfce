"""LCM looking after itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.sessions.models import Session

from lcm.models import Heartbeat, IdempotentAnswer

BATCH = 5_000


def record_heartbeat(*, name: str, now: datetime) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"at": now})


def remove_expired(*, now: datetime) -> int:
    """Forget answers to idempotency keys and log-ins whose time is over, a batch at a time."""
    kept = timedelta(hours=settings.CONFIG["IDEMPOTENCY_HOURS"])
    old_answers = IdempotentAnswer.objects.filter(created_at__lt=now - kept).values_list("pk", flat=True)[
        :BATCH
    ]
    removed, _ = IdempotentAnswer.objects.filter(pk__in=list(old_answers)).delete()
    old_logins = Session.objects.filter(expire_date__lt=now).values_list("pk", flat=True)[:BATCH]
    Session.objects.filter(pk__in=list(old_logins)).delete()
    return removed
