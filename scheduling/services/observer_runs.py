"""Runs of observers and handlers: record, delete and enqueue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from lcm.services.task_queue import enqueue_task
from scheduling.models import HandlerFailure, ObserverRun, RunKind

RETENTION = timedelta(days=30)
_COUNTS = ("success_count", "failure_count", "stale_count", "skipped_count")


def record_run(*, kind: RunKind, name: str, started_at: datetime, duration_ms: int, result: Any) -> None:
    """Record a run; of consecutive idle runs only the newest is kept."""
    counts = {each: getattr(result, each, 0) for each in _COUNTS}
    values = {**counts, "started_at": started_at, "duration_ms": duration_ms, "error": result.error[:500]}
    newest = ObserverRun.objects.filter(observer=name).order_by("-started_at").first()
    if newest is not None and _is_idle(newest, result.error, counts):
        ObserverRun.objects.filter(pk=newest.pk).update(**values)
    else:
        ObserverRun.objects.create(kind=kind, observer=name, **values)


def _is_idle(newest: ObserverRun, error: str, counts: Mapping[str, int]) -> bool:
    """Return whether both the last run and this one did nothing."""
    return not (error or newest.error or any(getattr(newest, each) or counts[each] for each in _COUNTS))


def delete_old_runs(*, now: datetime) -> int:
    return ObserverRun.objects.filter(started_at__lt=now - RETENTION).delete()[0]


def enqueue_run(kind: RunKind, name: str) -> None:
    """Enqueue a run; raise Unavailable if the broker is down."""
    task = "scheduling.tasks.run_observer" if kind == RunKind.OBSERVER else "scheduling.tasks.run_handler"
    enqueue_task(task, name)


def count_failures(handler: str, reasons: Mapping[UUID, str], *, now: datetime) -> dict[UUID, int]:
    """Count one more consecutive failure for each session; return the new counts."""
    if not reasons:
        return {}
    with transaction.atomic():
        known = {
            row.session_id: row
            for row in HandlerFailure.objects.select_for_update().filter(
                handler=handler, session__in=list(reasons)
            )
        }
        for key, row in known.items():
            row.failures, row.last_at, row.reason = row.failures + 1, now, reasons[key][:500]
        HandlerFailure.objects.bulk_update(known.values(), ["failures", "last_at", "reason"])
        new = [
            HandlerFailure(handler=handler, session_id=key, last_at=now, reason=reason[:500])
            for key, reason in reasons.items()
            if key not in known
        ]
        HandlerFailure.objects.bulk_create(new)
    return {key: known[key].failures if key in known else 1 for key in reasons}


def clear_failures(handler: str, session_ids: Iterable[UUID]) -> None:
    if keys := list(session_ids):
        HandlerFailure.objects.filter(handler=handler, session__in=keys).delete()
