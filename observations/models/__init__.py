"""Observations of running labs, and the aggregates and reviews derived from them."""

from observations.models.aggregates import DefinitionAssessment, ResourceAggregate
from observations.models.drift import DriftReview, ReviewState
from observations.models.monitoring import Presence, ScrapeTarget, TargetKind
from observations.models.sessions import (
    NotCountedReason,
    ObservationRequest,
    RequestState,
    SessionObservation,
)

__all__ = [
    "DefinitionAssessment",
    "DriftReview",
    "NotCountedReason",
    "ObservationRequest",
    "Presence",
    "RequestState",
    "ResourceAggregate",
    "ReviewState",
    "ScrapeTarget",
    "SessionObservation",
    "TargetKind",
]
