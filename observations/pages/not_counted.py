"""Texts that state why a session is excluded from the aggregate."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils.translation import gettext as _

from lcm.web.wording import duration_text
from observations.models import NotCountedReason, SessionObservation


def not_counted_text(row: SessionObservation) -> str:
    """Return the reason, with the uptime of the nodes if that was too short; empty if the session counts."""
    if row.not_counted_reason != NotCountedReason.TOO_SHORT:
        return str(row.get_not_counted_reason_display())
    least = settings.CONFIG["SAMPLE_MIN_UPTIME_SECONDS"]
    if row.booted_seconds >= least:
        text = _("The nodes were up too briefly (up for %(duration)s, too short by the rule at that time)")
    else:
        text = _("The nodes were up too briefly (up for %(duration)s, at least %(least)s needed)")
    return text % {
        "duration": duration_text(timedelta(seconds=row.booted_seconds)),
        "least": duration_text(timedelta(seconds=least)),
    }
