"""What became of a revision: the next five observed sessions decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import DefinitionRevision, LabletDefinition, RevisionOutcome
from lcm.services.changelog import log_change
from observations.arithmetic.measures import ALLOCATED, MEASURED, RULES
from observations.models import DefinitionAssessment, SessionObservation
from observations.services.aggregates import (
    SampleChange,
    change_samples,
    lock_assessment,
    refresh_assessment,
    required_by,
)
from observations.services.samples import PEAKS, amounts_in, sample_of, update_is_sample


def settle_outcomes(*, session_ids: Sequence[UUID], now: datetime) -> None:
    """They are being taken down: what was seen of them is all there is, and may decide."""
    rows = SessionObservation.objects.filter(
        session_id__in=session_ids, is_sample=True, revision__outcome=RevisionOutcome.WATCHING
    )
    waiting = rows.select_related("definition__current_revision", "revision").order_by("definition_id", "pk")
    for row in waiting.defer("observed_resources", "peak_resources", "definition__topology_yaml"):
        lock_assessment(row.definition)  # of those that stop at once, the last has to see the others
        decide_outcome(definition=row.definition, revision=row.revision, now=now)


def mark_collected(*, session_ids: Sequence[UUID], now: datetime) -> None:
    """Let what was seen of them count; whoever has not been observed counts with the observation to come."""
    rows = SessionObservation.objects.filter(session_id__in=session_ids, reached_collecting=False)
    waiting = rows.select_related("definition__current_revision", "revision").order_by("definition_id", "pk")
    for row in waiting.defer("observed_resources", "peak_resources", "definition__topology_yaml"):
        before = sample_of(row)
        row.reached_collecting = True
        update_is_sample(row)
        row.save(update_fields=["reached_collecting", "is_sample", "left_out"])
        change = SampleChange(before, sample_of(row), required_by(row.revision))
        change_samples(definition=row.definition, epoch=row.epoch, changes=[change], now=now)
        if row.is_sample:
            decide_outcome(definition=row.definition, revision=row.revision, now=now)


DECIDING_SESSIONS = 5
SLOWED_TOO_OFTEN = 2
_WHEN = ("session__status", "session__status_since", "recorded_at")
MAX_SESSIONS_READ = 4 * DECIDING_SESSIONS  # not every session says something of every resource


@dataclass(frozen=True)
class RevisionProgress:
    """How the first sessions of a revision fared: how many speak of a resource, how many exceeded it.

    Of a revision that changed nothing that is measured it is known only how many `sessions` there were.
    """

    measured: dict[str, int]
    exceeded: dict[str, int]
    is_final: bool = True
    sessions: int = 0

    @property
    def observed(self) -> int:
        """Of what is measured at all, the least: each resource needs its sessions."""
        return min(self.measured.values(), default=self.sessions)

    @property
    def outcome(self) -> RevisionOutcome:
        """Running out of what stops a lab is too much at once, being slowed twice is too often."""
        for resource, times in self.exceeded.items():
            if times >= (1 if RULES[resource].stops else SLOWED_TOO_OFTEN):
                return RevisionOutcome.REGRESSED
        return (
            RevisionOutcome.VERIFIED
            if self.observed >= DECIDING_SESSIONS and self.is_final
            else RevisionOutcome.WATCHING
        )

    @property
    def words(self) -> str:
        over = [
            f"{RULES[resource].label.lower() if resource != 'cpu_cores' else 'CPU'} exceeded by {times} "
            f"of {self.measured[resource]} {'session' if self.measured[resource] == 1 else 'sessions'}"
            for resource, times in self.exceeded.items()
        ]
        if over:
            return ", ".join(over)
        return f"{self.observed} of {DECIDING_SESSIONS} sessions within"


def revision_progress(
    revision: DefinitionRevision, present: Mapping[str, str] | None = None
) -> RevisionProgress:
    """For each resource it changed the first five samples that say it, against what it asks for.

    A revision that kept all measured amounts is judged by the change that set them.

    `present` has the sources of the definition's assessment, if the caller has read it.
    """
    rows = SessionObservation.objects.filter(
        revision=revision, definition_id=revision.definition_id, is_sample=True
    )
    found = rows.order_by("observed_at").values_list(*_WHEN, *PEAKS)[:MAX_SESSIONS_READ]
    samples = [(_is_final(*values[: len(_WHEN)]), amounts_in(values[len(_WHEN) :])) for values in found]
    change = change_of_amounts(revision)
    if change is None:
        first = samples[:DECIDING_SESSIONS]
        return RevisionProgress({}, {}, is_final=all(last for last, _ in first), sessions=len(first))
    required, sources = required_by(revision), sources_of(change, present)
    is_final = True
    measured: dict[str, int] = {}
    exceeded: dict[str, int] = {}
    for resource in changed_by(change):
        key = resource, sources[resource]
        values = [(peaks[key], last) for last, peaks in samples if key in peaks][:DECIDING_SESSIONS]
        above = sum(value > required[resource] for value, _ in values)
        is_final &= all(last for _, last in values)
        measured |= {resource: len(values)} if values else {}
        exceeded |= {resource: above} if above else {}
    return RevisionProgress(measured, exceeded, is_final)


def _is_final(status: str, since: datetime, recorded_at: datetime) -> bool:
    """Whoever is being collected is observed once more before its lab is taken down."""
    return status != SessionStatus.COLLECTING or recorded_at >= since


def changed_by(revision: DefinitionRevision) -> list[str]:
    """The resources it asks for in another amount than the revision before; only these are its doing."""
    before = (revision.before or {}).get("requirements", {})
    return [
        name for name in MEASURED if name not in before or Decimal(before[name]) != getattr(revision, name)
    ]


def change_of_amounts(revision: DefinitionRevision) -> DefinitionRevision | None:
    """Return the revision that set the measured amounts of this one; None if that was the import."""
    if changed_by(revision):
        return revision
    same = {name: getattr(revision, name) for name in MEASURED}
    older = DefinitionRevision.objects.filter(definition=revision.definition_id, number__lt=revision.number)
    before = older.exclude(**same).order_by("-number").values_list("number", flat=True).first()
    return older.defer("port_template").get(number=before + 1) if before else None


def sources_of(revision: DefinitionRevision, present: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the source, used or allocated, that each resource of a revision is judged by.

    It is the source the revision was applied with. A revision without evidence has that of the assessment.
    """
    applied = (revision.aggregate or {}).get("resources", {})
    if set(MEASURED) <= set(applied):
        return {resource: applied[resource]["basis"] for resource in MEASURED}
    if present is None:
        definition = revision.definition
        assessment = DefinitionAssessment.objects.filter(definition=definition).first()
        present = assessment.sources_in(definition.topology_hash) if assessment else {}
    return {resource: present.get(resource, ALLOCATED) for resource in MEASURED}


def decide_outcome(*, definition: LabletDefinition, revision: DefinitionRevision, now: datetime) -> None:
    """Turn a revision that is watched into verified or regressed, once."""
    if revision.outcome == RevisionOutcome.WATCHING:
        fresh = _reread(definition, revision)
        if fresh.outcome == RevisionOutcome.WATCHING:
            _judge(definition, fresh, now)


def redecide_outcome(*, definition: LabletDefinition, now: datetime) -> None:
    """Other samples count than before: what they say of the present revision holds, decided or not."""
    current = definition.current_revision
    if current is None or current.number == 1:
        return
    fresh = _reread(definition, current)
    if fresh.outcome != RevisionOutcome.SUPERSEDED:  # another revision was applied a moment ago
        _judge(definition, fresh, now)


def _reread(definition: LabletDefinition, revision: DefinitionRevision) -> DefinitionRevision:
    fresh = DefinitionRevision.objects.defer("port_template").get(pk=revision.pk)
    fresh.definition = definition
    return fresh


def _judge(definition: LabletDefinition, revision: DefinitionRevision, now: datetime) -> None:
    standing = revision_progress(revision)
    outcome = standing.outcome
    decided_at = None if outcome == RevisionOutcome.WATCHING else now
    if outcome == revision.outcome:
        return
    # The definition first, as when it is revised: two transactions never wait for each other in a circle.
    LabletDefinition.objects.select_for_update(no_key=True).only("pk").get(pk=definition.pk)
    mine = DefinitionRevision.objects.filter(pk=revision.pk, outcome=revision.outcome)
    if not mine.update(outcome=outcome, outcome_at=decided_at):
        return
    log_change(
        definition,
        actor=SYSTEM,
        event="revision_outcome",
        message=f"{definition}: {revision} {outcome.label.lower()}, {standing.words}",
        before={"outcome": revision.outcome},
        after={"revision": revision.number, "outcome": outcome},
        now=now,
    )
    if definition.current_revision_id == revision.pk:
        refresh_assessment(definition=definition, now=now)


def revert_target(revision: DefinitionRevision) -> int | None:
    """Where to go back to from a revision that regressed; what regressed itself is no help.

    Nor is a revision with the same amounts.
    """
    if (
        revision.outcome != RevisionOutcome.REGRESSED
        or revision.reverts_id is not None
        or not changed_by(revision)
    ):
        return None
    before = DefinitionRevision.objects.filter(
        definition=revision.definition_id, number=revision.number - 1
    ).exclude(outcome=RevisionOutcome.REGRESSED)
    return before.values_list("number", flat=True).first()
