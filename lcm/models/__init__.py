"""Models of the core app."""

from lcm.models.definitions import (
    DefinitionRevision,
    DefinitionStatus,
    LabletDefinition,
    Placement,
    RevisionBasis,
    RevisionOutcome,
)
from lcm.models.events import (
    PERSONAL,
    Cause,
    Channel,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    EventRule,
    Watch,
    Webhook,
    WebhookFormat,
)
from lcm.models.feed import FeedEntry, FeedHead, FeedKind
from lcm.models.jobs import Job, JobState
from lcm.models.list_views import Density, SavedView
from lcm.models.people import Domain, Membership, Project, Theme, User
from lcm.models.records import ApiToken, ChangeLog, Heartbeat, IdempotentResponse, TokenKind
from lcm.models.sessions import Kernel, KernelStatus, LabletSession, Priority, SessionTransition

__all__ = [
    "PERSONAL",
    "ApiToken",
    "Cause",
    "ChangeLog",
    "Channel",
    "DefinitionRevision",
    "DefinitionStatus",
    "Delivery",
    "DeliveryAttempt",
    "DeliveryState",
    "Density",
    "Domain",
    "EventRule",
    "FeedEntry",
    "FeedHead",
    "FeedKind",
    "Heartbeat",
    "IdempotentResponse",
    "Job",
    "JobState",
    "Kernel",
    "KernelStatus",
    "LabletDefinition",
    "LabletSession",
    "Membership",
    "Placement",
    "Priority",
    "Project",
    "RevisionBasis",
    "RevisionOutcome",
    "SavedView",
    "SessionTransition",
    "Theme",
    "TokenKind",
    "User",
    "Watch",
    "Webhook",
    "WebhookFormat",
]
