"""Port drift queries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from lcm.models import LabletDefinition
from observations.models import DriftReview
from observations.models.drift import is_open

_LONG = ("topology_yaml", "nodes", "links")


def drift_reviews() -> QuerySet[DriftReview]:
    rows = DriftReview.objects.select_related("definition", "last_session")
    return rows.defer(*(f"definition__{name}" for name in _LONG))


def drift_of(definition: LabletDefinition, limit: int = 50) -> tuple[list[DriftReview], bool]:
    """Return the newest reviews, resolved ones last, and whether there are more."""
    rows = list(definition.drift_reviews.order_by("-last_seen")[: limit + 1])
    return sorted(rows[:limit], key=lambda row: row.state == "resolved"), len(rows) > limit


def has_drifted(definition: LabletDefinition) -> bool:
    """Return whether any session had port drift, resolved or not."""
    return definition.drift_reviews.exists()


def ports_were_observed(definition: LabletDefinition) -> bool:
    return definition.observations.filter(observed_ports__isnull=False).exists()


def reviews_by_fingerprint(definition_id: UUID) -> dict[str, DriftReview]:
    return {row.fingerprint: row for row in DriftReview.objects.filter(definition_id=definition_id)}


def open_drift(now: datetime) -> QuerySet[DriftReview]:
    return drift_reviews().filter(is_open(now))
