"""Celery tasks of observations. Each task is idempotent and may be skipped."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from observations.services.review_snooze import refresh_due_reviews


@shared_task
def refresh_reviews() -> None:
    """Reassess definitions that are due."""
    refresh_due_reviews(now=timezone.now())
