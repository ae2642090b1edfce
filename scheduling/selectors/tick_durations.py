"""Durations of ticks for a chart, grouped by time in the database."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Case, Count, IntegerField, Max, Sum, Value, When
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from lcm.db.time_buckets import TimeBucket
from lcm.web.charts.series import MOST_NAMED
from scheduling.models import TickRun

# Steps of a chart; with the named pools and the rest it has at most nine times as many points.
MOST_OF_POOL = 60
REST = -1


@dataclass(frozen=True)
class TickPoint:
    """The ticks of a pool in the step from `at`; `pool` is empty for the other pools together."""

    at: datetime
    pool: str
    slowest_ms: int
    ticks: int


@dataclass(frozen=True)
class TickDurations:
    """Recorded ticks of a range; `others` is the number of pools without points of their own."""

    points: list[TickPoint]
    slowest_ms: int
    placed: int
    last: tuple[str, int] | None
    others: int = 0


def tick_durations(start: datetime, end: datetime, *, step: timedelta) -> TickDurations:
    """Return the slowest tick of each pool and step; of many pools, the slowest by name."""
    rows = TickRun.objects.filter(started_at__gte=start, started_at__lte=end).order_by()
    placed = Sum(Cast(KT("counts__placed"), IntegerField()))
    by_pool = rows.values_list("pool_id", "pool__name").annotate(Max("duration_ms"), placed=placed)
    pools = sorted(by_pool, key=lambda row: (-row[2], row[1]))
    if not pools:
        return TickDurations([], 0, 0, None)
    last = rows.order_by("-started_at", "-pk").values_list("pool__name", "duration_ms")[0]
    named = {pool: name for pool, name, *_rest in pools[:MOST_NAMED]}
    return TickDurations(
        points=_points(start, end, step, named),
        slowest_ms=pools[0][2],
        placed=sum(row[3] or 0 for row in pools),
        last=last,
        others=len(pools) - len(named),
    )


def _points(start: datetime, end: datetime, step: timedelta, named: dict[UUID, str]) -> list[TickPoint]:
    """Return at most one point for each step and named pool, and one for each step and the rest."""
    keys = list(named)
    series = Case(
        *(When(pool=key, then=Value(number)) for number, key in enumerate(keys)), default=Value(REST)
    )
    seconds = int(step.total_seconds())
    origin = datetime.fromtimestamp(int(start.timestamp()) // seconds * seconds, start.tzinfo)
    grouped = (
        TickRun.objects.filter(started_at__gte=start, started_at__lte=end)
        .order_by()
        .annotate(series=series, bucket=TimeBucket("started_at", origin=origin, step=step))
        .values_list("series", "bucket")
        .annotate(Max("duration_ms"), Count("pk"))
    )
    return sorted(
        (
            TickPoint(origin + bucket * step, "" if number == REST else named[keys[number]], slowest, count)
            for number, bucket, slowest, count in grouped
        ),
        key=lambda point: (point.at, point.pool),
    )
