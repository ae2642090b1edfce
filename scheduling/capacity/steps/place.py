"""Step 3: place waiting reservations on READY slots by the pool's plugins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db import transaction

from lcm.db.parallel import run_in_parallel
from scheduling.capacity.steps.context import TickContext
from scheduling.models import Phase, Reservation
from scheduling.placement.framework.configuration import read_configuration
from scheduling.placement.framework.cycle import Cycle, Verdict, VerdictOutcome, run_cycle
from scheduling.placement.framework.explanation import clipped_text
from scheduling.placement.framework.garbage_collector import garbage_collector_paused
from scheduling.selectors.snapshots import snapshot_of
from scheduling.services.assignment import assign_slots
from scheduling.services.decisions import record_decisions, record_order, save_verdicts
from scheduling.services.evictions import evict_victims

# A tick considers this many reservations from the head of the queue.
QUEUE_HEAD = 50_000
BATCH_SIZE = 2_000


@garbage_collector_paused()
def place_waiting(tick: TickContext) -> None:
    """Decide in memory and commit in batches; the unplaced reservations are the demand for new slots."""
    if not Reservation.objects.filter(pool=tick.pool, phase=Phase.PENDING).exists():
        record_order(tick.pool, [], now=tick.now)
        return
    configuration = read_configuration(tick.pool.scheduler)
    snapshot = snapshot_of(tick.pool, configuration, now=tick.now, limit=QUEUE_HEAD)
    cycle = run_cycle(snapshot, configuration)
    tick.plugins = _plugin_figures(cycle)
    tick.unmet = cycle.unmet
    commit_cycle(tick, cycle)
    tick.count("unmet", len(tick.unmet))


def commit_cycle(tick: TickContext, cycle: Cycle) -> None:
    waiting = [verdict for verdict in cycle.verdicts if verdict.outcome is not VerdictOutcome.PLACED]
    changed = [verdict for verdict in waiting if verdict.summary != verdict.job.verdict]
    # Sort by slot, so that two batches seldom lock the same slot.
    placed = sorted(cycle.placed, key=lambda verdict: verdict.parts[0].node)
    batches = [placed[start : start + BATCH_SIZE] for start in range(0, len(placed), BATCH_SIZE)]
    jobs = [partial(_place, tick, batch) for batch in batches]
    if changed:
        jobs.append(partial(_record_wait_reasons, tick, changed))
    results, errors = run_in_parallel(jobs)
    for placed_now, new_reasons in results:
        tick.count("placed", placed_now)
        tick.count("new_wait_reasons", new_reasons)
    if errors:
        raise errors[0]
    # If the lease is lost, another process runs its own cycle.
    if not tick.is_lease_held():
        return
    if cycle.evictions:
        tick.count("evicted", evict_victims(tick.pool, cycle, now=tick.now))
    record_order(tick.pool, waiting, now=tick.now)


def _place(tick: TickContext, batch: Sequence[Verdict]) -> tuple[int, int]:
    """Assign the slots and record the decisions; return how many were placed."""
    if not tick.is_lease_held():
        return 0, 0
    with transaction.atomic():
        done = assign_slots(tick.pool, batch, now=tick.now)
        record_decisions(tick.pool, done, tick_id=tick.id, now=tick.now)
    return len(done), 0


def _record_wait_reasons(tick: TickContext, changed: Sequence[Verdict]) -> tuple[int, int]:
    """Record new wait reasons; return how many changed."""
    if not tick.is_lease_held():
        return 0, 0
    with transaction.atomic():
        new_reasons = record_decisions(tick.pool, changed, tick_id=tick.id, now=tick.now)
        save_verdicts(changed)
    return 0, new_reasons


def _plugin_figures(cycle: Cycle) -> dict[str, dict[str, float | str]]:
    """Return time and failures by plugin."""
    ssn = cycle.ssn
    figures: dict[str, dict[str, float | str]] = {
        name: {"ms": round(seconds * 1000, 3)} for name, seconds in sorted(ssn.timings.seconds.items())
    }
    for name, error in ssn.failures.by_plugin.items():
        figures.setdefault(name, {}).update(error=error, failures=ssn.failures.count[name])
    for name, score in ssn.failures.clipped.items():
        figures.setdefault(name, {}).update(warning=clipped_text(score))
    return figures
