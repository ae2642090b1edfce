"""Usage by day and by subject, for charts, tables and exports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Case, Count, QuerySet, Sum, Value, When

from fairshare.models import UsageBucket, UsageCheck
from fairshare.selectors.names import names_of
from fairshare.selectors.trees import SubjectKey
from fairshare.units import RESOURCES, hours
from lcm.web.charts.columns import ByDay, Series

KINDS = 4


def buckets(
    *, pool: str = "", level: str = "", first: date | None = None, last: date | None = None
) -> QuerySet[UsageBucket]:
    rows = UsageBucket.objects.all()
    for name, value in (("pool", pool), ("level", level), ("day__gte", first), ("day__lte", last)):
        if value:
            rows = rows.filter(**{name: value})
    return rows


# Who used how much of a resource, the most first.
Top = list[tuple[SubjectKey, int]]


def top_of(rows: QuerySet[UsageBucket], resource: str) -> Top:
    """As many as have a colour of their own in a chart, and one more; empty where there are no buckets."""
    grouped = rows.order_by().values_list("level", "subject_id", "parent_id").annotate(used=Sum(resource))
    found = grouped.order_by("-used", "subject_id")[: KINDS + 1]
    return [(SubjectKey(*key), used) for *key, used in found]


def usage_by_day(rows: QuerySet[UsageBucket], resource: str, top: Top, first: date, last: date) -> ByDay:
    """One resource, stacked by the subjects that used most of it and the others together."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    ranked = [key for key, used in top if used]
    if not ranked:
        return ByDay(days, [])
    chosen = ranked[:KINDS]
    names = [*(str(name) for name in names_of(chosen).values()), "others"][: len(ranked)]
    whose = Case(
        *(When(subject_id=key.subject, parent_id=key.parent, then=Value(n)) for n, key in enumerate(chosen)),
        default=Value(len(chosen)),
    )
    sums: list[dict[date, float]] = [{} for _ in range(len(chosen) + 1)]
    per_day = rows.order_by().annotate(whose=whose).values_list("whose", "day").annotate(Sum(resource))
    for number, day, used in per_day:
        sums[number][day] = hours(used)
    return ByDay(
        days,
        [
            Series(name, [found.get(day, 0.0) for day in days])
            for name, found in zip(names, sums, strict=False)
        ],
    )


@dataclass(frozen=True)
class Used:
    """A subject's hours in some days, by resource, and its part of the chosen one."""

    key: SubjectKey
    name: str
    amounts: dict[str, float]
    part: float


@dataclass(frozen=True)
class BySubject:
    """Who used most, how many there are, and the most of them for a chart."""

    subjects: list[Used]
    count: int
    top: Top


def usage_by_subject(rows: QuerySet[UsageBucket], resource: str, limit: int) -> BySubject:
    """Who used most of a resource."""
    sums = {f"sum_{name}": Sum(name) for name in RESOURCES}
    grouped = rows.order_by().values("level", "subject_id", "parent_id").annotate(**sums)
    all_of_them = grouped.aggregate(whole=Sum(f"sum_{resource}"), count=Count("*"))
    whole = all_of_them["whole"] or 0
    found: list[Any] = list(grouped.order_by(f"-sum_{resource}", "subject_id")[:limit])
    keys = [SubjectKey(row["level"], row["subject_id"], row["parent_id"]) for row in found]
    names = names_of(keys)
    subjects = [
        Used(
            key,
            str(names[key]),
            {name: hours(row[f"sum_{name}"]) for name in RESOURCES},
            row[f"sum_{resource}"] / whole if whole else 0.0,
        )
        for key, row in zip(keys, found, strict=True)
    ]
    top = [(key, row[f"sum_{resource}"]) for key, row in zip(keys, found, strict=True)]
    return BySubject(subjects, all_of_them["count"], top[: KINDS + 1])


def last_check() -> UsageCheck | None:
    return UsageCheck.objects.order_by("-checked_at", "-pk").first()
