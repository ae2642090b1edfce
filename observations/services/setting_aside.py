"""Putting a review off: until a date, or until the recommendation is another one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from lcm.actors import Actor
from lcm.errors import InvalidInput, StateConflict
from lcm.models import LabletDefinition
from lcm.services.changelog import log_change
from observations.arithmetic.measures import hundredths
from observations.models import DefinitionAssessment
from observations.services.aggregates import lock_assessment, refresh_assessment

LONGEST_SNOOZE = timedelta(days=180)


def snooze_review(
    *, definition: LabletDefinition, until: datetime, reason: str, actor: Actor, now: datetime
) -> DefinitionAssessment:
    """Look at it again after a date."""
    if not now < until <= now + LONGEST_SNOOZE:
        raise InvalidInput({"until": f"From now on, for {LONGEST_SNOOZE.days} days at most."})
    message = f"Review of {definition} snoozed until {until:%Y-%m-%d}"
    return _set_aside(definition, message, reason, actor, now, snoozed_until=until, dismissed=None)


def dismiss_review(
    *, definition: LabletDefinition, reason: str, actor: Actor, now: datetime
) -> DefinitionAssessment:
    """Not this recommendation; it comes back when it has moved by a tenth."""
    message = f"Review of {definition} dismissed"
    return _set_aside(definition, message, reason, actor, now, snoozed_until=None, dismissed={})


def _set_aside(
    definition: LabletDefinition, message: str, reason: str, actor: Actor, now: datetime, **changes: Any
) -> DefinitionAssessment:
    if not reason.strip():
        raise InvalidInput({"reason": "Say why: it is kept in the change log."})
    with transaction.atomic():
        assessment = lock_assessment(definition)
        if not assessment.flags:
            raise StateConflict(f"{definition} has nothing to review.")
        if changes["dismissed"] is not None:
            changes["dismissed"] = _recommendation(assessment)
        for name, value in {**changes, "set_aside_reason": reason, "set_aside_by": actor.label}.items():
            setattr(assessment, name, value)
        assessment.save()
        log_change(definition, actor=actor, event="review_set_aside", message=message, reason=reason, now=now)
        return refresh_assessment(definition=definition, now=now)


def _recommendation(assessment: DefinitionAssessment) -> dict[str, int]:
    return {name: hundredths(getattr(assessment, f"recommended_{name}")) for name in assessment.flags}


def sweep_reviews(*, now: datetime, limit: int = 1_000) -> int:
    """Bring back what was snoozed, and forget waste that is older than thirty days."""
    yesterday = now - timedelta(days=1)
    due = DefinitionAssessment.objects.filter(snoozed_until__lte=now)
    old = DefinitionAssessment.objects.filter(held_seconds__gt=0, last_observed_at__lt=yesterday)
    rows = LabletDefinition.objects.select_related("current_revision")
    keys = {*due.values_list("pk", flat=True)[:limit], *old.values_list("pk", flat=True)[:limit]}
    for definition in rows.filter(pk__in=keys):
        refresh_assessment(definition=definition, now=now)
    return len(keys)
