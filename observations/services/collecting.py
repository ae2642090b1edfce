"""Sessions that were observed while running and reach collecting, or are stopped, later."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from lcm.models import Outcome
from observations.models import SessionObservation
from observations.services.aggregates import Change, change_samples, lock_assessment, required_by
from observations.services.outcomes import judge_revision
from observations.services.samples import judge, sample_of


def settle_outcomes(*, session_ids: Sequence[UUID], now: datetime) -> None:
    """They are being taken down: what was seen of them is all there is, and may decide."""
    rows = SessionObservation.objects.filter(
        session_id__in=session_ids, is_sample=True, revision__outcome=Outcome.WATCHING
    )
    waiting = rows.select_related("definition__current_revision", "revision").order_by("definition_id", "pk")
    for row in waiting.defer("observed_resources", "peak_resources", "definition__topology_yaml"):
        lock_assessment(row.definition)  # of those that stop at once, the last has to see the others
        judge_revision(definition=row.definition, revision=row.revision, now=now)


def note_collecting(*, session_ids: Sequence[UUID], now: datetime) -> None:
    """Let what was seen of them count; whoever has not been observed counts with the observation to come."""
    rows = SessionObservation.objects.filter(session_id__in=session_ids, reached_collecting=False)
    waiting = rows.select_related("definition__current_revision", "revision").order_by("definition_id", "pk")
    for row in waiting.defer("observed_resources", "peak_resources", "definition__topology_yaml"):
        before = sample_of(row)
        row.reached_collecting = True
        judge(row)
        row.save(update_fields=["reached_collecting", "is_sample", "left_out"])
        change = Change(before, sample_of(row), required_by(row.revision))
        change_samples(definition=row.definition, epoch=row.epoch, changes=[change], now=now)
        if row.is_sample:
            judge_revision(definition=row.definition, revision=row.revision, now=now)
