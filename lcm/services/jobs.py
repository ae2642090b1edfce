"""Long-running jobs in steps. Another worker continues a job whose worker died.

A kind of job is a function that runs one step and returns its progress. Steps are idempotent; the job's
cursor holds the start of the next step.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from lcm.domain.actors import Actor
from lcm.domain.errors import LcmError, StateConflict
from lcm.extensions import Extension
from lcm.models import Job, JobState
from lcm.models.jobs import UNFINISHED
from lcm.services.changelog import log_change
from lcm.services.task_queue import send_task

logger = logging.getLogger(__name__)

# A job without progress for this long has lost its worker, or could not be enqueued.
ABANDONED_AFTER = timedelta(minutes=2)
NOTES_KEPT = 50


@dataclass(frozen=True)
class JobStep:
    """Progress of one step, the cursor of the next, and whether there is a next step."""

    done: int = 0
    rejected: int = 0
    cursor: Mapping[str, Any] = field(default_factory=dict)
    more: bool = False
    notes: Sequence[str] = ()
    # Result of the whole job; set by the last step.
    result: str = ""


StepFunction = Callable[[Job, datetime], JobStep]


def start_job(
    *,
    kind: str,
    title: str,
    arguments: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    total: int = 0,
    reason: str = "",
) -> Job:
    """Save a job and enqueue it. If the broker is down, `enqueue_abandoned_jobs` enqueues it later."""
    with transaction.atomic():
        job = Job.objects.create(
            kind=kind,
            title=title[:200],
            arguments=dict(arguments),
            actor=actor.label,
            user_id=actor.user_id,
            total=total,
            created_at=now,
            last_progress_at=now,
        )
        log_change(
            job, actor=actor, event="job.started", message=f"job started: {job}", reason=reason, now=now
        )
        transaction.on_commit(lambda: enqueue_job(job))
    return job


def retry_job(*, job: Job, actor: Actor, now: datetime) -> Job:
    """Continue a failed job where it stopped."""
    with transaction.atomic():
        moved = Job.objects.filter(pk=job.pk, state=JobState.FAILED).update(
            state=JobState.QUEUED, finished_at=None, error="", last_progress_at=now
        )
        if not moved:
            raise StateConflict(_("Only failed jobs can be retried."))
        log_change(job, actor=actor, event="job.retried", message=f"job retried: {job}", now=now)
        transaction.on_commit(lambda: enqueue_job(job))
    job.refresh_from_db()
    return job


def claim_job(*, key: str, now: datetime) -> Job | None:
    """Claim a queued or abandoned job; return None if it is running or has ended."""
    claimable = Q(state=JobState.QUEUED) | Q(
        state=JobState.RUNNING, last_progress_at__lt=now - ABANDONED_AFTER
    )
    claimed = Job.objects.filter(claimable, pk=key).update(
        state=JobState.RUNNING, last_progress_at=now, attempt=F("attempt") + 1
    )
    return Job.objects.get(pk=key) if claimed else None


def run_step(job: Job, *, now: datetime) -> bool:
    """Run one step of a claimed job; return whether there is another. An error fails the job."""
    try:
        step = Extension.installed().jobs[job.kind](job, now)
    except KeyError:
        return _fail(job, f"Unknown kind of job: “{job.kind}”.", now)
    except LcmError as error:
        return _fail(job, error.message, now)
    except Exception as error:
        logger.exception("job_failed", extra={"job": str(job.pk), "kind": job.kind})
        return _fail(job, f"{type(error).__name__}: {error}", now)
    return _save_progress(job, step, now)


def save_part(job: Job, part: JobStep, *, now: datetime) -> None:
    """Save the progress of a part of a step, in its transaction; raise if another task runs the job."""
    if not _save_progress(job, replace(part, more=True), now):
        raise StateConflict(_("Another task has continued this job."))


def release_job(job: Job) -> None:
    """Release a claimed job and enqueue it again, so that another task continues it."""
    if _claimed_row(job).update(state=JobState.QUEUED):
        enqueue_job(job)


def enqueue_job(job: Job) -> None:
    """Enqueue a job. If the broker is down, log a warning: abandoned jobs are enqueued again later."""
    try:
        send_task("lcm.tasks.run_job", str(job.pk))
    except (OperationalError, RedisError, OSError) as error:
        logger.warning("job_not_sent", extra={"job": str(job.pk), "error": str(error)})


def enqueue_abandoned_jobs(*, now: datetime) -> int:
    """Enqueue unfinished jobs without recent progress again; return how many."""
    rows = Job.objects.filter(state__in=UNFINISHED, last_progress_at__lt=now - ABANDONED_AFTER)
    found = list(rows.order_by("last_progress_at")[:100])
    for job in found:
        enqueue_job(job)
    return len(found)


def expired_jobs(*, now: datetime) -> Q:
    """Return a filter for jobs that ended more than JOB_DAYS ago."""
    return Q(finished_at__lt=now - timedelta(days=settings.CONFIG["JOB_DAYS"]))


def _save_progress(job: Job, step: JobStep, now: datetime) -> bool:
    fields: dict[str, Any] = {
        "done": job.done + step.done,
        "rejected": job.rejected + step.rejected,
        "cursor": dict(step.cursor),
        "notes": [*job.notes, *step.notes][:NOTES_KEPT],
        "last_progress_at": now,
    }
    if not step.more:
        fields |= {"state": JobState.DONE, "finished_at": now, "result": step.result[:500]}
    if not _claimed_row(job).update(**fields):
        return False
    for name, value in fields.items():
        setattr(job, name, value)
    return step.more


def _fail(job: Job, error: str, now: datetime) -> bool:
    _claimed_row(job).update(state=JobState.FAILED, finished_at=now, last_progress_at=now, error=error[:500])
    return False


def _claimed_row(job: Job) -> QuerySet[Job]:
    """Return the job's row, or no row if another task has claimed the job since."""
    return Job.objects.filter(pk=job.pk, state=JobState.RUNNING, attempt=job.attempt)
