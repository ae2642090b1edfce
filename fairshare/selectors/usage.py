"""Usage by day and by subject, for charts, tables and exports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Case, Count, Q, QuerySet, Sum, Value, When, Window

from fairshare.arithmetic.units import RESOURCES, hours
from fairshare.models import UsageBucket, UsageCheck
from fairshare.models.levels import Level
from fairshare.selectors.subject_names import names_of
from fairshare.selectors.trees import SubjectKey
from lcm.web.charts.columns import ByDay, Series

KINDS = 4


@dataclass(frozen=True)
class Period:
    """Some days, in one pool or all; what all used comes from the buckets of domains, which are few."""

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


# Who used how much of a resource, the most first.
Top = list[tuple[SubjectKey, int]]


def top_domains(period: Period, resource: str) -> Top:
    """As many as have a colour of their own in a chart, and one more; empty where there are no buckets."""
    rows = period.buckets(Level.DOMAIN).order_by()
    grouped = rows.values_list("level", "subject_id", "parent_id").annotate(used=Sum(resource))
    found = grouped.order_by("-used", "subject_id")[: KINDS + 1]
    return [(SubjectKey(*key), used) for *key, used in found]


def usage_by_day(period: Period, level: str, resource: str, top: Top) -> ByDay:
    """One resource, stacked by the subjects of a level that used most of it and the others together.

    They are in the order of their names, so that each has the same colour wherever the same are shown.
    """
    days = period.days
    ranked = [key for key, used in top if used]
    if not ranked:
        return ByDay(days, [])
    found = names_of(ranked[:KINDS])
    chosen = sorted(found, key=lambda key: str(found[key]).casefold())
    names = [*(str(found[key]) for key in chosen), "others"][: len(ranked)]
    mine = [Q(level=level, subject_id=key.subject, parent_id=key.parent) for key in chosen]
    whose = Case(*(When(each, then=Value(n)) for n, each in enumerate(mine)), default=Value(len(chosen)))
    rows = period.buckets().filter(reduce(or_, mine, Q(level=Level.DOMAIN))).order_by()
    sums: list[dict[date, int]] = [{} for _ in range(len(chosen) + 1)]
    for number, day, used in rows.annotate(whose=whose).values_list("whose", "day").annotate(Sum(resource)):
        sums[number][day] = used
    if level != Level.DOMAIN:
        *parts, whole = sums
        sums[-1] = {day: max(whole[day] - sum(part.get(day, 0) for part in parts), 0) for day in whole}
    return ByDay(
        days,
        [
            Series(name, [hours(used.get(day, 0)) for day in days])
            for name, used in zip(names, sums, strict=False)
        ],
    )


@dataclass(frozen=True)
class SubjectUsage:
    """A subject's hours in some days, by resource, and its part of the chosen one."""

    key: SubjectKey
    name: str
    amounts: dict[str, float]
    part: float


@dataclass(frozen=True)
class TopSubjects:
    """Who used most, how many there are, and the most of them for a chart."""

    subjects: list[SubjectUsage]
    count: int
    top: Top


def usage_by_subject(period: Period, level: str, resource: str, limit: int) -> TopSubjects:
    """Who of a level used most of a resource."""
    sums = {f"sum_{name}": Sum(name) for name in RESOURCES}
    rows = period.buckets(level).order_by().values("level", "subject_id", "parent_id")
    grouped = rows.annotate(**sums, subjects=Window(Count("*")))
    found: list[Any] = list(grouped.order_by(f"-sum_{resource}", "subject_id")[:limit])
    whole = period.buckets(Level.DOMAIN).aggregate(whole=Sum(resource))["whole"] or 0
    keys = [SubjectKey(row["level"], row["subject_id"], row["parent_id"]) for row in found]
    names = names_of(keys)
    subjects = [
        SubjectUsage(
            key,
            str(names[key]),
            {name: hours(row[f"sum_{name}"]) for name in RESOURCES},
            row[f"sum_{resource}"] / whole if whole else 0.0,
        )
        for key, row in zip(keys, found, strict=True)
    ]
    top = [(key, row[f"sum_{resource}"]) for key, row in zip(keys, found, strict=True)]
    return TopSubjects(subjects, found[0]["subjects"] if found else 0, top[: KINDS + 1])


def last_check() -> UsageCheck | None:
    return UsageCheck.objects.order_by("-checked_at", "-pk").first()
