"""Cached live statistics, shared by all pages and API calls, with the last known values as fallback."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from observations.livestats.live_stats import LiveStats, query_kernel_live_stats
from observations.livestats.prometheus_settings import PrometheusSettings
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
