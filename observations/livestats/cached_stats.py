"""Cached live statistics, shared by all pages and API calls, with the last known values as fallback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from observations.livestats.client import PrometheusClient
from observations.livestats.live_stats import LiveStats, query_kernel_live_stats
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.promql import Queries
from observations.livestats.responses import PrometheusError
from observations.livestats.single_flight import cache_key, load_once
from observations.livestats.states import LiveState

# Waiting for another caller's response takes slightly longer than the query itself.
MARGIN_SECONDS = 1.0


def kernel_live_stats(kernel_ids: Iterable[UUID | str]) -> LiveStats:
    """Return live statistics of kernels; if Prometheus is down, the last known ones, marked as failed."""
    options = PrometheusSettings.from_settings()
    ids = sorted({str(each) for each in kernel_ids})

    def load(before: LiveStats | None) -> LiveStats:
        return _with_last_known(asyncio.run(query_kernel_live_stats(ids, options)), before)

    if not options.is_configured or not ids:
        return load(None)
    return load_once(
        cache_key("kernels", ids), load, fresh=options.cache, patience=options.timeout + MARGIN_SECONDS
    )


def _with_last_known(found: LiveStats, before: LiveStats | None) -> LiveStats:
    """Fill failed kernels with their last known figures and the time they were read."""
    if before is None or found.state is not LiveState.FAILED:
        return found
    kernels = dict(found.kernels)
    for kernel, stats in found.kernels.items():
        if stats.state is LiveState.FAILED and kernel in before.kernels:
            old = before.kernels[kernel]
            kernels[kernel] = replace(stats, metrics=old.metrics, observed_at=old.observed_at)
    return replace(found, kernels=kernels)


@dataclass(frozen=True)
class BusiestResult:
    """Usage of the busiest sessions, and when it was read."""

    state: LiveState
    by_session: dict[UUID, float] = field(default_factory=dict)
    error: str = ""
    read_at: datetime | None = None


def busiest(metric: str, count: int) -> BusiestResult:
    """Return the sessions that use most of a metric, in one small query."""
    options = PrometheusSettings.from_settings()
    if not options.is_configured:
        return BusiestResult(LiveState.NOT_CONFIGURED)

    def load(before: BusiestResult | None) -> BusiestResult:
        try:
            return asyncio.run(_query_busiest(options, metric, count))
        except PrometheusError as error:
            return replace(
                before or BusiestResult(LiveState.FAILED), state=LiveState.FAILED, error=str(error)
            )

    key = cache_key("busiest", [metric, count])
    return load_once(key, load, fresh=options.cache, patience=options.timeout + MARGIN_SECONDS)


async def _query_busiest(options: PrometheusSettings, metric: str, count: int) -> BusiestResult:
    queries = Queries(window=options.window, labels=options.labels)
    async with PrometheusClient(options) as client:
        result = await client.query(queries.busiest(metric, count))
    found: dict[UUID, float] = {}
    for sample in result.samples:
        try:
            found[UUID(sample.labels["session_id"])] = sample.value
        except (KeyError, ValueError):
            continue
    return BusiestResult(LiveState.OK if found else LiveState.ABSENT, found, read_at=datetime.now(UTC))
