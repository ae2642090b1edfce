"""Celery tasks of the core app. Each is idempotent, and a lost run is harmless."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from lcm.events.change_feed import prune_entries
from lcm.services import deadlines, jobs, maintenance
from lcm.services.deadlines import announce_ending_sessions, announce_expiring_tokens
from lcm.services.delivery_run import deliver_due
from lcm.services.event_routing import BATCH, route_events
from lcm.services.mail_run import send_due_mails

# How long one task works on a job before it yields to other tasks.
JOB_TURN = timedelta(seconds=60)


@shared_task
def beat_heartbeat() -> None:
    """Record that beat and a worker are alive; `/readyz` checks the age of this record."""
    maintenance.record_heartbeat(name="beat", now=timezone.now())


@shared_task
def clean_up() -> None:
    maintenance.remove_expired(now=timezone.now())


@shared_task
def prune_change_feed() -> None:
    """Remove old change feed entries; controllers that were offline longer list all sessions again."""
    prune_entries(now=timezone.now())


@shared_task
def detect_deadlines() -> None:
    """Record the sessions that end soon and the tokens that expire soon, each once."""
    while announce_ending_sessions(now=timezone.now()) == deadlines.BATCH:
        pass
    announce_expiring_tokens(now=timezone.now())


@shared_task
def route_new_events() -> None:
    """Create deliveries for rules, owners and watchers of new events."""
    while route_events(now=timezone.now()) == BATCH:
        pass


@shared_task
def deliver_events() -> None:
    """Send due deliveries to webhooks."""
    deliver_due(clock=timezone.now)


@shared_task
def send_mails() -> None:
    """Send due e-mails; a task of its own, so that a slow mail server does not delay webhooks."""
    send_due_mails(clock=timezone.now)


@shared_task
def run_job(key: str) -> None:
    """Run steps of a job for `JOB_TURN`, then enqueue the rest. A duplicate run does nothing."""
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
