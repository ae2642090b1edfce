"""The range of a page with daily usage."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import ngettext

from lcm.web.time_range import TimeRange, kept_days, range_of


def usage_range(request: HttpRequest, *, now: datetime, default: str = "30d") -> TimeRange:
    """Return the days in the address of a page, by default the last 30."""
    days: int = settings.CONFIG["USAGE_BUCKET_DAYS"]
    text = ngettext(
        "LCM keeps usage by UTC day, for %(count)s day.",
        "LCM keeps usage by UTC day, for %(count)s days.",
        days,
    ) % {"count": f"{days:,}"}
    return range_of(request, kept_days(days, text, now=now), default=default)
