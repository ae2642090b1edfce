"""Aggregates of samples, updated with every sample, and rebuilt from the observed sessions as a check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from lcm.db.statements import Statement, run_statements, update_statement
from lcm.models import LabletDefinition
from observations.arithmetic.assessment import DAYS, Days, change_days, recent_days
from observations.arithmetic.histogram import Digest, day_of, merge_digests
from observations.arithmetic.measures import MEASURED
from observations.models import DefinitionAssessment, ResourceAggregate, SessionObservation
from observations.services.assessments import (
    EpochFigures,
    apply_figures,
    lock_aggregates,
    lock_assessment,
    newest_samples,
    required_by,
    write_assessment,
)
from observations.services.samples import PEAKS, SessionSample, day_figures, sample_of

# Columns that a rebuild compares. Confidence changes with time, and a reason depends on past flags.
ASSESSED = (
    "n",
    "provisioning",
    "last_observed_at",
    *(f"recommended_{name}" for name in MEASURED),
    "sources",
    "flags",
)


def change_sample(
    *,
    row: SessionObservation,
    before: SessionSample | None,
    now: datetime,
    first: Sequence[Statement[None]] = (),
) -> bool:
    """Update the sample of a session and reassess the definition in the same transaction.

    `before` is the sample that counted until now, `first` runs before, in the same round trip as the reads.
    Return whether the sample changed.
    """
    after = sample_of(row)
    if before == after:
        run_statements(*first)
        return False
    definition, key = row.definition, row.revision_id
    kept = lock_aggregates(definition, row.epoch, key, first)
    digests = {pk: Digest.from_json(each.digest) for pk, each in kept.aggregates.items()}
    days, required = kept.days, required_by(row.revision)
    if before:
        digests[key].remove(before.amounts, before.day)
        days = change_days(days, before.day, day_figures(before, required), -1)
    if after:
        digests[key].add(after.amounts, after.day)
        days = change_days(days, after.day, day_figures(after, required), 1)
    writing = update_statement(ResourceAggregate, kept.aggregates[key].pk, {"digest": digests[key].to_json()})
    if row.epoch != definition.topology_hash:
        run_statements(writing)  # a session of an older topology; only the current topology is assessed
        return True
    figures = EpochFigures(merge_digests(digests.values()), kept.newest, days)
    write_assessment(definition, kept.assessment, figures, now=now, first=[writing])
    return True


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
        figures = EpochFigures(digest, newest_samples(definition, epoch), days)
        should = copy(assessment)
        apply_figures(definition, should, figures, now=now)
        found = [*_digest_differences(definition, digests)]
        found += _assessment_differences(definition, assessment, should, now)
        if found and not check:
            _replace_aggregates(definition, digests)
            write_assessment(definition, assessment, figures, now=now)
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
            days = change_days(days, sample.day, day_figures(sample, required[row.revision_id]), 1)
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
                definition, f"epoch {key[0][:12]}: {have.get('n', 0)} samples stored, {should['n']} expected"
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
