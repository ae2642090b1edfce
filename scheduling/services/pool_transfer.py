"""Transfer of waiting sessions to another pool."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.services.changelog import log_change
from lcm.services.validation import require_reason
from scheduling.models import Phase
from scheduling.services.reservations import (
    choose_pool_for_session,
    end_session_reservations,
    new_session_reservation,
)


def move_to_pool(
    *, session: LabletSession, pool: str, reason: str, actor: Actor, now: datetime
) -> LabletSession:
    """Create a reservation in the other pool with the same age and priority; only for PENDING sessions.

    Rows are locked in the order session, reservation, the same as in a placement.
    """
    require_reason(reason)
    if session.status != SessionStatus.PENDING:
        raise _refused(session)
    old = session.pool
    if not pool:
        raise InvalidInput({"pool": _("Choose a pool.")})
    if pool == old:
        raise InvalidInput({"pool": _("The session is already waiting in %(pool)s.") % {"pool": pool}})
    target = choose_pool_for_session(session, name=pool, now=now)
    with transaction.atomic():
        moved = LabletSession.objects.filter(
            pk=session.pk, status=SessionStatus.PENDING, attempt=session.attempt, pool=old
        ).update(pool=pool)
        if not moved:
            raise _refused(session)
        session.pool = pool
        end_session_reservations(
            session_ids=[session.pk], pending=Phase.CANCELLED, now=now, reason=f"moved to pool {pool}"
        )
        new_session_reservation(session, target)
        log_change(
            session,
            actor=actor,
            event="session.moved",
            message=f"{session} moved from pool {old} to {pool}",
            reason=reason,
            before={"pool": old},
            after={"pool": pool},
            now=now,
        )
    return session


def _refused(session: LabletSession) -> StateConflict:
    """Return the error by the current state: the session may have been placed, cancelled or moved."""
    status, pool = LabletSession.objects.values_list("status", "pool").get(pk=session.pk)
    if status == SessionStatus.PENDING:
        text = _("%(session)s was changed a moment ago. Reload and try again.") % {"session": session}
        return StateConflict(text, details={"pool": pool})
    text = _("%(session)s is %(status)s; only pending sessions can be moved to another pool.") % {
        "session": session,
        "status": SessionStatus(status).label.lower(),
    }
    return StateConflict(text, details={"status": status})
