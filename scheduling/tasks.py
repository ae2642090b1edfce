"""Celery tasks of scheduling. Beat repeats them, so a lost message costs one interval."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from scheduling.capacity.launcher import attempts_to_redrive, perform_launch
from scheduling.capacity.reconciler import reconcile_pool
from scheduling.capacity.runtimes.base import RuntimeAdapter, RuntimeFailure
from scheduling.capacity.runtimes.registry import UnusableRuntime, runtime_for
from scheduling.capacity.tick import TICK_RETENTION, scheduling_tick
from scheduling.coordination.coordinator import coordinator, process_handler, process_observer
from scheduling.coordination.leases import delete_expired_lease, expired_leases
from scheduling.metrics import TickMetrics
from scheduling.models import AttemptOutcome, LaunchAttempt, Pool, ProcessLease, TickRun
from scheduling.services.decisions import delete_old_decisions
from scheduling.services.observer_failures import announce_failing_observers
from scheduling.services.observer_runs import delete_old_runs
from scheduling.services.pool_announcements import announce_launches_resumed
from scheduling.services.pools import stop_pool
from scheduling.services.wait_targets import announce_exceeded_targets

logger = logging.getLogger(__name__)

# In Redis 0 is the highest priority: launches that wait for a provider must not delay ticks.
AFTER_TICKS = 6


@shared_task
def tick_all() -> None:
    """Enqueue a tick for each pool, so that pools do not wait for one another."""
    for pool_id in Pool.objects.values_list("pk", flat=True):
        tick_pool.apply_async((str(pool_id),), expires=30)


@shared_task
def tick_pool(pool_id: str) -> None:
    pool = Pool.objects.filter(pk=pool_id).first()
    if pool is None:
        return
    report = scheduling_tick(pool, runtime_of(pool), timezone.now, TickMetrics())
    if report is not None:
        for attempt_id in [*report.attempts, *attempts_to_redrive(pool, now=timezone.now())]:
            launch_slot.apply_async((str(attempt_id),), priority=AFTER_TICKS)


@shared_task
def launch_slot(attempt_id: str) -> None:
    attempt = LaunchAttempt.objects.select_related("slot__pool").filter(pk=attempt_id).first()
    if attempt is not None and attempt.outcome == AttemptOutcome.OPEN:
        perform_launch(UUID(attempt_id), runtime_of(attempt.slot.pool), timezone.now)


@shared_task
def reconcile_all() -> None:
    for pool_id in Pool.objects.values_list("pk", flat=True):
        reconcile.apply_async((str(pool_id),), expires=30)


@shared_task
def reconcile(pool_id: str) -> None:
    pool = Pool.objects.filter(pk=pool_id).first()
    if pool is not None:
        reconcile_pool(pool, runtime_of(pool), timezone.now)


@shared_task
def delete_old_records() -> None:
    """Delete ticks and expired leases after two days, decisions as configured, runs after a month."""
    now = timezone.now()
    TickRun.objects.filter(started_at__lt=now - TICK_RETENTION).delete()
    ProcessLease.objects.filter(expires_at__lt=now - TICK_RETENTION).delete()
    delete_old_decisions(now=now)
    delete_old_runs(now=now)


@shared_task
def detect_events() -> None:
    """Record long waits, failing observers and the end of back-offs, each once."""
    now = timezone.now()
    announce_exceeded_targets(now=now)
    announce_failing_observers(now=now)
    announce_launches_resumed(now=now)


@shared_task
def run_handler(name: str) -> None:
    process_handler(name)


@shared_task
def run_observer(name: str) -> None:
    process_observer(name)


@shared_task
def resume_interrupted() -> None:
    """Enqueue the work of each lease that expired: its holder died, or lost its database connection."""
    for name, holder in expired_leases():
        kind, _, key = name.partition(":")
        task = _task_under(kind, key)
        if task is not None:
            logger.warning("interrupted_work_resumed", extra={"lease": name})
            task.apply_async((key,), expires=30, priority=AFTER_TICKS if kind == "launch" else None)
            delete_expired_lease(name, holder=holder)


def _task_under(kind: str, key: str) -> Any:
    """Return the task that holds leases of this kind; None for leases of controllers."""
    if kind == "observer":
        return run_handler if key in coordinator.handlers else run_observer
    return {"tick": tick_pool, "reconcile": reconcile, "launch": launch_slot}.get(kind)


def runtime_of(pool: Pool) -> RuntimeAdapter:
    """Return the pool's runtime; if it is misconfigured, stop the pool and return a placeholder."""
    try:
        return runtime_for(pool)
    except RuntimeFailure as error:
        stop_pool(pool=pool, reason=str(error), now=timezone.now())
        return UnusableRuntime(pool.name, str(error))
