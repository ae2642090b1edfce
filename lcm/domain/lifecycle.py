"""The life of a lablet session: one table of what may follow what."""

from __future__ import annotations

from django.db.models import TextChoices


class SessionStatus(TextChoices):
    PENDING = "PENDING", "Pending"
    SCHEDULED = "SCHEDULED", "Scheduled"
    INSTANTIATING = "INSTANTIATING", "Instantiating"
    READY = "READY", "Ready"
    RUNNING = "RUNNING", "Running"
    COLLECTING = "COLLECTING", "Collecting"
    STOPPING = "STOPPING", "Stopping"
    TERMINATED = "TERMINATED", "Terminated"
    CANCELLED = "CANCELLED", "Cancelled"
    EXPIRED = "EXPIRED", "Expired"
    FAILED = "FAILED", "Failed"


S = SessionStatus

TRANSITIONS: dict[SessionStatus, tuple[SessionStatus, ...]] = {
    S.PENDING: (S.SCHEDULED, S.CANCELLED, S.EXPIRED),
    S.SCHEDULED: (S.INSTANTIATING, S.PENDING, S.CANCELLED),
    S.INSTANTIATING: (S.READY, S.PENDING, S.STOPPING, S.FAILED),
    S.READY: (S.RUNNING, S.STOPPING),
    S.RUNNING: (S.COLLECTING, S.STOPPING),
    S.COLLECTING: (S.STOPPING,),
    S.STOPPING: (S.TERMINATED, S.FAILED),
    S.TERMINATED: (),
    S.CANCELLED: (),
    S.EXPIRED: (),
    S.FAILED: (),
}

FINAL = frozenset(status for status, following in TRANSITIONS.items() if not following)
ACTIVE = tuple(status for status in SessionStatus if status not in FINAL)

# What “cancel” means from where: nothing runs yet, or the lab has to be taken down first.
CANCEL_TARGETS: dict[SessionStatus, SessionStatus] = {
    S.PENDING: S.CANCELLED,
    S.SCHEDULED: S.CANCELLED,
    S.INSTANTIATING: S.STOPPING,
    S.READY: S.STOPPING,
    S.RUNNING: S.STOPPING,
    S.COLLECTING: S.STOPPING,
}
# A slot is held for it: a controller has something to do.
ON_A_SLOT = (S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING)
EXTENDABLE = (S.PENDING, S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING)

# The way of a session for which all goes well: what its timeline shows as still to come.
HAPPY_PATH = (
    S.PENDING,
    S.SCHEDULED,
    S.INSTANTIATING,
    S.READY,
    S.RUNNING,
    S.COLLECTING,
    S.STOPPING,
    S.TERMINATED,
)


def allowed_transitions(status: str) -> tuple[SessionStatus, ...]:
    """The statuses that may follow this one."""
    return TRANSITIONS[SessionStatus(status)]


def is_transition_allowed(status: str, new: str) -> bool:
    return new in allowed_transitions(status)
