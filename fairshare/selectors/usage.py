"""Usage by day and subject for charts, tables and exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Case, Count, Q, QuerySet, Sum, Value, When, Window
from django.utils.translation import gettext as _

from fairshare.arithmetic.units import hours
from fairshare.models import UsageBucket, UsageCheck
from fairshare.models.levels import Level
from fairshare.selectors.subject_names import names_of
from fairshare.selectors.trees import SubjectKey
from lcm.domain.resources import RESOURCE_NAMES
from lcm.web.charts.columns import ByDay
from lcm.web.charts.series import MOST_NAMED, Series, named_count


@dataclass(frozen=True)
class Period:
    """A range of days in one pool or all; totals come from domain buckets, of which there are few."""

    first: date
    last: date
    pool: str = ""

    def buckets(self, level: str = "") -> QuerySet[UsageBucket]:
        rows = UsageBucket.objects.filter(day__gte=self.first, day__lte=self.last)
        rows = rows.filter(pool=self.pool) if self.pool else rows
        return rows.filter(level=level) if level else rows

    @property
    def days(self) -> list[date]:
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]


# Usage of a resource by subject, highest first.
Top = list[tuple[SubjectKey, int]]


def top_domains(period: Period, resource: str) -> Top:
    """Return one domain more than a chart can name; empty if there are no buckets."""
    rows = period.buckets(Level.DOMAIN).order_by()
    grouped = rows.values_list("level", "subject_id", "parent_id").annotate(used=Sum(resource))
    top = grouped.order_by("-used", "subject_id")[: MOST_NAMED + 1]
    return [(SubjectKey(*key), used) for *key, used in top]


def usage_by_day(period: Period, level: str, resource: str, top: Top) -> ByDay:
    """Return one resource by day, stacked by the top subjects of a level and all others together.

    As many subjects are named as are needed for the others not to exceed the largest. They are sorted by
    name, so that each keeps its colour wherever the same subjects are shown.
    """
    days = period.days
    ranked = [key for key, used in top if used]
    if not ranked:
        return ByDay(days, [])
    chosen = ranked[:MOST_NAMED]
    names = names_of(chosen)
    *named, rest = [
        [hours(used.get(day, 0)) for day in days] for used in _sums_by_day(period, level, resource, chosen)
    ]
    count = named_count([sum(values) for values in named], sum(rest))
    series = [
        Series(str(names[key]), values) for key, values in zip(chosen[:count], named[:count], strict=True)
    ]
    series.sort(key=lambda item: item.name.casefold())
    rest = [sum(values) for values in zip(rest, *named[count:], strict=True)]
    if any(rest):
        series.append(Series(_("others"), rest, is_rest=True))
    return ByDay(days, series)


def _sums_by_day(
    period: Period, level: str, resource: str, keys: Sequence[SubjectKey]
) -> list[dict[date, int]]:
    """Return the sums by day of each subject, and last the sums of all others."""
    filters = [Q(level=level, subject_id=key.subject, parent_id=key.parent) for key in keys]
    series = Case(*(When(q, then=Value(n)) for n, q in enumerate(filters)), default=Value(len(filters)))
    rows = period.buckets().filter(reduce(or_, filters, Q(level=Level.DOMAIN))).order_by()
    sums: list[dict[date, int]] = [{} for _ in range(len(filters) + 1)]
    for number, day, used in (
        rows.annotate(series=series).values_list("series", "day").annotate(Sum(resource))
    ):
        sums[number][day] = used
    if level != Level.DOMAIN:
        *parts, totals = sums
        sums[-1] = {day: max(totals[day] - sum(part.get(day, 0) for part in parts), 0) for day in totals}
    return sums


@dataclass(frozen=True)
class SubjectUsage:
    """A subject's hours by resource in a period, and its share of the selected resource."""

    key: SubjectKey
    name: str
    amounts: dict[str, float]
    share: float


@dataclass(frozen=True)
class TopSubjects:
    """Top subjects, the total number of subjects, and the first ones for a chart."""

    subjects: list[SubjectUsage]
    count: int
    top: Top


def usage_by_subject(period: Period, level: str, resource: str, limit: int) -> TopSubjects:
    """Return the subjects of a level that used most of a resource."""
    sums = {f"sum_{name}": Sum(name) for name in RESOURCE_NAMES}
    grouped = period.buckets(level).order_by().values("level", "subject_id", "parent_id")
    grouped = grouped.annotate(**sums, subjects=Window(Count("*")))
    rows: list[Any] = list(grouped.order_by(f"-sum_{resource}", "subject_id")[:limit])
    total = period.buckets(Level.DOMAIN).aggregate(total=Sum(resource))["total"] or 0
    keys = [SubjectKey(row["level"], row["subject_id"], row["parent_id"]) for row in rows]
    names = names_of(keys)
    subjects = [
        SubjectUsage(
            key,
            str(names[key]),
            {name: hours(row[f"sum_{name}"]) for name in RESOURCE_NAMES},
            row[f"sum_{resource}"] / total if total else 0.0,
        )
        for key, row in zip(keys, rows, strict=True)
    ]
    top = [(key, row[f"sum_{resource}"]) for key, row in zip(keys, rows, strict=True)]
    return TopSubjects(subjects, rows[0]["subjects"] if rows else 0, top[: MOST_NAMED + 1])


def last_check() -> UsageCheck | None:
    return UsageCheck.objects.order_by("-checked_at", "-pk").first()
