"""The sessions that use most of a resource, in one small query."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from observations.livestats.cached_stats import MARGIN_SECONDS
from observations.livestats.client import PrometheusClient
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.promql import Queries
from observations.livestats.responses import PrometheusError
from observations.livestats.single_flight import cache_key, load_once
from observations.livestats.states import LiveState


@dataclass(frozen=True)
class BusiestResult:
    """Usage of the busiest sessions, and when it was read."""

    state: LiveState
    by_session: dict[UUID, float] = field(default_factory=dict)
    error: str = ""
    read_at: datetime | None = None


def busiest(metric: str, count: int) -> BusiestResult:
    options = PrometheusSettings.from_settings()
    if not options.is_configured:
        return BusiestResult(LiveState.NOT_CONFIGURED)

    def load(before: BusiestResult | None) -> BusiestResult:
        try:
            return asyncio.run(_query(options, metric, count))
        except PrometheusError as error:
            return replace(
                before or BusiestResult(LiveState.FAILED), state=LiveState.FAILED, error=str(error)
            )

    key = cache_key("busiest", [metric, count])
    return load_once(key, load, fresh=options.cache, patience=options.timeout + MARGIN_SECONDS)


async def _query(options: PrometheusSettings, metric: str, count: int) -> BusiestResult:
    queries = Queries(window=options.window, labels=options.labels)
    async with PrometheusClient(options) as client:
        answer = await client.query(queries.busiest(metric, count))
    found: dict[UUID, float] = {}
    for sample in answer.samples:
        try:
            found[UUID(sample.labels["session_id"])] = sample.value
        except (KeyError, ValueError):
            continue
    return BusiestResult(LiveState.OK if found else LiveState.ABSENT, found, read_at=datetime.now(UTC))
