"""Snoozing and dismissing reviews."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from lcm.domain.actors import Actor
from lcm.domain.errors import StateConflict
from lcm.models import LabletDefinition
from lcm.services.changelog import log_change
from lcm.services.validation import require_reason
from observations.arithmetic.measures import hundredths
from observations.models import DefinitionAssessment
from observations.services.assessments import has_regressed, lock_assessment, refresh_assessment
from observations.services.drift_reviews import check_until

logger = logging.getLogger(__name__)

LONGEST_SNOOZE = timedelta(days=180)


def snooze_review(
    *, definition: LabletDefinition, until: datetime, reason: str, actor: Actor, now: datetime
) -> DefinitionAssessment:
    """Hide a review until a date."""
    check_until(until, now=now, most=LONGEST_SNOOZE)
    return _suspend_review(definition, until, reason, actor, now)


def dismiss_review(
    *, definition: LabletDefinition, reason: str, actor: Actor, now: datetime
) -> DefinitionAssessment:
    """Dismiss the recommendation until it has changed by 10 % or more."""
    return _suspend_review(definition, None, reason, actor, now)


def _suspend_review(
    definition: LabletDefinition, until: datetime | None, reason: str, actor: Actor, now: datetime
) -> DefinitionAssessment:
    """Snooze the review, or dismiss its recommendation if there is no date."""
    require_reason(reason)
    with transaction.atomic():
        assessment = lock_assessment(definition)
        regressed = has_regressed(definition)
        if not assessment.flags and not regressed:
            raise StateConflict(_("%(definition)s needs no review.") % {"definition": definition})
        assessment.snoozed_until = until
        assessment.dismissed = None if until else _recommendation(assessment)
        assessment.regression_snoozed = regressed
        assessment.snooze_reason, assessment.snoozed_by = reason, actor.label
        assessment.save()
        if until:
            event, message = "definition.review_snoozed", f"snoozed until {until:%Y-%m-%d}"
        else:
            event, message = "definition.review_dismissed", "dismissed"
        message = f"Review of {definition} {message}"
        log_change(definition, actor=actor, event=event, message=message, reason=reason, now=now)
        return refresh_assessment(definition=definition, now=now)


def _recommendation(assessment: DefinitionAssessment) -> dict[str, int]:
    return {name: hundredths(getattr(assessment, f"recommended_{name}")) for name in assessment.flags}


def refresh_due_reviews(*, now: datetime, page: int = 200) -> int:
    """Reassess all due definitions: end snoozes, drop waste older than thirty days, lower old confidence.

    Works in pages; each assessment stores when it is due next. A failed one stays due and does not stop the
    others.
    """
    due = DefinitionAssessment.objects.filter(due_at__lte=now).order_by("pk")
    rows = LabletDefinition.objects.select_related("current_revision")
    done, last = 0, None
    while keys := list((due.filter(pk__gt=last) if last else due).values_list("pk", flat=True)[:page]):
        last = keys[-1]
        for definition in rows.filter(pk__in=keys):
            try:
                refresh_assessment(definition=definition, now=now)
                done += 1
            except Exception:
                logger.exception("review_refresh_failed", extra={"definition": str(definition.pk)})
    return done
