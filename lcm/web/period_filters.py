"""Filters by time: presets such as “today”, and the two ends of a custom period."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

import django_filters as df
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field

from lcm.web.filter_inputs import MomentFilter
from lcm.web.filter_time import filter_now

PERIODS = {
    "1h": _("last hour"),
    "today": _("today"),
    "yesterday": _("yesterday"),
    "24h": _("last 24 hours"),
    "7d": _("last 7 days"),
    "30d": _("last 30 days"),
}
_LENGTH = {
    "1h": timedelta(hours=1),
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}


def period_of(name: str, now: datetime) -> tuple[datetime, datetime | None]:
    """Return start and end of a period; days begin at midnight in the current time zone."""
    if name in _LENGTH:
        return now - _LENGTH[name], None
    today = timezone.localtime(now).date()
    if name == "today":
        return _midnight(today), None
    return _midnight(today - timedelta(days=1)), _midnight(today)


def _midnight(day: Any) -> datetime:
    return datetime.combine(day, time.min, tzinfo=timezone.get_current_timezone())


@extend_schema_field({"type": "string", "enum": list(PERIODS)})
class PeriodFilter(df.ChoiceFilter):
    """Match rows of a period; the API counts days in UTC."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(choices=list(PERIODS.items()), **kwargs)

    def filter(self, qs: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not value:
            return qs
        start, end = period_of(value, filter_now())
        found = qs.filter(**{f"{self.field_name}__gte": start})
        return found.filter(**{f"{self.field_name}__lt": end}) if end else found


def ends_of_period(field_name: str, *, menu: str) -> tuple[MomentFilter, MomentFilter]:
    """Return the filters of a custom period, for the menu of the filter with the presets."""
    return (
        MomentFilter(field_name=field_name, lookup_expr="gte", label=_("From"), menu=menu),
        MomentFilter(field_name=field_name, lookup_expr="lt", label=_("To"), menu=menu),
    )
