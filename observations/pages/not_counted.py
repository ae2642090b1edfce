"""Texts that state why a session is excluded from the aggregate."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from lcm.web.wording import duration_text
from observations.models import NotCountedReason, SessionObservation


def not_counted_text(row: SessionObservation) -> str:
    """Return the reason, with the uptime of the nodes if that was too short; empty if the session counts."""
    words: str = row.get_not_counted_reason_display()
    if row.not_counted_reason != NotCountedReason.TOO_SHORT:
        return words
    return f"{words} ({_up_for(row.booted_seconds)})"


def _up_for(seconds: int) -> str:
    least = settings.CONFIG["SAMPLE_MIN_UPTIME_SECONDS"]
    up = duration_text(timedelta(seconds=seconds))
    if seconds >= least:
        return _("up for %(duration)s, too short by the rule at that time") % {"duration": up}
    return _("up for %(duration)s, %(least)s count") % {
        "duration": up,
        "least": duration_text(timedelta(seconds=least)),
    }
