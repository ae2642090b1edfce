"""What became of a revision: the next five observed sessions decide."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lcm.actors import SYSTEM
from lcm.models import DefinitionRevision, LabletDefinition, Outcome
from lcm.services.changelog import log_change
from observations.arithmetic.measures import ALLOCATED, MEASURED, RULES, USED
from observations.models import SessionObservation
from observations.services.aggregates import refresh_assessment, required_by
from observations.services.samples import PEAKS, peaks_of

DECIDING = 5
SLOWED_TOO_OFTEN = 2


@dataclass(frozen=True)
class Standing:
    """How the first sessions of a revision fared."""

    observed: int
    exceeded: dict[str, int]

    @property
    def outcome(self) -> Outcome:
        """Running out of what stops a lab is too much at once, being slowed twice is too often."""
        for resource, times in self.exceeded.items():
            if times >= (1 if RULES[resource].stops else SLOWED_TOO_OFTEN):
                return Outcome.REGRESSED
        return Outcome.VERIFIED if self.observed >= DECIDING else Outcome.WATCHING

    @property
    def words(self) -> str:
        over = [
            f"{RULES[resource].label.lower() if resource != 'cpu_cores' else 'CPU'} exceeded by {times}"
            for resource, times in self.exceeded.items()
        ]
        if over:
            return f"{', '.join(over)} of {self.observed}"
        return f"{self.observed} of {DECIDING} sessions within"


def standing_of(revision: DefinitionRevision) -> Standing:
    """The first five samples of a revision against what it asks for."""
    rows = SessionObservation.objects.filter(
        revision=revision, definition_id=revision.definition_id, is_sample=True
    )
    first = list(rows.order_by("observed_at").only("session_id", *PEAKS)[:DECIDING])
    required = required_by(revision)
    exceeded: dict[str, int] = {}
    for row in first:
        peaks = peaks_of(row)
        for resource in MEASURED:
            seen = peaks.get((resource, USED), peaks.get((resource, ALLOCATED)))
            if seen is not None and seen > required[resource]:
                exceeded[resource] = exceeded.get(resource, 0) + 1
    return Standing(len(first), exceeded)


def judge_revision(*, definition: LabletDefinition, revision: DefinitionRevision, now: datetime) -> None:
    """Turn a revision that is watched into verified or regressed, once."""
    if revision.outcome != Outcome.WATCHING or revision.number == 1:
        return
    standing = standing_of(revision)
    outcome = standing.outcome
    decided = outcome != Outcome.WATCHING and DefinitionRevision.objects.filter(
        pk=revision.pk, outcome=Outcome.WATCHING
    ).update(outcome=outcome)
    if not decided:
        return
    revision.outcome = outcome
    log_change(
        definition,
        actor=SYSTEM,
        event="revision_outcome",
        message=f"{definition}: {revision} {outcome.label.lower()}, {standing.words}",
        after={"revision": revision.number, "outcome": outcome},
        now=now,
    )
    current = definition.current_revision
    if current is not None and current.pk == revision.pk:
        current.outcome = outcome
        refresh_assessment(definition=definition, now=now)
