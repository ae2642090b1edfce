"""Outcome of a revision, decided by its next five observed sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.messages import Message, gettext, ngettext
from lcm.models import DefinitionRevision, LabletDefinition, RevisionOutcome
from lcm.services.changelog import log_change
from observations.arithmetic.impact import LIMIT_NAMES
from observations.arithmetic.measures import ALLOCATED, MEASURED, RULES
from observations.models import DefinitionAssessment, SessionObservation
from observations.services.aggregates import change_sample
from observations.services.assessments import lock_assessment, refresh_assessment, required_by
from observations.services.samples import PEAKS, amounts_in, sample_of, update_is_sample


def settle_outcomes(*, session_ids: Sequence[UUID], now: datetime) -> None:
    """Decide outcomes when sessions are torn down, because no further observation follows."""
    for row in _observed(session_ids, is_sample=True, revision__outcome=RevisionOutcome.WATCHING):
        lock_assessment(row.definition)  # when several sessions stop at once, the last must see the others
        decide_outcome(definition=row.definition, revision=row.revision, now=now)


def mark_collected(*, session_ids: Sequence[UUID], now: datetime) -> None:
    """Count the observations of collected sessions; a session without one counts with its next."""
    for row in _observed(session_ids, reached_collecting=False):
        before = sample_of(row)
        row.reached_collecting = True
        update_is_sample(row)
        row.save(update_fields=["reached_collecting", "is_sample", "not_counted_reason"])
        change_sample(row=row, before=before, now=now)
        if row.is_sample:
            decide_outcome(definition=row.definition, revision=row.revision, now=now)


def _observed(session_ids: Sequence[UUID], **where: Any) -> QuerySet[SessionObservation]:
    rows = SessionObservation.objects.filter(session_id__in=session_ids, **where)
    rows = rows.select_related("definition__current_revision", "revision").order_by("definition_id", "pk")
    return rows.defer("observed_resources", "peak_resources", "definition__topology_yaml")


DECIDING_SESSIONS = 5
SLOWED_TOO_OFTEN = 2
_WHEN = ("session__status", "session__status_since", "recorded_at")
MAX_SESSIONS_READ = 4 * DECIDING_SESSIONS  # not every session has figures for every resource


@dataclass(frozen=True)
class RevisionProgress:
    """First sessions of a revision: how many measured each resource, and how many exceeded it.

    If the revision changed no measured resource, only the number of `sessions` is known.
    """

    measured: dict[str, int]
    exceeded: dict[str, int]
    is_final: bool = True
    sessions: int = 0

    @property
    def observed(self) -> int:
        """Return the session count of the resource with the fewest sessions."""
        return min(self.measured.values(), default=self.sessions)

    @property
    def outcome(self) -> RevisionOutcome:
        """Return regressed after one exceedance that stops a lab, or two that slow it."""
        for resource, times in self.exceeded.items():
            if times >= (1 if RULES[resource].stops else SLOWED_TOO_OFTEN):
                return RevisionOutcome.REGRESSED
        return (
            RevisionOutcome.VERIFIED
            if self.observed >= DECIDING_SESSIONS and self.is_final
            else RevisionOutcome.WATCHING
        )

    @property
    def texts(self) -> list[Message]:
        """Return the sessions that exceeded each resource, or how many stayed within limits."""
        if not self.exceeded:
            return [
                gettext(
                    "%(count)s of %(total)s sessions stayed within limits",
                    count=self.observed,
                    total=DECIDING_SESSIONS,
                )
            ]
        return [
            ngettext(
                "%(resource)s exceeded by %(times)s of %(count)s session",
                "%(resource)s exceeded by %(times)s of %(count)s sessions",
                self.measured[resource],
                resource=LIMIT_NAMES[resource],
                times=times,
            )
            for resource, times in self.exceeded.items()
        ]


def revision_progress(
    revision: DefinitionRevision, present: Mapping[str, str] | None = None
) -> RevisionProgress:
    """Compare the first five samples of each changed resource with the requirement.

    A revision that kept all measured amounts is judged by the change that set them. `present` holds the
    sources of the definition's assessment, if the caller has read it.
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
    """Return whether no further observation follows.

    A collecting session is observed again before teardown.
    """
    return status != SessionStatus.COLLECTING or recorded_at >= since


def changed_by(revision: DefinitionRevision) -> list[str]:
    """Return the resources whose requirement the revision changed."""
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
    """Return the source, used or allocated, by which each resource of a revision is judged.

    It is the source the revision was applied with. A revision without evidence has the source of the
    assessment.
    """
    applied = (revision.aggregate or {}).get("resources", {})
    if set(MEASURED) <= set(applied):
        return {resource: applied[resource]["source"] for resource in MEASURED}
    if present is None:
        definition = revision.definition
        assessment = DefinitionAssessment.objects.filter(definition=definition).first()
        present = assessment.sources_in(definition.topology_hash) if assessment else {}
    return {resource: present.get(resource, ALLOCATED) for resource in MEASURED}


def decide_outcome(*, definition: LabletDefinition, revision: DefinitionRevision, now: datetime) -> None:
    """Decide once whether a watched revision is verified or has regressed."""
    if revision.outcome == RevisionOutcome.WATCHING:
        fresh = _reread(definition, revision)
        if fresh.outcome == RevisionOutcome.WATCHING:
            _judge(definition, fresh, now)


def redecide_outcome(*, definition: LabletDefinition, now: datetime) -> None:
    """Decide the outcome of the current revision again, because other samples count now."""
    current = definition.current_revision
    if current is None or current.number == 1:
        return
    fresh = _reread(definition, current)
    if fresh.outcome != RevisionOutcome.SUPERSEDED:  # another revision was applied meanwhile
        _judge(definition, fresh, now)


def _reread(definition: LabletDefinition, revision: DefinitionRevision) -> DefinitionRevision:
    fresh = DefinitionRevision.objects.defer("port_template").get(pk=revision.pk)
    fresh.definition = definition
    return fresh


def _judge(definition: LabletDefinition, revision: DefinitionRevision, now: datetime) -> None:
    progress = revision_progress(revision)
    outcome = progress.outcome
    decided_at = None if outcome == RevisionOutcome.WATCHING else now
    if outcome == revision.outcome:
        return
    # Lock the definition first, as a revision does, to avoid a deadlock.
    LabletDefinition.objects.select_for_update(no_key=True).only("pk").get(pk=definition.pk)
    mine = DefinitionRevision.objects.filter(pk=revision.pk, outcome=revision.outcome)
    if not mine.update(outcome=outcome, outcome_at=decided_at):
        return
    log_change(
        definition,
        actor=SYSTEM,
        event=f"definition.{outcome.value}",
        message=f"{definition}: {revision} {outcome.value}, {', '.join(map(str, progress.texts))}",
        before={"outcome": revision.outcome},
        after={"revision": revision.number, "outcome": outcome},
        now=now,
    )
    if definition.current_revision_id == revision.pk:
        refresh_assessment(definition=definition, now=now)


def revert_target(revision: DefinitionRevision) -> int | None:
    """Return the revision to revert to after a regression; None if it regressed too.

    A revision with the same amounts is not a target either.
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
