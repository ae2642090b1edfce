"""Prometheus metrics of observations."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric

OBSERVATIONS = Counter("lcm_observations_recorded_total", "Observations recorded.")
DRIFT = Counter("lcm_port_drift_detected_total", "Observations that showed new port drift.")


def observation_figures() -> Iterator[Metric]:
    """Yield the number of definitions by class and of open port drift reviews."""
    from django.utils import timezone

    from observations.models import DefinitionAssessment, DriftReview
    from observations.models.drift import is_open

    classes = GaugeMetricFamily("lcm_definitions_by_class", "Definitions by class.", labels=["class"])
    rows = DefinitionAssessment.objects.order_by().values_list("provisioning").annotate(Count("pk"))
    for provisioning, count in rows:
        classes.add_metric([provisioning], count)
    yield classes
    drift = GaugeMetricFamily("lcm_port_drift_open", "Open port drift reviews.", labels=["kind"])
    rows_by_kind = (
        DriftReview.objects.filter(is_open(timezone.now()))
        .order_by()
        .values_list("kind")
        .annotate(Count("pk"))
    )
    for kind, count in rows_by_kind:
        drift.add_metric([kind], count)
    yield drift
