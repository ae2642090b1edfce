"""Wait reasons of a session, computed by the scheduler's own code over the pool as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.models import Phase, Reservation, Slot
from scheduling.placement.framework.configuration import (
    Configuration,
    InvalidConfiguration,
    read_configuration,
)
from scheduling.placement.framework.cycle import Cycle, Verdict, VerdictOutcome, run_cycle
from scheduling.placement.framework.explanation import ReasonCount, failed_plugins, reasons_on
from scheduling.placement.framework.gangs import longest_placeable_prefix
from scheduling.placement.framework.model import Job, Node, Snapshot, Task
from scheduling.placement.framework.session import SchedulingSession
from scheduling.selectors.new_slots import incoming_nodes, new_slots_of, slots_in_transition
from scheduling.selectors.next_steps import EvaluatedReservation, NextStep, next_steps
from scheduling.selectors.queue import queue_snapshot
from scheduling.selectors.slots import is_emptying
from scheduling.selectors.snapshots import snapshot_of

# A queue up to this length is simulated as a whole, to find which sessions get the incoming slots.
MAX_QUEUE = 500
SLOTS_SHOWN = 200
# A cycle is late after this many intervals.
LATE_CYCLES = 3


@dataclass(frozen=True)
class SlotReasons:
    """All reasons why a session does not fit one slot."""

    id: UUID
    name: str
    reasons: Sequence[str]


@dataclass(frozen=True)
class WaitExplanation:
    """Wait reasons and next steps of a session."""

    reservation: Reservation
    outcome: str
    message: str
    position: int | None
    waiting: int
    ordered_at: datetime | None
    slots: int = 0
    reasons: Sequence[ReasonCount] = ()
    failures: Sequence[ReasonCount] = ()
    steps: Sequence[NextStep] = ()
    # False while the first scheduling cycle after the request is due.
    decided: bool = True
    by_slot: Sequence[SlotReasons] = field(default_factory=list)

    @property
    def ahead(self) -> int | None:
        return self.position - 1 if self.position else None

    @property
    def evaluated(self) -> bool:
        """Return whether slots were evaluated; False if the session may not be placed on any slot now."""
        return self.outcome != VerdictOutcome.REFUSED


def explain_session(session: LabletSession, *, now: datetime, by_slot: bool = False) -> WaitExplanation:
    """Return the wait reasons; raise if the session is not waiting."""
    claims = Reservation.objects.select_related("pool__queue_order", "held_slot__pool", "last_verdict")
    claim = claims.filter(session=session, phase=Phase.PENDING).first()
    if session.status != SessionStatus.PENDING or claim is None:
        status = SessionStatus(session.status).label.lower()
        text = _("Session %(session)s is %(status)s: it is not waiting for a slot.")
        raise StateConflict(text % {"session": session.short_id, "status": status})
    order = queue_snapshot(claim.pool)
    queue_state = (order.position_of(claim.pk), len(order), order.at)
    try:
        configuration = read_configuration(claim.pool.scheduler)
    except InvalidConfiguration as error:
        text = _("The scheduler of %(pool)s is invalid, so nothing is placed.") % {"pool": claim.pool}
        return WaitExplanation(claim, VerdictOutcome.WAITING, f"{text} {error}", *queue_state)
    return _explained(claim, configuration, queue_state, now=now, by_slot=by_slot)


def _is_new(claim: Reservation, now: datetime) -> bool:
    """Return whether the first cycle after the request is still due; a late one means that none runs."""
    due = timedelta(seconds=settings.CONFIG["TICK_INTERVAL"] * LATE_CYCLES)
    since = claim.joins_queue_at or claim.created_at
    return since <= now < since + due and not hasattr(claim, "last_verdict")


def _explained(
    claim: Reservation,
    configuration: Configuration,
    queue_state: tuple[int | None, int, datetime | None],
    *,
    now: datetime,
    by_slot: bool,
) -> WaitExplanation:
    is_simulated = queue_state[1] <= MAX_QUEUE
    moving = slots_in_transition(claim.pool)
    coming = incoming_nodes(new_slots_of(claim.pool), moving, now=now)
    snapshot = snapshot_of(
        claim.pool,
        configuration,
        now=now,
        limit=MAX_QUEUE,
        only=None if is_simulated else claim.pk,
        coming=[node for _slot, node in coming],
    )
    job = next((each for each in snapshot.waiting if UUID(each.id) == claim.pk), None)
    if job is None:
        raise StateConflict(_("The session has just been placed or has just ended."))
    evaluated = evaluate(claim, job, snapshot, configuration, coming, moving, is_simulated=is_simulated)
    verdict, cycle = evaluated.verdict, evaluated.cycle
    why = verdict.why
    return WaitExplanation(
        claim,
        verdict.outcome.value,
        verdict_text(claim, verdict, cycle, ahead=(queue_state[0] or queue_state[1] + 1) - 1),
        *queue_state,
        slots=len(snapshot.nodes),
        reasons=why.counts if why else (),
        failures=why.failures if why else failed_plugins(cycle.ssn),
        steps=next_steps(evaluated, now=now),
        decided=not _is_new(claim, now),
        by_slot=_by_slot(cycle, verdict, job) if by_slot else [],
    )


def evaluate(
    claim: Reservation,
    job: Job,
    snapshot: Snapshot,
    configuration: Configuration,
    coming: Sequence[tuple[Slot, Node]],
    moving: Sequence[Slot],
    *,
    is_simulated: bool,
) -> EvaluatedReservation:
    """Run a cycle over one job of a snapshot alone; `moving` are the slots in transition."""
    alone = replace(snapshot, jobs=[job, *snapshot.running])
    cycle = run_cycle(alone, configuration, keep_scores=False)
    (verdict,) = cycle.verdicts
    return EvaluatedReservation(
        claim,
        job,
        verdict,
        cycle,
        alone,
        snapshot if is_simulated else None,
        configuration,
        coming,
        occupied=len(moving) + len(snapshot.nodes),
        emptying=sum(is_emptying(slot) for slot in moving),
    )


def verdict_text(claim: Reservation, verdict: Verdict, cycle: Cycle, *, ahead: int) -> str:
    """Return the result of a cycle as a sentence."""
    if verdict.outcome is VerdictOutcome.PLACED:
        slot_name = node_name(cycle.ssn.snapshot, verdict.parts[0].node)
        if not ahead:
            return _("It fits on %(slot)s: the next tick places it.") % {"slot": slot_name}
        text = ngettext(
            "It fits on %(slot)s. The session ahead of it comes first.",
            "It fits on %(slot)s. The %(count)s sessions ahead of it come first.",
            ahead,
        )
        return text % {"slot": slot_name, "count": f"{ahead:,}"}
    if verdict.outcome is VerdictOutcome.HELD:
        if claim.held_slot is not None:
            text = _("Space is being cleared for it on %(slot)s: sessions there are stopping.")
            return text % {"slot": claim.held_slot}
        text = ngettext(
            "The next tick stops a session to make room for it.",
            "The next tick stops %(count)s sessions to make room for it.",
            len(cycle.evictions),
        )
        return text % {"count": f"{len(cycle.evictions):,}"}
    assert verdict.why is not None
    text = verdict.why.message
    if verdict.unplaced is not None and verdict.job.is_spread:
        first = _("Node %(node)s fits no slot.") % {"node": verdict.unplaced.task.name}
        return f"{first} {text}"
    return text


def _by_slot(cycle: Cycle, verdict: Verdict, job: Job) -> list[SlotReasons]:
    """Return reasons by slot for the task that fits no node, with the tasks before it placed."""
    ssn = cycle.ssn
    if verdict.unplaced is None:
        return _reasons_by_slot(ssn, job.whole, job)
    if not job.is_spread:
        return _reasons_by_slot(ssn, verdict.unplaced.task, job)
    with longest_placeable_prefix(ssn, job) as (unplaced, _placed):
        return _reasons_by_slot(ssn, (unplaced or verdict.unplaced).task, job)


def _reasons_by_slot(ssn: SchedulingSession, task: Task, job: Job) -> list[SlotReasons]:
    return [
        SlotReasons(UUID(node.id), node.name, [reason.text for reason in reasons_on(ssn, task, job, number)])
        for number, node in enumerate(ssn.nodes.rows[:SLOTS_SHOWN])
    ]


def node_name(snapshot: Snapshot, key: str) -> str:
    return next((node.name for node in snapshot.nodes if node.key == key), None) or _("a removed slot")
