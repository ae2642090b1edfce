"""Background work of capacity: re-driven by beat, so a lost message costs one interval."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from celery import shared_task
from django.utils import timezone

from scheduling.launching import perform_launch
from scheduling.metrics import TickMetrics
from scheduling.models import AttemptOutcome, LaunchAttempt, Pool, TickRun
from scheduling.reconciler import reconcile_pool
from scheduling.runtimes.registry import runtime_for
from scheduling.services.decisions import forget_decisions
from scheduling.tick import KEPT_TICKS, scheduling_tick

# An open attempt this old has no task any more, or one that is still at it: asking again is harmless.
REDRIVE_AFTER = timedelta(seconds=30)


@shared_task
def tick_all() -> None:
    """A tick for each pool, in tasks of their own so that pools do not wait for one another."""
    for pool_id in Pool.objects.values_list("pk", flat=True):
        tick_pool.apply_async((str(pool_id),), expires=30)


@shared_task
def tick_pool(pool_id: str) -> None:
    pool = Pool.objects.filter(pk=pool_id).first()
    if pool is None:
        return
    report = scheduling_tick(pool, runtime_for(pool), timezone.now, TickMetrics())
    if report is not None:
        for attempt_id in [*report.attempts, *_forgotten(pool)]:
            launch_slot.apply_async((str(attempt_id),))


@shared_task
def launch_slot(attempt_id: str) -> None:
    attempt = LaunchAttempt.objects.select_related("slot__pool").filter(pk=attempt_id).first()
    if attempt is not None and attempt.outcome == AttemptOutcome.OPEN:
        perform_launch(UUID(attempt_id), runtime_for(attempt.slot.pool), timezone.now)


@shared_task
def reconcile_all() -> None:
    for pool_id in Pool.objects.values_list("pk", flat=True):
        reconcile.apply_async((str(pool_id),), expires=30)


@shared_task
def reconcile(pool_id: str) -> None:
    pool = Pool.objects.filter(pk=pool_id).first()
    if pool is not None:
        reconcile_pool(pool, runtime_for(pool), timezone.now)


@shared_task
def forget_ticks() -> None:
    """Ticks are kept for two days, decisions as the settings say."""
    TickRun.objects.filter(started_at__lt=timezone.now() - KEPT_TICKS).delete()
    forget_decisions(now=timezone.now())


def _forgotten(pool: Pool) -> list[UUID]:
    """Open attempts whose task may have been lost with a worker or a broker."""
    old = timezone.now() - REDRIVE_AFTER
    open_attempts = LaunchAttempt.objects.filter(
        slot__pool=pool, outcome=AttemptOutcome.OPEN, requested_at__lt=old
    )
    return list(open_attempts.values_list("pk", flat=True)[:500])
