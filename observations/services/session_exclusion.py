"""Exclusion of sessions from the evidence."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import StateConflict
from lcm.models import LabletSession
from lcm.services.changelog import log_change
from lcm.services.validation import require_reason
from observations.models import SessionObservation
from observations.services.aggregates import change_sample
from observations.services.outcomes import redecide_outcome
from observations.services.samples import sample_of, update_is_sample


def exclude_session(
    *, session: LabletSession, reason: str, actor: Actor, now: datetime
) -> SessionObservation:
    """Exclude the session and record the reason."""
    require_reason(reason)
    return _update_excluded(session, excluded=True, reason=reason, actor=actor, now=now)


def include_session(
    *, session: LabletSession, reason: str, actor: Actor, now: datetime
) -> SessionObservation:
    """Include the session again; it counts if it is eligible."""
    require_reason(reason)
    return _update_excluded(session, excluded=False, reason=reason, actor=actor, now=now)


def _update_excluded(
    session: LabletSession, *, excluded: bool, reason: str, actor: Actor, now: datetime
) -> SessionObservation:
    with transaction.atomic():
        LabletSession.objects.select_for_update().get(pk=session.pk)
        rows = SessionObservation.objects.select_related("definition__current_revision", "revision")
        row = rows.filter(session=session).first()
        if row is None:
            raise StateConflict(_("%(session)s has not been observed.") % {"session": session})
        if bool(row.excluded_reason) == excluded:
            text = _("%(session)s is already excluded.") if excluded else _("%(session)s is not excluded.")
            raise StateConflict(text % {"session": session})
        before = sample_of(row)
        row.excluded_reason, row.excluded_by = (reason, actor.label) if excluded else ("", "")
        update_is_sample(row)
        row.save(update_fields=["excluded_reason", "excluded_by", "is_sample", "not_counted_reason"])
        is_changed = change_sample(row=row, before=before, now=now)
        if excluded:
            event, message = (
                "observation.excluded",
                f"{session} excluded from the evidence of {row.definition}",
            )
        else:
            event, message = "observation.included", f"{session} included in the evidence of {row.definition}"
        log_change(session, actor=actor, event=event, message=message, reason=reason, now=now)
        if is_changed and row.revision_id == row.definition.current_revision_id:
            redecide_outcome(definition=row.definition, now=now)
    return row
