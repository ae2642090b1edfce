"""Change the status of sessions, with kernels, transitions, change log and the effects of other apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Coalesce, Greatest
from django.utils.translation import gettext as _

from lcm.db.bulk import insert_rows
from lcm.domain import lifecycle
from lcm.domain.actors import Actor
from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.events.change_feed import append_session_changes
from lcm.extensions import Extension
from lcm.models import Kernel, LabletSession, SessionTransition
from lcm.models.sessions import KERNEL_STATUS, STATUS_LABELS, KernelStatus
from lcm.monitoring import metrics
from lcm.services.changelog import log_bulk_change, log_change

# The event that the change log records when a session reaches a status.
STATUS_EVENTS: dict[SessionStatus, str] = {
    **{status: f"session.{status.lower()}" for status in SessionStatus},
    SessionStatus.PENDING: "session.requeued",
    SessionStatus.TERMINATED: "session.ended",
}


class SessionStep(NamedTuple):
    """A session's attempt after a transition, and the time of the transition."""

    attempt: int
    at: datetime


def transition_session(
    *,
    session: LabletSession,
    to: SessionStatus,
    actor: Actor,
    now: datetime,
    reason: str = "",
    lab_removed: bool = False,
    ends_at: datetime | None = None,
) -> LabletSession:
    """Change a session's status; raise StateConflict with the allowed statuses if it is not allowed.

    The update is a compare-and-set on the status and attempt of the caller's copy: of two concurrent callers
    the second fails. `lab_removed`: nothing of the lab is left on the worker. `ends_at`: the end of the
    timeslot that the caller decided on; if the session was extended since, the transition is rejected.
    """
    old = SessionStatus(session.status)
    if not lifecycle.is_transition_allowed(old, to):
        raise _transition_conflict(session, old, to)
    # Another process may have made the previous transition after `now` was read, or with a clock ahead.
    now = max(now, session.status_since)
    attempt = session.attempt + 1 if to == SessionStatus.PENDING else session.attempt
    expected = LabletSession.objects.filter(pk=session.pk, status=old, attempt=session.attempt)
    if ends_at is not None:
        expected = expected.filter(ends_at=ends_at)
    with transaction.atomic():
        if not expected.update(status=to, status_since=now, attempt=attempt):
            raise _transition_conflict(session, old, to, ends_at)
        session.status, session.status_since, session.attempt = to, now, attempt
        _move_kernels([session.pk], to=to, now=now)
        save_transitions({session.pk: (attempt, now)}, old=old, new=to, actor=actor, reason=reason)
        log_change(session, **_transition_entry(old, to), actor=actor, reason=reason, now=now)
        is_gone = lab_removed or to == SessionStatus.TERMINATED
        _apply_effects([session.pk], old, to, now=now, lab_removed=is_gone)
        _count_when_committed(old, to)
    return session


def transition_sessions(
    *,
    sessions: Sequence[LabletSession],
    old: SessionStatus,
    to: SessionStatus,
    actor: Actor,
    now: datetime,
    reason: str = "",
    unless_extended: bool = False,
) -> list[LabletSession]:
    """Change the status of many sessions; skip sessions whose status changed since. Return the changed ones.

    `unless_extended`: also skip sessions whose end differs from the caller's copy.
    """
    ids = [session.pk for session in sessions]
    ends = {session.pk: session.ends_at for session in sessions} if unless_extended else None
    steps = transition_sessions_by_id(
        session_ids=ids, old=old, to=to, actor=actor, now=now, reason=reason, ends=ends
    )
    moved = [session for session in sessions if session.pk in steps]
    for session in moved:
        session.status, (session.attempt, session.status_since) = to, steps[session.pk]
    return moved


def transition_sessions_by_id(
    *,
    session_ids: Sequence[UUID],
    old: SessionStatus,
    to: SessionStatus,
    actor: Actor,
    now: datetime,
    reason: str = "",
    ends: Mapping[UUID, datetime] | None = None,
) -> dict[UUID, SessionStep]:
    """Change the status of many sessions by id; return attempt and time of each changed session.

    The time is `now`, but never before the session's previous transition: a tick reads `now` when it begins
    and may place a session that was requested a moment later. `ends`: the end of each session's timeslot that
    the caller decided on; sessions with another end are skipped.
    """
    if not lifecycle.is_transition_allowed(old, to):
        raise ValueError(f"a transition from {old} to {to} is not allowed")
    with transaction.atomic():
        locked = LabletSession.objects.select_for_update().filter(pk__among=session_ids, status=old)
        attempt_increment = 1 if to == SessionStatus.PENDING else 0
        rows = locked.order_by("pk").values_list("pk", "attempt", "status_since", "ends_at")
        moved = {
            key: SessionStep(attempt + attempt_increment, max(since, now))
            for key, attempt, since, end in rows
            if ends is None or ends.get(key) == end
        }
        ids = list(moved)
        LabletSession.objects.filter(pk__among=ids).update(
            status=to,
            status_since=Greatest(F("status_since"), Value(now)),
            attempt=F("attempt") + attempt_increment,
        )
        _move_kernels(ids, to=to, now=now)
        save_transitions(moved, old=old, new=to, actor=actor, reason=reason)
        times = {key: step.at for key, step in moved.items()}
        log_bulk_change(LabletSession, times, **_transition_entry(old, to), actor=actor, reason=reason)
        is_gone = to == SessionStatus.TERMINATED
        _apply_effects(ids, old, to, now=now, lab_removed=is_gone)
        _count_when_committed(old, to, len(ids))
    return moved


def _apply_effects(
    ids: Sequence[UUID], old: SessionStatus, new: SessionStatus, *, now: datetime, lab_removed: bool
) -> None:
    """Notify controllers of sessions that are or were on a slot, and run the effects of other apps."""
    if old in lifecycle.ON_A_SLOT or new in lifecycle.ON_A_SLOT:
        append_session_changes(ids, now=now)
    for effect in Extension.installed().sessions_moved:
        effect(session_ids=ids, old=old, new=new, now=now, lab_removed=lab_removed)


def _move_kernels(session_ids: Sequence[UUID], *, to: SessionStatus, now: datetime) -> None:
    """Set the status of sessions' kernels; each attempt starts and ends once."""
    status = KERNEL_STATUS[to]
    kernels = Kernel.objects.filter(session_id__among=session_ids).exclude(status=status)
    if status == KernelStatus.ALLOCATED:
        kernels.update(status=status, started_at=now, terminated_at=None)
    elif status == KernelStatus.PENDING:
        kernels.update(status=status, started_at=None, terminated_at=None, attempt=F("attempt") + 1)
    elif status == KernelStatus.TERMINATED:
        # Never before the start: the clocks of two machines may differ.
        kernels.update(
            status=status, terminated_at=Greatest(Coalesce(F("started_at"), Value(now)), Value(now))
        )
    else:
        kernels.update(status=status)


def save_transitions(
    steps: Mapping[UUID, tuple[int, datetime]],
    *,
    old: str,
    new: SessionStatus,
    actor: Actor,
    reason: str,
) -> None:
    """Save the transition of each session, with its attempt and time."""
    insert_rows(
        SessionTransition,
        ["id", "session", "attempt", "at"],
        [(uuid4(), key, attempt, at) for key, (attempt, at) in steps.items()],
        same={
            "from_status": old,
            "to_status": new.value,
            "actor": actor.label,
            "reason": reason[:500],
        },
    )


def _transition_entry(old: SessionStatus, to: SessionStatus) -> dict[str, Any]:
    return {
        "event": STATUS_EVENTS[to],
        "message": f"{old.label} → {to.label}",
        "before": {"status": old},
        "after": {"status": to},
    }


def _transition_conflict(
    session: LabletSession, expected_status: SessionStatus, to: SessionStatus, ends_at: datetime | None = None
) -> StateConflict:
    """Return the error for a rejected transition, with the current status and the allowed ones."""
    status, end = LabletSession.objects.values_list("status", "ends_at").get(pk=session.pk)
    current = SessionStatus(status)
    following = lifecycle.allowed_transitions(current)
    names = ", ".join(STATUS_LABELS[status].lower() for status in following)
    advice = _("Allowed: %(names)s.") % {"names": names} if names else _("This status is final.")
    details: dict[str, Any] = {"status": current.value, "allowed": [status.value for status in following]}
    if current != expected_status:
        before = STATUS_LABELS[expected_status].lower()
        advice = _("It was %(status)s before. Reload it and try again.") % {"status": before}
    elif ends_at is not None and ends_at != end:
        details["ends_at"] = end.astimezone(UTC).isoformat()
        advice = _("Its timeslot now ends at %(time)s. Reload it and try again.") % {
            "time": details["ends_at"]
        }
    elif to in following:
        advice = _("It was changed a moment ago. Reload it and try again.")
    return StateConflict(
        _("%(session)s is %(status)s and cannot become %(target)s. %(advice)s")
        % {
            "session": session,
            "status": STATUS_LABELS[current].lower(),
            "target": STATUS_LABELS[SessionStatus(to)].lower(),
            "advice": advice,
        },
        details=details,
    )


def _count_when_committed(old: SessionStatus, to: SessionStatus, count: int = 1) -> None:
    transaction.on_commit(lambda: metrics.TRANSITIONS.labels(from_status=old, to_status=to).inc(count))
