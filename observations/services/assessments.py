"""Assessments of definitions: class, recommendation, waste, and whether a review is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction

from lcm.db.statements import Statement, column_values, run_statements, update_statement
from lcm.domain.actors import SYSTEM
from lcm.models import DefinitionRevision, LabletDefinition, RevisionOutcome
from lcm.services.changelog import log_change
from observations.arithmetic.assessment import Assessment, Days, assess, next_change, recent_days
from observations.arithmetic.histogram import Digest, day_of, merge_digests
from observations.arithmetic.measures import MEASURED, amount, hundredths
from observations.arithmetic.recommendation import has_changed
from observations.arithmetic.statistics import STEP_BEFORE_MOST, STEP_NEWEST
from observations.models import DefinitionAssessment, ResourceAggregate, SessionObservation
from observations.services.recording_sql import (
    CurrentReview,
    lock_assessment_row,
    read_aggregates,
    read_newest_samples,
    read_review,
)
from observations.services.samples import PEAKS, amounts_in

NEWEST = STEP_NEWEST + STEP_BEFORE_MOST
Newest: TypeAlias = list[tuple[datetime, dict[tuple[str, str], int]]]


def required_by(revision: DefinitionRevision) -> dict[str, int]:
    return {name: hundredths(getattr(revision, name)) for name in MEASURED}


@dataclass(frozen=True)
class LockedAggregates:
    """Assessment and aggregates of a definition's epoch, locked against concurrent changes."""

    assessment: DefinitionAssessment
    aggregates: dict[UUID, ResourceAggregate]
    newest: Newest


def refresh_assessment(*, definition: LabletDefinition, now: datetime) -> DefinitionAssessment:
    """Reassess a definition: its revision changed, a snooze ended, or days have passed."""
    epoch = definition.topology_hash
    with transaction.atomic():
        kept = lock_aggregates(definition, epoch)
        return write_assessment(
            definition=definition,
            assessment=kept.assessment,
            digest=merge_digests(Digest.from_json(row.digest) for row in kept.aggregates.values()),
            newest=kept.newest,
            days=kept.assessment.days if kept.assessment.epoch == epoch else {},
            now=now,
            epoch=epoch,
        )


def lock_assessment(definition: LabletDefinition) -> DefinitionAssessment:
    """Lock the assessment of a definition against concurrent changes.

    The definition instance is refreshed with the current revision and review.
    """
    found, review = run_statements(lock_assessment_row(definition.pk), read_review(definition.pk))
    _bring_up_to_date(definition, review)
    return found or DefinitionAssessment.objects.create(definition=definition, epoch=definition.topology_hash)


def _bring_up_to_date(definition: LabletDefinition, review: CurrentReview | None) -> None:
    if review is not None:
        definition.current_revision = review.revision
        definition.needs_review, definition.review_reasons = review.needs_review, review.reasons


def lock_aggregates(
    definition: LabletDefinition,
    epoch: str,
    revisions: Iterable[UUID] = (),
    first: Sequence[Statement[None]] = (),
) -> LockedAggregates:
    """Lock the assessment and read its rows; create missing aggregates of these revisions."""
    reading = (
        lock_assessment_row(definition.pk),
        # Read after the assessment is locked, because the revision may have changed before.
        read_review(definition.pk),
        read_aggregates(definition.pk, epoch),
        read_newest_samples(definition.pk, epoch, NEWEST),
    )
    assessment, review, aggregates, newest = run_statements(*first, *reading)[-len(reading) :]
    if assessment is None:
        assessment = lock_assessment(definition)
        review, aggregates, newest = run_statements(*reading[1:])
    _bring_up_to_date(definition, review)
    rows = {row.revision_id: row for row in aggregates}
    for key in revisions:
        if key not in rows:
            rows[key] = ResourceAggregate.objects.create(definition=definition, epoch=epoch, revision_id=key)
    return LockedAggregates(assessment, rows, _newest_in(newest))


def write_assessment(
    *,
    definition: LabletDefinition,
    assessment: DefinitionAssessment,
    digest: Digest,
    newest: Newest,
    days: Days,
    now: datetime,
    epoch: str,
    first: Sequence[Statement[None]] = (),
) -> DefinitionAssessment:
    """Write class, recommendation, flags and waste from the digest, and decide whether to review.

    `first` is written in the same round trip.
    """
    if epoch != definition.topology_hash:
        run_statements(*first)
        return assessment  # a session of an older topology; only the current topology is assessed
    apply_figures(definition, assessment, digest=digest, newest=newest, days=days, now=now)
    _end_snooze(definition, assessment, now)
    assessment.due_at = _due_at(assessment, now)
    run_statements(*first, update_statement(DefinitionAssessment, assessment.pk, column_values(assessment)))
    _decide_review(definition, assessment, now)
    return assessment


def apply_figures(
    definition: LabletDefinition,
    assessment: DefinitionAssessment,
    *,
    digest: Digest,
    newest: Newest,
    days: Days,
    now: datetime,
) -> None:
    """Set the figures of the current topology on the assessment, without saving it."""
    revision, epoch = definition.current_revision, definition.topology_hash
    assert revision is not None
    found = assess(
        digest,
        newest=newest,
        required=required_by(revision),
        flags=assessment.flags if assessment.epoch == epoch else {},
        sources=assessment.sources_in(epoch),
        today=day_of(now),
    )
    _take(assessment, found, recent_days(days, today=day_of(now)), epoch)


def newest_samples(
    definition: LabletDefinition, epoch: str, *, revision: DefinitionRevision | None = None
) -> Newest:
    """Return the times and amounts of the newest samples, newest first, optionally of one revision."""
    rows = SessionObservation.objects.filter(definition=definition, epoch=epoch, is_sample=True)
    if revision is not None:
        rows = rows.filter(revision=revision)
    rows = rows.order_by("-observed_at", "-session_id")
    return _newest_in(rows.values_list("observed_at", *PEAKS)[:NEWEST])


def _newest_in(rows: Iterable[Sequence[Any]]) -> Newest:
    """Return rows of a time and `PEAKS` with their amounts by resource and source."""
    return [(at, amounts_in(values)) for at, *values in rows]


def _take(assessment: DefinitionAssessment, found: Assessment, days: Days, epoch: str) -> None:
    cpu, memory, held = (sum(day[place] for day in days.values()) for place in range(3))
    assessment.epoch, assessment.n = epoch, found.n
    assessment.provisioning, assessment.confidence = found.provisioning.value, found.confidence
    assessment.last_observed_at = found.newest
    for name in MEASURED:
        value = found.recommended.get(name)
        setattr(assessment, f"recommended_{name}", None if value is None else amount(value))
    assessment.sources = found.sources
    assessment.flags = {flag.resource: flag.direction for flag in found.flags}
    assessment.reasons = [flag.reason for flag in found.flags]
    assessment.days = days
    assessment.waste_cpu, assessment.waste_memory = amount(cpu // 3600), amount(memory // 3600)
    assessment.held_seconds = held
    assessment.priority = amount(found.priority(cpu // 3600, memory // 3600))


def has_regressed(definition: LabletDefinition) -> bool:
    revision = definition.current_revision
    return revision is not None and revision.outcome == RevisionOutcome.REGRESSED


def _decide_review(definition: LabletDefinition, assessment: DefinitionAssessment, now: datetime) -> None:
    """Request a review if flagged or regressed, unless that is snoozed or dismissed."""
    is_hidden = assessment.snoozed_until is not None or assessment.dismissed is not None
    reasons = [] if is_hidden else list(assessment.reasons)
    if has_regressed(definition) and not (is_hidden and assessment.regression_snoozed):
        assert definition.current_revision is not None
        number = definition.current_revision.number
        reasons.append(f"Revision {number} was exceeded by the sessions after it.")
    needs = bool(reasons)
    if (needs, reasons) == (definition.needs_review, definition.review_reasons):
        return
    raised = needs and not definition.needs_review
    changes: dict[str, Any] = {"needs_review": needs, "review_reasons": reasons}
    if needs != definition.needs_review:
        changes["review_since"] = now if needs else None
        log_change(
            definition,
            actor=SYSTEM,
            event="review_raised" if raised else "review_cleared",
            message=f"{definition} needs a review" if raised else f"{definition} no longer needs a review",
            after={"reasons": reasons},
            now=now,
        )
    LabletDefinition.objects.filter(pk=definition.pk).update(**changes)
    for name, value in changes.items():
        setattr(definition, name, value)


def _end_snooze(definition: LabletDefinition, assessment: DefinitionAssessment, now: datetime) -> None:
    """End a snooze at its date, and a dismissal when the recommendation has changed by 10 %."""
    regressed = has_regressed(definition)
    if assessment.snoozed_until and assessment.snoozed_until <= now:
        assessment.snoozed_until = None
    is_moot = not assessment.flags and not regressed
    if assessment.dismissed is not None and (is_moot or _moved(assessment)):
        assessment.dismissed = None
    assessment.regression_snoozed &= regressed


def _due_at(assessment: DefinitionAssessment, now: datetime) -> datetime | None:
    """Return when to reassess even if no session is observed."""
    changes = next_change(assessment.days, assessment.last_observed_at, today=day_of(now))
    return min(filter(None, (changes, assessment.snoozed_until)), default=None)


def _moved(assessment: DefinitionAssessment) -> bool:
    now_said = {name: getattr(assessment, f"recommended_{name}") for name in assessment.flags}
    dismissed: dict[str, Any] = assessment.dismissed or {}
    return any(
        name not in dismissed or value is None or has_changed(dismissed[name], hundredths(value))
        for name, value in now_said.items()
    )
