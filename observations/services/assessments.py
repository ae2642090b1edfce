"""Assessments of definitions: class, recommendation, waste, and whether a review is needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from lcm.db.statements import Statement, column_values, run_statements, update_statement
from lcm.domain.actors import SYSTEM
from lcm.models import DefinitionRevision, LabletDefinition, RevisionOutcome
from lcm.services.changelog import log_change
from observations.arithmetic.assessment import Days, assess, next_change, recent_days
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


class EpochFigures(NamedTuple):
    """The samples of an epoch, from which a definition is assessed."""

    digest: Digest
    newest: Newest
    days: Days


class LockedAggregates(NamedTuple):
    """Assessment and aggregates of a definition's epoch, locked against concurrent changes."""

    assessment: DefinitionAssessment
    aggregates: dict[UUID, ResourceAggregate]
    newest: Newest
    days: Days


def create_assessment(*, definition: LabletDefinition, now: datetime) -> None:
    """Create an assessment with every definition, so that lists can be sorted by it."""
    DefinitionAssessment.objects.create(definition=definition, epoch=definition.topology_hash)


def reassess_definition(*, definition: LabletDefinition, now: datetime) -> None:
    """Reassess after the commit: recording locks assessment, then definition; a revision the reverse."""

    def reassess() -> None:
        refresh_assessment(definition=LabletDefinition.objects.get(pk=definition.pk), now=now)

    transaction.on_commit(reassess, robust=True)


def refresh_assessment(*, definition: LabletDefinition, now: datetime) -> DefinitionAssessment:
    """Reassess a definition: its revision changed, a snooze ended, or days have passed."""
    with transaction.atomic():
        kept = lock_aggregates(definition, definition.topology_hash)
        digest = merge_digests(Digest.from_json(row.digest) for row in kept.aggregates.values())
        figures = EpochFigures(digest, kept.newest, kept.days)
        return write_assessment(definition, kept.assessment, figures, now=now)


def lock_assessment(definition: LabletDefinition) -> DefinitionAssessment:
    """Lock the assessment of a definition against concurrent changes.

    The definition instance is refreshed with the current revision and review.
    """
    found, review = run_statements(lock_assessment_row(definition.pk), read_review(definition.pk))
    _update_definition(definition, review)
    return found or DefinitionAssessment.objects.create(definition=definition, epoch=definition.topology_hash)


def _update_definition(definition: LabletDefinition, review: CurrentReview | None) -> None:
    if review is not None:
        definition.current_revision = review.revision
        definition.needs_review, definition.review_reasons = review.needs_review, review.reasons


def lock_aggregates(
    definition: LabletDefinition,
    epoch: str,
    revision_id: UUID | None = None,
    first: Sequence[Statement[None]] = (),
) -> LockedAggregates:
    """Lock the assessment and read its rows; create the aggregate of the revision if it is missing."""
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
    _update_definition(definition, review)
    rows = {row.revision_id: row for row in aggregates}
    if revision_id and revision_id not in rows:
        rows[revision_id] = ResourceAggregate.objects.create(
            definition=definition, epoch=epoch, revision_id=revision_id
        )
    days = assessment.days if assessment.epoch == epoch else {}
    return LockedAggregates(assessment, rows, _newest_in(newest), days)


def write_assessment(
    definition: LabletDefinition,
    assessment: DefinitionAssessment,
    figures: EpochFigures,
    *,
    now: datetime,
    first: Sequence[Statement[None]] = (),
) -> DefinitionAssessment:
    """Write class, recommendation, flags and waste from the figures, and decide whether to review.

    `first` is written in the same round trip.
    """
    apply_figures(definition, assessment, figures, now=now)
    _end_snooze(definition, assessment, now)
    assessment.due_at = _due_at(assessment, now)
    run_statements(*first, update_statement(DefinitionAssessment, assessment.pk, column_values(assessment)))
    _decide_review(definition, assessment, now)
    return assessment


def apply_figures(
    definition: LabletDefinition, assessment: DefinitionAssessment, figures: EpochFigures, *, now: datetime
) -> None:
    """Set the figures of the current topology on the assessment, without saving it."""
    epoch, today = definition.topology_hash, day_of(now)
    found = assess(
        figures.digest,
        newest=figures.newest,
        required=required_by(definition.revision),
        flags=assessment.flags if assessment.epoch == epoch else {},
        sources=assessment.sources_in(epoch),
        today=today,
    )
    days = recent_days(figures.days, today=today)
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


def newest_samples(
    definition: LabletDefinition, epoch: str, *, revision: DefinitionRevision | None = None
) -> Newest:
    """Return the times and amounts of the newest samples, newest first, optionally of one revision."""
    rows = samples_of(definition, epoch, revision).order_by("-observed_at", "-session_id")
    return _newest_in(rows.values_list("observed_at", *PEAKS)[:NEWEST])


def samples_of(
    definition: LabletDefinition, epoch: str, revision: DefinitionRevision | None
) -> QuerySet[SessionObservation]:
    rows = SessionObservation.objects.filter(definition=definition, epoch=epoch, is_sample=True)
    return rows if revision is None else rows.filter(revision=revision)


def _newest_in(rows: Iterable[Sequence[Any]]) -> Newest:
    """Return rows of a time and `PEAKS` with their amounts by resource and source."""
    return [(at, amounts_in(values)) for at, *values in rows]


def has_regressed(definition: LabletDefinition) -> bool:
    revision = definition.current_revision
    return revision is not None and revision.outcome == RevisionOutcome.REGRESSED


def _decide_review(definition: LabletDefinition, assessment: DefinitionAssessment, now: datetime) -> None:
    """Request a review if flagged or regressed, unless that is snoozed or dismissed."""
    is_hidden = assessment.snoozed_until is not None or assessment.dismissed is not None
    reasons = [] if is_hidden else list(assessment.reasons)
    if has_regressed(definition) and not (is_hidden and assessment.regression_snoozed):
        reasons.append(f"Revision {definition.revision.number} was exceeded by the sessions after it.")
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
            event="definition.flagged" if raised else "definition.cleared",
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
    if assessment.dismissed is not None and (is_moot or _recommendation_changed(assessment)):
        assessment.dismissed = None
    assessment.regression_snoozed &= regressed


def _due_at(assessment: DefinitionAssessment, now: datetime) -> datetime | None:
    """Return when to reassess even if no session is observed."""
    changes = next_change(assessment.days, assessment.last_observed_at, today=day_of(now))
    return min(filter(None, (changes, assessment.snoozed_until)), default=None)


def _recommendation_changed(assessment: DefinitionAssessment) -> bool:
    current = {name: getattr(assessment, f"recommended_{name}") for name in assessment.flags}
    dismissed: dict[str, Any] = assessment.dismissed or {}
    return any(
        name not in dismissed or value is None or has_changed(dismissed[name], hundredths(value))
        for name, value in current.items()
    )
