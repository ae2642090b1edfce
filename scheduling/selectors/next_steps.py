"""Next steps of a waiting session, and actions that would help it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from lcm.domain.resources import RESOURCE, RESOURCE_NAMES
from lcm.models.messages import translated
from scheduling.capacity.offerings import next_retry_at
from scheduling.capacity.runtimes.base import Market, RuntimeFailure
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.models import Reservation, Slot
from scheduling.placement.framework.amounts import UNIT, amount_text
from scheduling.placement.framework.configuration import Configuration
from scheduling.placement.framework.cycle import Cycle, Verdict, VerdictOutcome, run_cycle
from scheduling.placement.framework.demand import slots_needed
from scheduling.placement.framework.explanation import explain, smaller_request
from scheduling.placement.framework.model import Job, Node, Snapshot
from scheduling.placement.framework.session import SchedulingSession
from scheduling.placement.plugins.timeslot import TOO_EARLY
from scheduling.selectors.launchable_slots import LaunchableSlots
from scheduling.selectors.lead_time import configured_lead_time
from scheduling.selectors.new_slots import new_slots_of


@dataclass(frozen=True)
class NextStep:
    """An expected event or a possible action: a sentence, with the slot and the time."""

    kind: str
    text: str
    slot: Slot | None = None
    at: datetime | None = None


@dataclass(frozen=True)
class EvaluatedReservation:
    """A reservation, and the result of a cycle over it alone."""

    claim: Reservation
    job: Job
    verdict: Verdict
    cycle: Cycle
    alone: Snapshot
    # With all waiting reservations, if they are few enough to simulate.
    queue: Snapshot | None
    configuration: Configuration
    # Incoming slots as they will be.
    coming: Sequence[tuple[Slot, Node]]
    # The number of slots that count against the pool's maximum, and how many become free without action.
    occupied: int
    emptying: int


def next_steps(found: EvaluatedReservation, *, now: datetime) -> list[NextStep]:
    match found.verdict.outcome:
        case VerdictOutcome.PLACED:
            return []
        case VerdictOutcome.HELD:
            return _held(found)
        case VerdictOutcome.REFUSED:
            return [_refused(found)]
        case VerdictOutcome.IMPOSSIBLE:
            return [_impossible(found)]
    launching = _launch_obstacle(found, now) or _launch(found, now)
    return [*_incoming(found), *_smaller(found), launching]


def _held(found: EvaluatedReservation) -> list[NextStep]:
    slot = found.claim.held_slot
    text = _(
        "It is placed on %(slot)s when the sessions there have stopped. The space is reserved until then."
    )
    return [NextStep("held", text % {"slot": slot}, slot, found.claim.held_until)] if slot else []


def _refused(found: EvaluatedReservation) -> NextStep:
    why = found.verdict.why
    code = why.main_reason if why else ""
    if code == TOO_EARLY:
        at = datetime.fromtimestamp(found.job.starts, UTC) - configured_lead_time(found.configuration)
        text = _("It is placed as soon as it has joined the queue and a slot has space.")
        return NextStep("turn", text, at=at)
    if code == "quota":
        text = _(
            "Sessions of the same queue must end, or an Admin must raise the limit in the pool's scheduler."
        )
        return NextStep("quota", text)
    return NextStep("refused", why.message if why else _("The session cannot be placed now."))


def _impossible(found: EvaluatedReservation) -> NextStep:
    """Explain why the session fits no slot even if the slot were empty."""
    empty_session = SchedulingSession(
        replace(found.alone, nodes=found.cycle.ssn.empty_node_kinds.rows, jobs=[])
    )
    empty_session.open(found.configuration.plugins_for_cycle())
    task = found.verdict.unplaced.task if found.verdict.unplaced else found.job.whole
    counts = explain(empty_session, task, found.job).counts
    if not counts:
        text = _("No slot of %(pool)s can ever hold it: its kernels need more than all slots have.")
        return NextStep("impossible", text % {"pool": found.claim.pool})
    reasons = "; ".join(each.text for each in counts)
    text = _("No slot of %(pool)s can ever hold it, even when empty: %(reasons)s.")
    return NextStep("impossible", text % {"pool": found.claim.pool, "reasons": reasons})


def _incoming(found: EvaluatedReservation) -> Iterator[NextStep]:
    """Return the incoming slot that fits, and whether the sessions ahead of it leave space there."""
    nodes = [node for _slot, node in found.coming]
    fits = _assigned_node(replace(found.alone, nodes=nodes), found)
    if fits is None:
        return
    assigned = None
    if found.queue is not None:
        assigned = _assigned_node(replace(found.queue, nodes=[*found.queue.nodes, *nodes]), found)
    slots = {node.key: slot for slot, node in found.coming}
    slot = slots.get(assigned or "", slots[fits])
    slot.pool = found.claim.pool
    text = _("%(slot)s is %(state)s and fits it, after the sessions ahead.")
    if assigned in slots:
        text = _("%(slot)s is %(state)s and will hold it.")
    text %= {"slot": slot, "state": slot.get_state_display().lower()}
    yield NextStep("booting", text, slot, slot.state_deadline)


def _assigned_node(snapshot: Snapshot, found: EvaluatedReservation) -> str | None:
    """Return the node that the job gets in a cycle over this snapshot."""
    cycle = run_cycle(snapshot, found.configuration, keep_scores=False)
    placed = (verdict for verdict in cycle.placed if verdict.job.id == found.job.id)
    return next((verdict.parts[0].node for verdict in placed), None)


def _smaller(found: EvaluatedReservation) -> Iterator[NextStep]:
    unplaced = found.verdict.unplaced
    smaller = smaller_request(found.cycle.ssn, unplaced.task, found.job) if unplaced else None
    if unplaced is None or smaller is None:
        return
    pairs = zip(RESOURCE_NAMES, smaller.request, unplaced.task.request, strict=True)
    changes = [
        _("%(amount)s of %(resource)s instead of %(requested)s")
        % {
            "amount": amount_text(amount, name),
            "resource": translated(RESOURCE[name].word),
            "requested": f"{requested / UNIT:g}",
        }
        for name, amount, requested in pairs
        if name in smaller.changed
    ]
    text = ngettext(
        "With a smaller request it would fit %(count)s slot now: %(changes)s.",
        "With a smaller request it would fit %(count)s slots now: %(changes)s.",
        smaller.nodes,
    )
    values = {"changes": ", ".join(changes), "count": f"{smaller.nodes:,}"}
    yield NextStep("smaller", text % values)


def _launch_obstacle(found: EvaluatedReservation, now: datetime) -> NextStep | None:
    """Return why no slot can be launched for any session."""
    pool = found.claim.pool
    if not pool.enabled:
        return NextStep("off", _("%(pool)s is disabled: no slot is launched.") % {"pool": pool})
    if pool.stopped_reason:
        text = _("%(pool)s launches nothing: %(reason)s.")
        return NextStep("stopped", text % {"pool": pool, "reason": pool.stopped_reason.rstrip(".")})
    if pool.backoff_until and pool.backoff_until > now:
        text = _("%(pool)s is backing off after failures.") % {"pool": pool}
        return NextStep("backoff", text, at=pool.backoff_until)
    if found.occupied >= pool.max_slots:
        maximum = ngettext(
            "%(pool)s is at its maximum of %(count)s slot.",
            "%(pool)s is at its maximum of %(count)s slots.",
            pool.max_slots,
        ) % {"pool": pool, "count": f"{pool.max_slots:,}"}
        advice = _("A running session must end first.")
        if found.occupied - found.emptying < pool.max_slots:
            advice = _("An idle slot terminates to make room.")
        return NextStep("full", f"{maximum} {advice}")
    return None


def _launch(found: EvaluatedReservation, now: datetime) -> NextStep:
    """Return the launch for the session, or why no suitable slot can be launched now."""
    pool = found.claim.pool
    new_slots = new_slots_of(pool)
    text = _("%(pool)s can launch more slots for sessions that do not fit.")
    default_step = NextStep("launch", text % {"pool": pool})
    try:
        runtime = runtime_for(pool)
    except RuntimeFailure:
        return default_step
    stock = LaunchableSlots(new_slots, runtime, most=1, now=now)
    if slots_needed([found.job], (), stock.supplies(), limit=1).new:
        return default_step
    if new_slots.workers:
        text = _("Every worker of %(pool)s that suits it is already in use.")
        return NextStep("workers", text % {"pool": pool})
    if len(new_slots.markets) == 1:
        return default_step
    text = _("It needs an on-demand slot, which the provider recently refused. LCM requests it again.")
    return NextStep("on-demand", text, at=next_retry_at(pool, runtime, Market.ON_DEMAND))
