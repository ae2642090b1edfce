"""What observations need a person for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import F
from django.urls import reverse

from lcm.models import LabletDefinition, Outcome
from lcm.web.needs import Need
from observations.selectors.drift import open_drift

MOST = 20


def needs_of_observations(now: datetime) -> Iterator[Need]:
    """Port conflicts, revisions that regressed, definitions to review, open drift."""
    drift = open_drift(now).order_by("first_seen")
    for review in drift.filter(kind="conflict")[:MOST]:
        yield Need(
            text=f"Port conflict: {review.name} of {review.definition}",
            url=reverse("drift_list") + "?kind=conflict&state=open",
            since=review.first_seen,
            tone="bad",
            more=f"Another session has port {review.example.get('observed')} as well",
        )
    for definition in _to_review():
        yield _review(definition)
    waiting = drift.exclude(kind="conflict")
    oldest, count = waiting.first(), waiting.count()
    if oldest is not None:
        verb = "deviation" if count == 1 else "deviations"
        url = reverse("drift_list") + "?state=open"
        yield Need(f"{count:,} open port {verb}", url, oldest.first_seen, more="Leaked ports are held back")


def _to_review() -> list[LabletDefinition]:
    rows = LabletDefinition.objects.filter(needs_review=True).select_related("current_revision", "assessment")
    return list(
        rows.defer("topology_yaml", "nodes", "links").order_by(F("assessment__worth").desc(), "pk")[:MOST]
    )


def _review(definition: LabletDefinition) -> Need:
    revision = definition.current_revision
    regressed = revision is not None and revision.outcome == Outcome.REGRESSED
    return Need(
        text=f"{definition}: revision {revision.number} has regressed"
        if regressed and revision
        else f"Review {definition}",
        url=reverse("definition_detail", args=[definition.pk]),
        since=definition.updated_at,
        tone="bad" if regressed else "warn",
        more=" ".join(definition.review_reasons),
    )
