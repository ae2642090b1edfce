"""Which sessions use most of something: one small query over all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import UUID

from observations.livestats.cached_stats import MARGIN_SECONDS
from observations.livestats.client import PrometheusClient
from observations.livestats.prometheus_settings import Options
from observations.livestats.promql import Queries
from observations.livestats.responses import PrometheusError
from observations.livestats.single_flight import key_of, shared
from observations.livestats.states import State


@dataclass(frozen=True)
class Ranking:
    """How much each of the busiest uses, and when that was read."""

    state: State
    by_session: dict[UUID, float] = field(default_factory=dict)
    error: str = ""
    read_at: datetime | None = None


def busiest(metric: str, count: int) -> Ranking:
    options = Options.from_settings()
    if not options.is_configured:
        return Ranking(State.NOT_CONFIGURED)

    def load(before: Ranking | None) -> Ranking:
        try:
            return asyncio.run(_query(options, metric, count))
        except PrometheusError as error:
            return replace(before or Ranking(State.FAILED), state=State.FAILED, error=str(error))

    key = key_of("busiest", [metric, count])
    return shared(key, load, fresh=options.cache, patience=options.timeout + MARGIN_SECONDS)


async def _query(options: Options, metric: str, count: int) -> Ranking:
    queries = Queries(window=options.window, labels=options.labels)
    async with PrometheusClient(options) as client:
        answer = await client.query(queries.busiest(metric, count))
    found: dict[UUID, float] = {}
    for sample in answer.samples:
        try:
            found[UUID(sample.labels["session_id"])] = sample.value
        except (KeyError, ValueError):
            continue
    return Ranking(State.OK if found else State.ABSENT, found, read_at=datetime.now(UTC))
