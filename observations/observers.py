"""What observations observe."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from observations.models import TargetKind
from observations.selectors.discovery import candidates
from observations.services.discovery import keep_targets
from scheduling.observer import ObserverHandler, ObserverResult


class ServiceDiscoveryObserver(ObserverHandler[TargetKind]):
    """Lists what Prometheus scrapes, from heartbeats and running kernels."""

    interval_setting = "SERVICE_DISCOVERY_INTERVAL"

    @classmethod
    def name(cls) -> str:
        return "service-discovery"

    def fetch_targets(self, now: datetime) -> Iterator[TargetKind]:
        yield from TargetKind

    def execute(self, target: TargetKind, now: datetime) -> ObserverResult:
        """A kind at a time: what cannot be read leaves the list of that kind as it was; changes count."""
        return ObserverResult(success_count=keep_targets(target, candidates(target, now), now=now))
