"""What live labs were seen to hold, and what follows from it."""

from observations.models.aggregates import DefinitionAssessment, ResourceAggregate
from observations.models.drift import DriftReview, ReviewState
from observations.models.monitoring import Presence, ScrapeTarget, TargetKind
from observations.models.requests import ObservationRequest, RequestState
from observations.models.sessions import NotCountedReason, SessionObservation

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
