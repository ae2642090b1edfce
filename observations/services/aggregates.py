"""Aggregates and assessments, updated incrementally and rebuilt from rows as a check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction

from lcm.db.statements import Statement, column_values, run_statements, update_statement
from lcm.domain.actors import SYSTEM
from lcm.models import DefinitionRevision, LabletDefinition, RevisionOutcome
from lcm.services.changelog import log_change
from observations.arithmetic.assessment import (
    DAYS,
    Assessment,
    Days,
    assess,
    change_days,
    next_change,
    recent_days,
)
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
from observations.services.samples import PEAKS, SessionSample, amounts_in, sample_of, wasted

# Columns that a rebuild compares. Confidence changes with time, and a reason depends on past flags.
ASSESSED = (
    "n",
    "verdict",
    "last_observed_at",
    *(f"recommended_{name}" for name in MEASURED),
    "bases",
    "flags",
)
NEWEST = STEP_NEWEST + STEP_BEFORE_MOST
Newest: TypeAlias = list[tuple[datetime, dict[tuple[str, str], int]]]


def required_by(revision: DefinitionRevision) -> dict[str, int]:
    return {name: hundredths(getattr(revision, name)) for name in MEASURED}


@dataclass(frozen=True)
class SampleChange:
    """A session's sample before and after; either may be None."""

    before: SessionSample | None
    after: SessionSample | None
    required: dict[str, int]

    @property
    def is_none(self) -> bool:
        return self.before == self.after


@dataclass(frozen=True)
class LockedAggregates:
    """Assessment and aggregates of a definition's epoch, locked against concurrent changes."""

    assessment: DefinitionAssessment
    aggregates: dict[UUID, ResourceAggregate]
    newest: Newest


def change_samples(
    *,
    definition: LabletDefinition,
    epoch: str,
    changes: Sequence[SampleChange],
    now: datetime,
    first: Sequence[Statement[None]] = (),
) -> DefinitionAssessment | None:
    """Add, remove or change samples and reassess the definition in the same transaction.

    `first` runs before, in the same round trip as the reads.
    """
    changes = [change for change in changes if not change.is_none]
    if not changes:
        run_statements(*first)
        return None
    kept = _locked(definition, epoch, changes, first)
    digests = {key: Digest.from_json(row.digest) for key, row in kept.aggregates.items()}
    for change in changes:
        if change.before:
            digests[change.before.revision_id].remove(change.before.amounts, change.before.day)
        if change.after:
            digests[change.after.revision_id].add(change.after.amounts, change.after.day)
    touched = {sample.revision_id for change in changes for sample in (change.before, change.after) if sample}
    days = _days_after(kept.assessment.days if kept.assessment.epoch == epoch else {}, changes)
    return write_assessment(
        definition=definition,
        assessment=kept.assessment,
        digest=merge_digests(digests.values()),
        newest=kept.newest,
        days=days,
        now=now,
        epoch=epoch,
        first=[
            update_statement(ResourceAggregate, kept.aggregates[key].pk, {"digest": digests[key].to_json()})
            for key in touched
        ],
    )


def refresh_assessment(*, definition: LabletDefinition, now: datetime) -> DefinitionAssessment:
    """Reassess a definition: its revision changed, a snooze ended, or days have passed."""
    epoch = definition.topology_hash
    with transaction.atomic():
        kept = _locked(definition, epoch)
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


def _locked(
    definition: LabletDefinition,
    epoch: str,
    changes: Iterable[SampleChange] = (),
    first: Sequence[Statement[None]] = (),
) -> LockedAggregates:
    """Lock the assessment and read its rows; create missing aggregates."""
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
    for change in changes:
        for sample in filter(None, (change.before, change.after)):
            if sample.revision_id not in rows:
                rows[sample.revision_id] = ResourceAggregate.objects.create(
                    definition=definition, epoch=epoch, revision_id=sample.revision_id
                )
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
    """Return rows of a time and `PEAKS` with their amounts by resource and basis."""
    return [(at, amounts_in(values)) for at, *values in rows]


def _take(assessment: DefinitionAssessment, found: Assessment, days: Days, epoch: str) -> None:
    cpu, memory, held = (sum(day[place] for day in days.values()) for place in range(3))
    assessment.epoch, assessment.n = epoch, found.n
    assessment.verdict, assessment.confidence = found.verdict.value, found.confidence
    assessment.last_observed_at = found.newest
    for name in MEASURED:
        value = found.recommended.get(name)
        setattr(assessment, f"recommended_{name}", None if value is None else amount(value))
    assessment.bases = found.bases
    assessment.flags = {flag.resource: flag.direction for flag in found.flags}
    assessment.reasons = [flag.reason for flag in found.flags]
    assessment.days = days
    assessment.waste_cpu, assessment.waste_memory = amount(cpu // 3600), amount(memory // 3600)
    assessment.held_seconds = held
    assessment.worth = amount(found.worth(cpu // 3600, memory // 3600))


def has_regressed(definition: LabletDefinition) -> bool:
    revision = definition.current_revision
    return revision is not None and revision.outcome == RevisionOutcome.REGRESSED


def _decide_review(definition: LabletDefinition, assessment: DefinitionAssessment, now: datetime) -> None:
    """Request a review if flagged or regressed, unless that is snoozed or dismissed."""
    aside = assessment.snoozed_until is not None or assessment.dismissed is not None
    reasons = [] if aside else list(assessment.reasons)
    if has_regressed(definition) and not (aside and assessment.regression_aside):
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
    assessment.regression_aside &= regressed


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


def _days_after(days: Days, changes: Iterable[SampleChange]) -> Days:
    for change in changes:
        for sample, sign in ((change.before, -1), (change.after, 1)):
            if sample:
                days = change_days(
                    days, sample.day, (*wasted(sample, change.required), sample.held_seconds), sign
                )
    return days


@dataclass(frozen=True)
class AggregateDifference:
    """A stored aggregate that differs from its rows."""

    definition: LabletDefinition
    what: str


def rebuild_definition(
    *, definition: LabletDefinition, now: datetime, check: bool = False
) -> list[AggregateDifference]:
    """Recompute everything from the rows; return the differences and repair them unless `check`."""
    with transaction.atomic():
        assessment = lock_assessment(definition)
        digests, days = _full(definition, now)
        epoch = definition.topology_hash
        digest = merge_digests([each for (key, _), each in digests.items() if key == epoch])
        newest = newest_samples(definition, epoch)
        should = copy(assessment)
        apply_figures(definition, should, digest=digest, newest=newest, days=days, now=now)
        found = [*_digest_differences(definition, digests)]
        found += _assessment_differences(definition, assessment, should, now)
        if found and not check:
            _replace_aggregates(definition, digests)
            write_assessment(
                definition=definition,
                assessment=assessment,
                digest=digest,
                newest=newest,
                days=days,
                now=now,
                epoch=epoch,
            )
    return found


def _assessment_differences(
    definition: LabletDefinition, kept: DefinitionAssessment, should: DefinitionAssessment, now: datetime
) -> Iterable[AggregateDifference]:
    is_present = kept.epoch == should.epoch
    if (recent_days(kept.days, today=day_of(now)) if is_present else {}) != should.days:
        yield AggregateDifference(definition, "waste by day")
    if not is_present and not should.n:
        return  # no session was observed since the topology changed
    for name in ASSESSED:
        have, computed = getattr(kept, name), getattr(should, name)
        if have != computed:
            yield AggregateDifference(definition, f"assessment: {name} is {have}, should be {computed}")


def _full(definition: LabletDefinition, now: datetime) -> tuple[dict[tuple[str, UUID], Digest], Days]:
    digests: dict[tuple[str, UUID], Digest] = {}
    days: Days = {}
    required = {each.pk: required_by(each) for each in definition.revisions.all()}
    oldest = now - timedelta(days=DAYS + 1)
    rows = SessionObservation.objects.filter(definition=definition, is_sample=True)
    fields = ("session_id", "revision_id", "epoch", "observed_at", "held_seconds", "is_sample", *PEAKS)
    for row in rows.only(*fields).iterator(chunk_size=5_000):
        sample = sample_of(row)
        assert sample is not None
        digests.setdefault((row.epoch, row.revision_id), Digest()).add(sample.amounts, sample.day)
        if row.epoch == definition.topology_hash and row.observed_at >= oldest:
            figures = (*wasted(sample, required[row.revision_id]), sample.held_seconds)
            days = change_days(days, sample.day, figures, 1)
    return digests, recent_days(days, today=day_of(now))


def _digest_differences(
    definition: LabletDefinition, digests: dict[tuple[str, UUID], Digest]
) -> Iterable[AggregateDifference]:
    kept = {
        (row.epoch, row.revision_id): row.digest
        for row in ResourceAggregate.objects.filter(definition=definition)
    }
    for key in {*kept, *digests}:
        have, should = kept.get(key, {"n": 0}), digests.get(key, Digest()).to_json()
        if Digest.from_json(have).to_json() != should:
            yield AggregateDifference(
                definition, f"epoch {key[0][:12]}: {have.get('n', 0)} samples kept, {should['n']} there"
            )


def _replace_aggregates(definition: LabletDefinition, digests: dict[tuple[str, UUID], Digest]) -> None:
    ResourceAggregate.objects.filter(definition=definition).delete()
    ResourceAggregate.objects.bulk_create(
        [
            ResourceAggregate(
                definition=definition, epoch=epoch, revision_id=revision, digest=digest.to_json()
            )
            for (epoch, revision), digest in digests.items()
        ]
    )
