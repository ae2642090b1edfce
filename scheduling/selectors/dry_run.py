"""Dry runs: compare a pool's next cycle with one over changed input. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from itertools import cycle, islice
from uuid import UUID

from django.utils.translation import gettext as _

from lcm.domain.allocation import split_proportionally
from lcm.domain.errors import InvalidInput
from lcm.domain.resources import RESOURCE_NAMES
from scheduling.models import Phase, Pool, Reservation, Slot, SlotState
from scheduling.placement.framework.amounts import UNIT
from scheduling.placement.framework.configuration import (
    Configuration,
    InvalidConfiguration,
    read_configuration,
)
from scheduling.placement.framework.cycle import Cycle, Eviction, Verdict, VerdictOutcome, run_cycle
from scheduling.placement.framework.explanation import ReasonCount, failed_plugins
from scheduling.placement.framework.model import Job, Snapshot
from scheduling.selectors.snapshots import snapshot_of


def with_requirements(job: Job, amounts: Mapping[str, Decimal]) -> Job:
    """Return the job with new amounts; the tasks of a spread job keep their proportions."""
    columns = [[task.request[which] for task in job.tasks] for which in range(len(RESOURCE_NAMES))]
    for which, name in enumerate(RESOURCE_NAMES):
        if name in amounts:
            parts = split_proportionally(amounts[name], [Decimal(each) for each in columns[which]])
            columns[which] = [int(part * UNIT) for part in parts]
    rows = zip(*columns, strict=True)
    tasks = (replace(task, request=row) for task, row in zip(job.tasks, rows, strict=True))
    return replace(job, tasks=tuple(tasks))


# Number of reservations from the head of the queue that a dry run considers.
MAX_QUEUE = 10_000
MAX_NEW_SLOTS = 1_000


@dataclass(frozen=True)
class Requirement:
    """New amounts for the waiting sessions of a definition, or for one session."""

    amounts: Mapping[str, Decimal]
    definition: UUID | None = None
    session: UUID | None = None


@dataclass(frozen=True)
class DryRunInput:
    """Changes that a dry run assumes."""

    drain: Sequence[UUID] = ()
    add_slots: int = 0
    requirements: Sequence[Requirement] = ()
    # Another scheduler document; None keeps the pool's own.
    scheduler: str | None = None


@dataclass(frozen=True)
class PlacementChange:
    """A session that would be affected: its slot before and after, and the wait reason."""

    reservation: UUID
    position: int
    before: str
    after: str
    reason: str = ""


@dataclass(frozen=True)
class DryRunResult:
    """The comparison of two cycles."""

    waiting: int
    placed_before: int
    placed_after: int
    newly_placed: Sequence[PlacementChange] = ()
    no_longer_placed: Sequence[PlacementChange] = ()
    moved: Sequence[PlacementChange] = ()
    evicted_before: int = 0
    evicted_after: int = 0
    failures: Sequence[ReasonCount] = field(default_factory=tuple)


def run_dry_run(pool: Pool, what_if: DryRunInput, *, now: datetime) -> DryRunResult:
    """Run both cycles with the scheduler's own code; invalid input is rejected first."""
    current = _configuration(pool.scheduler)
    proposed = current if what_if.scheduler is None else _configuration(what_if.scheduler)
    drained = _drained(pool, what_if.drain)
    if not 0 <= what_if.add_slots <= MAX_NEW_SLOTS:
        text = _("Enter a number from 0 to %(most)s.") % {"most": f"{MAX_NEW_SLOTS:,}"}
        raise InvalidInput({"add_slots": text})
    before = snapshot_of(pool, current, now=now, limit=MAX_QUEUE)
    after = before if proposed is current else snapshot_of(pool, proposed, now=now, limit=MAX_QUEUE)
    after = _with_slots(after, drained, what_if.add_slots)
    after = replace(after, jobs=[*_changed(pool, after, what_if), *after.running])
    return _compared(
        before,
        run_cycle(before, current, keep_scores=False),
        after,
        run_cycle(after, proposed, keep_scores=False),
    )


def _configuration(text: str) -> Configuration:
    try:
        return read_configuration(text)
    except InvalidConfiguration as error:
        raise InvalidInput({"scheduler": error.sentences}) from error


def _drained(pool: Pool, keys: Sequence[UUID]) -> set[str]:
    known = set(
        Slot.objects.filter(pool=pool, state=SlotState.READY, pk__in=keys).values_list("pk", flat=True)
        if keys
        else ()
    )
    unknown = [str(key) for key in keys if key not in known]
    if unknown:
        text = _("These are not READY slots of %(pool)s: %(slots)s.")
        raise InvalidInput({"drain": text % {"pool": pool, "slots": ", ".join(unknown)}})
    return {key.hex for key in known}


def _with_slots(snapshot: Snapshot, drained: set[str], count: int) -> Snapshot:
    """Return the snapshot without some slots, and with new ones of each kind in turn."""
    kinds = islice(cycle(snapshot.templates), count)
    name = _("new slot %(number)s")
    added = [
        replace(new, name=name % {"number": number}, id=f"new-{number:04}")
        for number, new in enumerate(kinds, 1)
    ]
    return replace(snapshot, nodes=[*(node for node in snapshot.nodes if node.id not in drained), *added])


def _changed(pool: Pool, snapshot: Snapshot, what_if: DryRunInput) -> list[Job]:
    """Return the waiting jobs, each with the last requirement that applies to it."""
    amounts: dict[UUID, Mapping[str, Decimal]] = {}
    waiting = Reservation.objects.filter(pool=pool, phase=Phase.PENDING)
    for requirement in what_if.requirements:
        rows = waiting.filter(session=requirement.session) if requirement.session else waiting
        if requirement.definition:
            rows = rows.filter(session__definition=requirement.definition)
        amounts |= dict.fromkeys(rows.values_list("pk", flat=True), requirement.amounts)
    return [
        with_requirements(job, amounts[UUID(job.id)]) if UUID(job.id) in amounts else job
        for job in snapshot.waiting
    ]


def _compared(before: Snapshot, cycle_before: Cycle, after: Snapshot, cycle_after: Cycle) -> DryRunResult:
    names = {node.key: node.name for node in (*before.nodes, *after.nodes)}
    verdicts = {verdict.job.id: verdict for verdict in cycle_before.verdicts}
    moves: dict[str, list[PlacementChange]] = {"new": [], "lost": [], "moved": []}
    for verdict in cycle_after.verdicts:
        for kind, move in _move(verdicts.get(verdict.job.id), verdict, names):
            moves[kind].append(move)
    return DryRunResult(
        waiting=len(cycle_after.verdicts),
        placed_before=len(cycle_before.placed),
        placed_after=len(cycle_after.placed),
        newly_placed=moves["new"],
        no_longer_placed=moves["lost"],
        moved=moves["moved"],
        evicted_before=_victims(cycle_before.evictions),
        evicted_after=_victims(cycle_after.evictions),
        failures=failed_plugins(cycle_after.ssn),
    )


def _move(
    before: Verdict | None, after: Verdict, names: Mapping[str, str]
) -> Iterator[tuple[str, PlacementChange]]:
    slots_before, slots_after = (_slots_text(before, names) if before else ""), _slots_text(after, names)
    if slots_before == slots_after:
        return
    kind = "new" if not slots_before else "moved" if slots_after else "lost"
    reason = after.why.message if after.why else ""
    yield kind, PlacementChange(UUID(after.job.id), after.position, slots_before, slots_after, reason)


def _slots_text(verdict: Verdict, names: Mapping[str, str]) -> str:
    """Return the names of the slots that a job gets; mention evictions that must happen first."""
    if verdict.outcome not in (VerdictOutcome.PLACED, VerdictOutcome.HELD):
        return ""
    found = ", ".join(sorted(names.get(part.node, part.node) for part in verdict.parts))
    if verdict.outcome is VerdictOutcome.PLACED:
        return found
    return _("%(slots)s, after evictions") % {"slots": found}


def _victims(evictions: Sequence[Eviction]) -> int:
    return len({eviction.victim.id for eviction in evictions})
