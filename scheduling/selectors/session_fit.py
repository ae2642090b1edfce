"""Whether a session would be placed if it were requested now. Nothing is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.models import Kernel
from scheduling.models import Pool, Reservation
from scheduling.placement.framework.configuration import read_configuration
from scheduling.placement.framework.cycle import VerdictOutcome, run_cycle
from scheduling.placement.framework.model import Job, Snapshot, Task
from scheduling.selectors.lead_time import is_advance_booking
from scheduling.selectors.new_slots import incoming_nodes, new_slots_of, slots_in_transition
from scheduling.selectors.next_steps import EvaluatedReservation, NextStep, next_steps
from scheduling.selectors.snapshots import ReservationRow, ports_by_kernel, snapshot_of
from scheduling.selectors.wait_reasons import MAX_QUEUE, evaluate, node_name, verdict_text


@dataclass(frozen=True)
class SessionFit:
    """The expected result of a request: a short answer, the reason, and the next steps."""

    pool: Pool
    tone: str
    answer: str
    text: str = ""
    at: datetime | None = None
    steps: Sequence[NextStep] = ()


def session_fit(draft: Reservation, kernels: Sequence[Kernel], *, now: datetime) -> SessionFit:
    """Run a scheduling cycle over the pool and its queue with an unsaved reservation.

    Raises `InvalidConfiguration` if the scheduler of the pool is invalid.
    """
    if is_advance_booking(draft, now):
        text = _("The session joins the queue of %(pool)s before its timeslot starts.")
        answer = _("Advance booking.")
        return SessionFit(draft.pool, "idle", answer, text % {"pool": draft.pool}, draft.joins_queue_at)
    configuration = read_configuration(draft.pool.scheduler)
    moving = slots_in_transition(draft.pool)
    coming = incoming_nodes(new_slots_of(draft.pool), moving, now=now)
    snapshot = snapshot_of(
        draft.pool,
        configuration,
        now=now,
        limit=MAX_QUEUE,
        coming=[node for _slot, node in coming],
        requested=[_row(draft)],
    )
    job = next(each for each in snapshot.waiting if each.id == str(draft.pk))
    if draft.spread:
        job.tasks = _tasks(kernels, draft.port_names)
    found = evaluate(draft, job, snapshot, configuration, coming, moving, is_simulated=True)
    return _result(draft, found, snapshot, job, now=now)


def _result(
    draft: Reservation, found: EvaluatedReservation, snapshot: Snapshot, job: Job, *, now: datetime
) -> SessionFit:
    outcome = found.verdict.outcome
    if outcome is VerdictOutcome.PLACED:
        return _placed(draft, found, snapshot, job)
    tone, answer = {
        VerdictOutcome.HELD: ("warn", _("It fits after other sessions stop.")),
        VerdictOutcome.IMPOSSIBLE: ("bad", _("It never fits.")),
    }.get(outcome, ("warn", _("It does not fit now.")))
    text = verdict_text(draft, found.verdict, found.cycle, ahead=0)
    return SessionFit(draft.pool, tone, answer, text, steps=next_steps(found, now=now))


def _placed(draft: Reservation, found: EvaluatedReservation, snapshot: Snapshot, job: Job) -> SessionFit:
    """Return where it is placed now, or how many sessions come first."""
    cycle = run_cycle(snapshot, found.configuration, keep_scores=False)
    verdict = next(each for each in cycle.verdicts if each.job is job)
    if verdict.outcome is VerdictOutcome.PLACED:
        text = _("The next scheduling cycle places it on %(slot)s.")
        slot_name = node_name(snapshot, verdict.parts[0].node)
        return SessionFit(draft.pool, "good", _("It fits now."), text % {"slot": slot_name})
    ahead = verdict.position - 1
    text = ngettext(
        "%(slot)s has space, but the session ahead in the queue comes first.",
        "%(slot)s has space, but the %(count)s sessions ahead in the queue come first.",
        ahead,
    )
    slot_name = node_name(snapshot, found.verdict.parts[0].node)
    values = {"slot": slot_name, "count": f"{ahead:,}"}
    return SessionFit(draft.pool, "warn", _("It waits in the queue."), text % values)


def _row(draft: Reservation) -> ReservationRow:
    session = draft.session
    assert session is not None
    named = session.project_id and session.owner_id
    return ReservationRow(
        key=str(draft.pk),
        priority=draft.priority,
        created=draft.created_at.timestamp(),
        preemptible=draft.preemptible,
        spread=draft.spread,
        held_on=None,
        held_to=None,
        session=None,
        project=str(session.project_id) if named else None,
        owner=str(session.owner_id) if named else None,
        starts=session.starts_at.timestamp(),
        ends=session.ends_at.timestamp(),
        holder="",
        label_text=json.dumps(draft.labels),
        port_count=len(draft.port_names),
        last_summary=None,
        amounts=draft.amounts.to_hundredths(),
    )


def _tasks(kernels: Sequence[Kernel], port_names: Sequence[str]) -> tuple[Task, ...]:
    """Return one task per kernel, as for a session whose kernels may be on different slots."""
    ordered = sorted(kernels, key=lambda kernel: kernel.node_label)
    ports = ports_by_kernel([kernel.node_label for kernel in ordered], port_names)
    return tuple(
        Task(kernel.node_label, kernel.amounts.to_hundredths(), len(ports[kernel.node_label]))
        for kernel in ordered
    )
