"""Lifecycle of a lablet session: statuses and allowed transitions."""

from __future__ import annotations

from enum import StrEnum


class SessionStatus(StrEnum):
    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    INSTANTIATING = "INSTANTIATING"
    READY = "READY"
    RUNNING = "RUNNING"
    COLLECTING = "COLLECTING"
    STOPPING = "STOPPING"
    TERMINATED = "TERMINATED"
    CANCELLED = "CANCELLED"
    EXPIRED = "EXPIRED"
    FAILED = "FAILED"

    @property
    def label(self) -> str:
        return self.value.capitalize()


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

# The status that cancelling leads to: STOPPING if a lab may exist and has to be removed first.
CANCEL_TARGETS: dict[SessionStatus, SessionStatus] = {
    S.PENDING: S.CANCELLED,
    S.SCHEDULED: S.CANCELLED,
    S.INSTANTIATING: S.STOPPING,
    S.READY: S.STOPPING,
    S.RUNNING: S.STOPPING,
    S.COLLECTING: S.STOPPING,
}
# The session holds a lease on a slot, and a controller works on it.
ON_A_SLOT = (S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING, S.COLLECTING, S.STOPPING)
EXTENDABLE = (S.PENDING, S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING)

# Statuses of a session without failures; its timeline shows the remaining ones as next steps.
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
    """Return the statuses that may follow this one."""
    return TRANSITIONS[SessionStatus(status)]


def is_transition_allowed(status: str, new: str) -> bool:
    return new in allowed_transitions(status)
