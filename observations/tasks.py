"""Celery tasks of observations. Each task is idempotent and may be skipped."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from observations.services.presence import announce_silent_controllers
from observations.services.review_snooze import refresh_due_reviews


@shared_task
def detect_events() -> None:
    """Record silent controllers, each once."""
    announce_silent_controllers(now=timezone.now())


@shared_task
def refresh_reviews() -> None:
    """Reassess definitions that are due."""
    refresh_due_reviews(now=timezone.now())
