"""Background work of observations: each task may run twice, or not at all, without harm."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from observations.services.review_snooze import refresh_due_reviews


@shared_task
def look_at_reviews() -> None:
    """Bring back what was snoozed, forget waste of long ago, trust old figures less."""
    refresh_due_reviews(now=timezone.now())
