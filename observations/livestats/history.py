"""Figures over time for charts, limited to the points that a chart can show."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from observations.livestats.cached_stats import MARGIN_SECONDS
from observations.livestats.catalogue import METRICS
from observations.livestats.client import PrometheusClient
from observations.livestats.live_stats import try_query
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.promql import Queries
from observations.livestats.responses import PrometheusError, QueryResult, RangeSeries, kernel_of
from observations.livestats.single_flight import cache_key, load_once
from observations.livestats.states import LiveState

MOST_POINTS = 240
MOST_KERNELS = 500
Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class History:
    """Values by kernel and metric at fixed steps in seconds; `problems` lists the failed queries."""

    state: LiveState
    start: datetime
    end: datetime
    step: float
    kernels: dict[str, dict[str, Points]]
    problems: tuple[str, ...] = ()


def step_for(seconds: float, least: float) -> float:
    """Return the step, in whole scrapes, that shows a duration in at most MOST_POINTS points."""
    return least * max(math.ceil(seconds / (MOST_POINTS - 1) / least), 1)


def kernel_history(kernel_ids: Iterable[UUID | str], *, start: datetime, end: datetime) -> History:
    """Return the history of kernels between two times; callers within the same step share a response."""
    options = PrometheusSettings.from_settings()
    ids = sorted({str(each) for each in kernel_ids})[:MOST_KERNELS]
    span = max((end - start).total_seconds(), options.step)
    step = step_for(span, options.step)
    # Align to whole steps, so that the same time of a kernel is the same point in every response.
    last = math.floor(end.timestamp() / step) * step
    first = last - math.ceil(span / step) * step
    shown = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
    empty = History(LiveState.NOT_CONFIGURED, *shown, step, kernels={})
    if not options.is_configured:
        return empty

    def load(before: History | None) -> History:
        found = asyncio.run(_query(options, ids, empty))
        return before if found.state is LiveState.FAILED and before is not None else found

    key = cache_key("history", [*ids, f"{last - first:.3f}", f"{step:.3f}"])
    return load_once(key, load, fresh=step, patience=options.timeout + MARGIN_SECONDS)


async def _query(options: PrometheusSettings, ids: Sequence[str], empty: History) -> History:
    queries, step = Queries(window=options.window, labels=options.labels), empty.step
    texts = (queries.gauges_over_time(ids), queries.rates(ids, over=max(options.window, step)))
    start, end = empty.start.timestamp(), empty.end.timestamp()
    async with PrometheusClient(options) as client:
        queried = (try_query(client.query_range(text, start=start, end=end, step=step)) for text in texts)
        results = await asyncio.gather(*queried)
    good = [result for result in results if isinstance(result, QueryResult)]
    problems = tuple(dict.fromkeys(str(each) for each in results if isinstance(each, PrometheusError)))
    kernels = _by_kernel([line for result in good for line in result.lines])
    if not good:
        state = LiveState.FAILED
    elif problems:
        state = LiveState.PARTIAL
    else:
        state = LiveState.OK if kernels else LiveState.ABSENT
    return replace(empty, state=state, kernels=kernels, problems=problems)


def _by_kernel(lines: Iterable[RangeSeries]) -> dict[str, dict[str, Points]]:
    """Merge the series of a kernel, for example from a controller and its successor."""
    found: dict[tuple[str, str], dict[float, float]] = {}
    for line in sorted(lines, key=lambda each: each.labels.get("instance", "")):
        kernel, metric = kernel_of(line.labels), line.labels.get("metric", "")
        if kernel is not None and metric in METRICS:
            found.setdefault((kernel, metric), {}).update(line.points)
    kernels: dict[str, dict[str, Points]] = {}
    for (kernel, metric), points in found.items():
        kernels.setdefault(kernel, {})[metric] = tuple(sorted(points.items()))
    return kernels
