"""Request, cancel and extend sessions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

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
    User,
)
from lcm.services.changelog import log_change
from lcm.services.kernels import build_kernels
from lcm.services.session_transitions import save_transitions, transition_session, transition_sessions
from lcm.services.validation import clean_model, require_reason

START_GRACE = timedelta(minutes=15)


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
        save_transitions(
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
