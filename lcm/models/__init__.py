"""The core domain."""

from lcm.models.definitions import (
    Basis,
    DefinitionRevision,
    DefinitionStatus,
    LabletDefinition,
    Outcome,
    Placement,
)
from lcm.models.feed import FeedEntry, FeedHead, FeedKind
from lcm.models.jobs import Job, JobState
from lcm.models.people import Domain, Membership, Project, Theme, User
from lcm.models.records import ApiToken, ChangeLog, Heartbeat, IdempotentAnswer, TokenKind
from lcm.models.sessions import Kernel, KernelStatus, LabletSession, Priority, SessionTransition

__all__ = [
    "ApiToken",
    "Basis",
    "ChangeLog",
    "DefinitionRevision",
    "DefinitionStatus",
    "Domain",
    "FeedEntry",
    "FeedHead",
    "FeedKind",
    "Heartbeat",
    "IdempotentAnswer",
    "Job",
    "JobState",
    "Kernel",
    "KernelStatus",
    "LabletDefinition",
    "LabletSession",
    "Membership",
    "Outcome",
    "Placement",
    "Priority",
    "Project",
    "SessionTransition",
    "Theme",
    "TokenKind",
    "User",
]
