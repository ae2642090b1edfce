"""Background work that belongs to no app: each task may run twice, or not at all, without harm."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from lcm.events.change_feed import prune_entries
from lcm.services import jobs, maintenance

# How long a task works on one job before others get their turn.
JOB_TURN = timedelta(seconds=60)


@shared_task
def beat_heartbeat() -> None:
    """Prove that beat sends and a worker works: `/readyz` looks at how long ago this was."""
    maintenance.record_heartbeat(name="beat", now=timezone.now())


@shared_task
def clean_up() -> None:
    maintenance.remove_expired(now=timezone.now())


@shared_task
def prune_change_feed() -> None:
    """The change feed is kept for a while; controllers that were away longer list again."""
    prune_entries(now=timezone.now())


@shared_task
def run_job(key: str) -> None:
    """Work on a job for a while; what is left then is another task's. A second run finds it taken."""
    job = jobs.claim_job(key=key, now=timezone.now())
    if job is None:
        return
    until = timezone.now() + JOB_TURN
    while jobs.run_step(job, now=timezone.now()):
        if timezone.now() > until:
            jobs.release_job(job)
            return


@shared_task
def requeue_abandoned_jobs() -> None:
    jobs.enqueue_abandoned_jobs(now=timezone.now())
