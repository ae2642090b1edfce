"""The stateless tick: steps in a fixed order, failures isolated, one tick per pool at a time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from lcm.domain.storable_text import remove_unstorable
from scheduling.capacity.runtimes.base import RuntimeAdapter
from scheduling.capacity.steps.context import TickContext
from scheduling.capacity.steps.expire import expire
from scheduling.capacity.steps.interrupt import interrupt
from scheduling.capacity.steps.launch import keep_minimum, launch_for_demand
from scheduling.capacity.steps.place import place_waiting
from scheduling.capacity.steps.scale_down import scale_down
from scheduling.capacity.tick_trigger import inside_tick
from scheduling.coordination.leases import lease
from scheduling.metrics import TickMetrics
from scheduling.models import Pool, TickRun

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=3)
TICK_RETENTION = timedelta(days=2)
# Counts of conditions that a tick found but did not act on.
FINDINGS = {"unmet"}

Step = Callable[[TickContext], None]
STEPS: tuple[tuple[str, Step], ...] = (
    ("expire", expire),
    ("interrupt", interrupt),
    ("place", place_waiting),
    ("launch", launch_for_demand),
    ("keep_minimum", keep_minimum),
    ("scale_down", scale_down),
)


def scheduling_tick(
    pool: Pool, runtime: RuntimeAdapter, clock: Callable[[], datetime], metrics: TickMetrics
) -> TickContext | None:
    """Run one tick of a pool; None if another process holds the lease. Calls no provider."""
    with lease(f"tick:{pool.pk}", length=LEASE) as hold:
        if hold is None:
            return None
        inside = inside_tick.set(True)
        try:
            tick = TickContext(pool=pool, runtime=runtime, now=clock(), is_lease_held=hold.is_held)
            _run(tick)
            with _isolated(tick, "record"):
                _record(tick)
        finally:
            inside_tick.reset(inside)
    with _isolated(tick, "metrics"):
        metrics.observe(pool, tick)
    return tick


def _run(tick: TickContext) -> None:
    for name, step in STEPS:
        started = time.perf_counter()
        with _isolated(tick, name):
            if not tick.is_lease_held():
                tick.errors[name] = "the lease was lost"
                break
            step(tick)
        tick.step_ms[name] = round((time.perf_counter() - started) * 1000, 2)


@contextmanager
def _isolated(tick: TickContext, name: str) -> Iterator[None]:
    """Log a failing step and continue with the next, so that launches already recorded are performed."""
    try:
        yield
    except Exception as error:
        logger.exception("tick_step_failed", extra={"pool": tick.pool.name, "step": name})
        tick.errors[name] = remove_unstorable(f"{type(error).__name__}: {error}")[:300]


def _record(tick: TickContext) -> None:
    """Write a row for each tick that did something; of consecutive idle ticks keep the newest.

    Placements and new wait reasons count as work, so a row with decisions is never overwritten.
    """
    values = {
        "started_at": tick.now,
        "duration_ms": round(sum(tick.step_ms.values())),
        "step_ms": tick.step_ms,
        "counts": tick.counts,
        "errors": tick.errors,
        "plugins": tick.plugins,
    }
    newest = TickRun.objects.filter(pool=tick.pool).order_by("-started_at").first()
    is_idle = not tick.errors and tick.counts.keys() <= FINDINGS
    if newest and is_idle and not newest.errors and newest.counts == tick.counts:
        TickRun.objects.filter(pk=newest.pk).update(**values)
    else:
        TickRun.objects.create(pk=tick.id, pool=tick.pool, **values)
