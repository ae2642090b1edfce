"""Texts that state why a session is excluded from the aggregate."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from lcm.web.wording import duration_text
from observations.models import NotCountedReason, SessionObservation


def not_counted_text(row: SessionObservation) -> str:
    """Return the reason, with the uptime of the nodes if that was too short; empty if the session counts."""
    words: str = row.get_not_counted_reason_display()
    return (
        f"{words} ({_up_for(row.booted_seconds)})"
        if row.not_counted_reason == NotCountedReason.TOO_SHORT
        else words
    )


def _up_for(seconds: int) -> str:
    least = settings.CONFIG["SAMPLE_MIN_UPTIME_SECONDS"]
    up = f"up for {duration_text(timedelta(seconds=seconds))}"
    if seconds >= least:
        return f"{up}, too short by the rule at that time"
    return f"{up}, {duration_text(timedelta(seconds=least))} count"
