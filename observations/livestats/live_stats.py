"""Queries for the live statistics of many kernels."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from lcm.domain.messages import Message, gettext
from observations.livestats.catalogue import MetricKind
from observations.livestats.client import PrometheusClient
from observations.livestats.kernel_stats import KernelStats, merge
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.promql import Queries
from observations.livestats.responses import PrometheusError, QueryResult, SeriesSample
from observations.livestats.states import LiveState, state_of, state_of_all

logger = logging.getLogger(__name__)

# Query order.
KINDS = (MetricKind.GAUGE, MetricKind.DIFF, MetricKind.RATE)
KIND_NAMES = {
    MetricKind.GAUGE: gettext("usage"),
    MetricKind.DIFF: gettext("disk traffic"),
    MetricKind.RATE: gettext("network traffic"),
}


@dataclass(frozen=True)
class LiveStats:
    """Statistics of each requested kernel; `missing` names the kinds of query that failed."""

    kernels: dict[str, KernelStats]
    requested_at: datetime
    missing: tuple[Message, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    dropped: int = 0

    @property
    def state(self) -> LiveState:
        return state_of_all(kernel.state for kernel in self.kernels.values())

    @property
    def observed_at(self) -> datetime | None:
        """Return when the oldest figure was read."""
        return min((each.observed_at for each in self.kernels.values() if each.observed_at), default=None)


@dataclass
class KernelChunk:
    """A subset of the kernels and the results of their queries."""

    kernel_ids: Sequence[str]
    samples: list[SeriesSample] = field(default_factory=list)
    failed: dict[MetricKind, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    dropped: int = 0

    def take(self, kind: MetricKind, result: QueryResult | PrometheusError) -> None:
        if isinstance(result, PrometheusError):
            self.failed[kind] = str(result)
            return
        self.samples += result.samples
        self.warnings += result.warnings
        self.dropped += result.dropped


async def query_kernel_live_stats(
    kernel_ids: Iterable[UUID | str], options: PrometheusSettings, *, client: PrometheusClient | None = None
) -> LiveStats:
    """Query gauges, growth and rates of kernels; every ID is in the result, even if its query failed."""
    ids = list(dict.fromkeys(str(each) for each in kernel_ids))
    if not options.is_configured:
        return empty_stats(ids, LiveState.NOT_CONFIGURED)
    if client is not None:
        chunks = await _query_chunks(client, options, ids)
    else:
        async with PrometheusClient(options) as own:
            chunks = await _query_chunks(own, options, ids)
    return _combine(chunks, options, datetime.now(UTC))


def empty_stats(kernel_ids: Iterable[str], state: LiveState) -> LiveStats:
    return LiveStats({each: KernelStats(state) for each in kernel_ids}, datetime.now(UTC))


async def _query_chunks(
    client: PrometheusClient, options: PrometheusSettings, ids: Sequence[str]
) -> list[KernelChunk]:
    """Run the queries of all chunks concurrently."""
    queries = Queries(window=options.window, labels=options.labels)
    chunks = [KernelChunk(ids[start : start + options.chunk]) for start in range(0, len(ids), options.chunk)]
    texts = {MetricKind.GAUGE: queries.gauges, MetricKind.DIFF: queries.diffs, MetricKind.RATE: queries.rates}
    requests = [(chunk, kind) for chunk in chunks for kind in KINDS]
    results = await asyncio.gather(
        *(try_query(client.query(texts[kind](chunk.kernel_ids))) for chunk, kind in requests)
    )
    for (chunk, kind), result in zip(requests, results, strict=True):
        chunk.take(kind, result)
    return chunks


async def try_query(query: Awaitable[QueryResult]) -> QueryResult | PrometheusError:
    try:
        return await query
    except PrometheusError as error:
        return error


def _combine(chunks: Sequence[KernelChunk], options: PrometheusSettings, now: datetime) -> LiveStats:
    kernels: dict[str, KernelStats] = {}
    dropped = 0
    for chunk in chunks:
        merged = merge(chunk.samples, window=options.window)
        dropped += chunk.dropped + merged.dropped
        for kernel in chunk.kernel_ids:
            metrics, seen = merged.metrics.get(kernel, {}), merged.observed_at.get(kernel)
            state = state_of(
                has_figures=bool(metrics),
                age=(now - seen).total_seconds() if seen else None,
                failed=len(chunk.failed),
                queries=len(KINDS),
                scrape_interval=options.scrape_interval,
            )
            kernels[kernel] = KernelStats(state, metrics, seen)
    failed = {kind for chunk in chunks for kind in chunk.failed}
    problems = dict.fromkeys(error for chunk in chunks for error in chunk.failed.values())
    if problems:
        logger.warning("live_stats_failed", extra={"problems": list(problems)[:3], "queries": sorted(failed)})
    return LiveStats(
        kernels,
        now,
        missing=tuple(KIND_NAMES[kind] for kind in KINDS if kind in failed),
        problems=tuple(problems),
        warnings=tuple(dict.fromkeys(text for chunk in chunks for text in chunk.warnings)),
        dropped=dropped,
    )
