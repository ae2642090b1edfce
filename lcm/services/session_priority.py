"""Priority of waiting sessions."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.extensions import Extension
from lcm.models import LabletSession, Priority
from lcm.services.changelog import log_change
from lcm.services.sessions import wrong_status
from lcm.services.validation import require_reason


def change_priority(
    *, session: LabletSession, priority: int, reason: str, actor: Actor, now: datetime
) -> LabletSession:
    """Change the priority of a waiting session and of its reservation; repeating a change does nothing."""
    require_reason(reason)
    if priority not in Priority.values:
        raise InvalidInput({"priority": _("Choose a priority.")})
    old = session.priority
    if priority == old and session.status == SessionStatus.PENDING:
        return session
    with transaction.atomic():
        changed = LabletSession.objects.filter(
            pk=session.pk, status=SessionStatus.PENDING, priority=old
        ).update(priority=priority)
        if not changed:
            raise _conflict(session)
        session.priority = priority
        log_change(
            session,
            actor=actor,
            event="session.priority_changed",
            message=f"priority {Priority(old).name.lower()} → {Priority(priority).name.lower()}",
            reason=reason,
            before={"priority": old},
            after={"priority": priority},
            now=now,
        )
        for effect in Extension.installed().session_priority_changed:
            effect(session=session, now=now)
    return session


def _conflict(session: LabletSession) -> StateConflict:
    """Return the error by the current state: the session may have been placed, cancelled or changed."""
    session.refresh_from_db(fields=["status", "priority"])
    if session.status == SessionStatus.PENDING:
        return StateConflict(
            _("%(session)s was changed a moment ago. Reload it and try again.") % {"session": session},
            details={"priority": session.priority},
        )
    return wrong_status(session, _("%(session)s is %(status)s; only pending sessions can change priority."))
