"""Observers of the observations app."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from observations.models import TargetKind
from observations.selectors.discovery import candidates
from observations.services.discovery import keep_targets
from scheduling.coordination.observer import ObserverHandler, ObserverResult


class ServiceDiscoveryObserver(ObserverHandler[TargetKind]):
    """Updates the scrape targets from heartbeats and running kernels."""

    interval_setting = "SERVICE_DISCOVERY_INTERVAL"
    page_size = 1

    @classmethod
    def name(cls) -> str:
        return "service-discovery"

    def fetch_targets(self, now: datetime) -> Iterator[TargetKind]:
        yield from TargetKind

    def execute(self, targets: Sequence[TargetKind], now: datetime) -> ObserverResult:
        """Update each kind of target and count changes; a kind that cannot be read keeps its list."""
        changed = sum(keep_targets(kind, candidates(kind, now), now=now) for kind in targets)
        return ObserverResult(success_count=changed)
