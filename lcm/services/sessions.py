"""Request, cancel and extend sessions, and change their status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Value
from django.db.models.functions import Coalesce, Greatest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.db.bulk import insert_rows
from lcm.domain import lifecycle
from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.events.change_feed import append_session_changes
from lcm.extensions import Extension
from lcm.models import (
    DefinitionStatus,
    Kernel,
    LabletDefinition,
    LabletSession,
    Membership,
    Priority,
    Project,
    SessionTransition,
    User,
)
from lcm.models.sessions import KERNEL_STATUS, STATUS_LABELS, KernelStatus
from lcm.monitoring import metrics
from lcm.services.changelog import log_bulk_change, log_change
from lcm.services.kernels import build_kernels
from lcm.services.validation import clean_model, require_reason

START_GRACE = timedelta(minutes=15)
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


def create_session(
    *,
    definition: LabletDefinition,
    owner: User,
    project: Project,
    starts_at: datetime,
    ends_at: datetime,
    priority: int = Priority.NORMAL,
    pool: str = "",
    actor: Actor,
    now: datetime,
    reason: str = "",
) -> LabletSession:
    """Request a session: pin the definition's current revision and create the kernels."""
    with transaction.atomic():
        # Locked, so that status and current revision do not change before the session is saved.
        definition = LabletDefinition.objects.select_for_update().get(pk=definition.pk)
        session = draft_session(
            definition=definition,
            owner=owner,
            project=project,
            starts_at=starts_at,
            ends_at=ends_at,
            priority=priority,
            pool=pool,
            now=now,
        )
        _check_request(session, now=now)
        clean_model(session)
        session.save(force_insert=True)
        Kernel.objects.bulk_create(build_kernels(session))
        _save_transitions(
            {session.pk: (1, now)}, old="", new=SessionStatus.PENDING, actor=actor, reason=reason
        )
        log_change(
            session,
            actor=actor,
            event="session.requested",
            message=f"{definition} requested for {owner}",
            reason=reason,
            after=_log_values(session),
            now=now,
        )
        for effect in Extension.installed().session_created:
            effect(session=session, now=now)
    return session


def draft_session(
    *,
    definition: LabletDefinition,
    owner: User | None,
    project: Project | None,
    starts_at: datetime,
    ends_at: datetime,
    priority: int,
    pool: str,
    now: datetime,
) -> LabletSession:
    """Return an unsaved session of the definition's current revision."""
    if definition.current_revision is None:
        raise InvalidInput(
            {"definition": _("%(definition)s has no requirements yet.") % {"definition": definition}}
        )
    # A session that is only evaluated can lack its owner and project.
    people: dict[str, Any] = {"owner": owner, "project": project}
    return LabletSession(
        definition=definition,
        revision=definition.current_revision,
        **{name: value for name, value in people.items() if value is not None},
        starts_at=starts_at,
        ends_at=ends_at,
        priority=priority,
        pool=pool or definition.pool,
        status_since=now,
        created_at=now,
    )


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
        _save_transitions({session.pk: (attempt, now)}, old=old, new=to, actor=actor, reason=reason)
        log_change(session, **_transition_entry(old, to), actor=actor, reason=reason, now=now)
        is_gone = lab_removed or to == SessionStatus.TERMINATED
        _apply_effects([session.pk], old, to, now=now, lab_removed=is_gone)
        _count_when_committed(old, to)
    return session


def cancel_session(*, session: LabletSession, actor: Actor, now: datetime, reason: str) -> LabletSession:
    """Cancel a session: at once if it has no lab yet, else by stopping its lab."""
    require_reason(reason)
    target = lifecycle.CANCEL_TARGETS.get(SessionStatus(session.status))
    if target is None:
        allowed = [status.value for status in lifecycle.allowed_transitions(session.status)]
        raise wrong_status(session, _("%(session)s is %(status)s and cannot be cancelled."), allowed=allowed)
    return transition_session(session=session, to=target, actor=actor, now=now, reason=reason)


def cancel_sessions(
    *, sessions: Iterable[LabletSession], actor: Actor, now: datetime, reason: str
) -> tuple[int, int]:
    """Cancel many sessions, grouped by status; return how many were cancelled and how many were not."""
    require_reason(reason)
    rows = list(sessions)
    cancelled = 0
    for old, to in lifecycle.CANCEL_TARGETS.items():
        group = [session for session in rows if session.status == old]
        if group:
            cancelled += len(
                transition_sessions(sessions=group, old=old, to=to, actor=actor, now=now, reason=reason)
            )
    return cancelled, len(rows) - cancelled


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
        _save_transitions(moved, old=old, new=to, actor=actor, reason=reason)
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


def extend_session(
    *, session: LabletSession, ends_at: datetime, actor: Actor, now: datetime, reason: str = ""
) -> LabletSession:
    """Extend a session up to the maximum duration of its definition."""
    if session.status not in lifecycle.EXTENDABLE:
        raise wrong_status(session, _("%(session)s is %(status)s and cannot be extended."))
    if ends_at <= max(session.ends_at, now):
        raise InvalidInput(
            {"ends_at": _("The new end must be later than the current end and later than now.")}
        )
    _check_duration(session.definition, ends_at - session.starts_at)
    with transaction.atomic():
        old_end = session.ends_at
        moved = LabletSession.objects.filter(
            pk=session.pk, ends_at=old_end, status__in=lifecycle.EXTENDABLE
        ).update(ends_at=ends_at)
        if not moved:
            raise StateConflict(
                _("%(session)s was changed a moment ago. Reload it and try again.") % {"session": session}
            )
        session.ends_at = ends_at
        message = f"{session} extended to {ends_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        log_change(
            session,
            actor=actor,
            event="session.extended",
            message=message,
            reason=reason,
            before={"ends_at": old_end},
            after={"ends_at": ends_at},
            now=now,
        )
        append_session_changes([session.pk], now=now)
    return session


def wrong_status(session: LabletSession, text: str, **details: Any) -> StateConflict:
    """Return the error for a request that the status of a session does not allow.

    `text` has placeholders for `session` and `status`.
    """
    values = {"session": session, "status": session.get_status_display().lower()}
    return StateConflict(text % values, details={"status": session.status, **details})


def _check_request(session: LabletSession, *, now: datetime) -> None:
    errors: dict[str, str] = {}
    definition = session.definition
    if definition.status != DefinitionStatus.ACTIVE:
        errors["definition"] = _(
            "%(definition)s is %(status)s; only active definitions can be requested."
        ) % {"definition": definition, "status": definition.get_status_display().lower()}
    # Locked, so that the owner cannot leave the project before the session is saved.
    membership = Membership.objects.select_for_update().filter(project=session.project, user=session.owner)
    if not session.owner.is_active:
        errors["owner"] = _("The account of %(owner)s has been closed.") % {"owner": session.owner}
    elif not membership.exists():
        errors["owner"] = _("%(owner)s is not a member of %(project)s.") % {
            "owner": session.owner,
            "project": session.project.path,
        }
    errors |= _timeslot_problems(session, now)
    if errors:
        raise InvalidInput(errors)
    _check_duration(definition, session.duration)


def check_timeslot(session: LabletSession, *, now: datetime) -> None:
    """Raise if a session with this timeslot cannot be requested."""
    if problems := _timeslot_problems(session, now):
        raise InvalidInput(problems)
    _check_duration(session.definition, session.duration)


def _timeslot_problems(session: LabletSession, now: datetime) -> dict[str, str]:
    if session.ends_at <= session.starts_at:
        return {"ends_at": _("The timeslot must end after it starts.")}
    if session.ends_at <= now:
        return {"ends_at": _("The timeslot is over already.")}
    if session.starts_at < now - START_GRACE:
        return {"starts_at": _("The timeslot starts in the past.")}
    return {}


def _check_duration(definition: LabletDefinition, duration: timedelta) -> None:
    if duration > definition.max_duration:
        hours = definition.max_duration.total_seconds() / 3600
        # Fractions have the plural.
        message = ngettext(
            "%(definition)s may run for at most %(hours)s hour.",
            "%(definition)s may run for at most %(hours)s hours.",
            int(hours) if hours == int(hours) else 2,
        ) % {"definition": definition, "hours": f"{hours:g}"}
        raise InvalidInput({"ends_at": message})


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


def _save_transitions(
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


def _log_values(session: LabletSession) -> dict[str, Any]:
    return {
        "definition": str(session.definition),
        "revision": session.revision.number,
        "owner": session.owner.username,
        "project": session.project.path,
        "starts_at": session.starts_at,
        "ends_at": session.ends_at,
        "priority": session.priority,
        "pool": session.pool,
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
