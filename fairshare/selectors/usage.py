"""Usage by day and by subject, for charts, tables and exports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import QuerySet, Sum

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


def usage_by_day(rows: QuerySet[UsageBucket], resource: str, first: date, last: date) -> ByDay:
    """One resource, stacked by subject; at most so many subjects have a colour of their own."""
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    top = rows.order_by().values_list("level", "subject_id", "parent_id").annotate(used=Sum(resource))
    ranked = [(SubjectKey(*key), used) for *key, used in top.order_by("-used", "subject_id") if used]
    chosen = [key for key, _ in ranked[:KINDS]]
    sums: dict[SubjectKey | None, dict[date, float]] = {key: {} for key in chosen}
    if len(ranked) > KINDS:
        sums[None] = {}
    per_day = rows.filter(subject_id__in=[key.subject for key in chosen]).order_by()
    for *key, day, used in per_day.values_list("level", "subject_id", "parent_id", "day").annotate(
        Sum(resource)
    ):
        if (found := SubjectKey(*key)) in sums:
            sums[found][day] = hours(used)
    if None in sums:
        whole = dict(rows.order_by().values_list("day").annotate(Sum(resource)))
        for day, used in whole.items():
            sums[None][day] = max(hours(used) - sum(sums[key].get(day, 0.0) for key in chosen), 0.0)
    names = names_of(chosen)
    return ByDay(
        days,
        [
            Series("others" if key is None else str(names[key]), [found.get(day, 0.0) for day in days])
            for key, found in sums.items()
        ],
    )


@dataclass(frozen=True)
class Used:
    """A subject's hours in some days, by resource, and its part of the chosen one."""

    key: SubjectKey
    name: str
    amounts: dict[str, float]
    part: float


def usage_by_subject(rows: QuerySet[UsageBucket], resource: str, limit: int) -> tuple[list[Used], int]:
    """Who used most of a resource, and how many there are."""
    sums = {f"sum_{name}": Sum(name) for name in RESOURCES}
    grouped = rows.order_by().values("level", "subject_id", "parent_id").annotate(**sums)
    whole = rows.aggregate(whole=Sum(resource))["whole"] or 0
    found: list[Any] = list(grouped.order_by(f"-sum_{resource}", "subject_id")[:limit])
    keys = [SubjectKey(row["level"], row["subject_id"], row["parent_id"]) for row in found]
    names = names_of(keys)
    return [
        Used(
            key,
            str(names[key]),
            {name: hours(row[f"sum_{name}"]) for name in RESOURCES},
            row[f"sum_{resource}"] / whole if whole else 0.0,
        )
        for key, row in zip(keys, found, strict=True)
    ], grouped.count()


def last_check() -> UsageCheck | None:
    return UsageCheck.objects.order_by("-checked_at", "-pk").first()
