"""What was there before LCM kept since when: filled from what the change log and the attempts say."""

from __future__ import annotations

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps

from lcm.domain.actors import SYSTEM
from lcm.models import DefinitionRevision, LabletDefinition, Outcome
from lcm.services.changelog import log_change
from scheduling.models import LaunchAttempt, Pool, Slot
from scheduling.services.pools import create_pool


def migrate(app: str, name: str) -> None:
    import_module(f"{app}.migrations.{name}").tell_since_when(apps, None)


@pytest.fixture
def hours_ago(now):
    return lambda hours: now - timedelta(hours=hours)


def test_reviews_and_outcomes_are_as_old_as_the_change_log_says(active_definition, hours_ago):
    revision = active_definition.current_revision
    LabletDefinition.objects.update(needs_review=True, updated_at=hours_ago(1))
    revision.outcome = Outcome.REGRESSED
    revision.save()
    migrate("lcm", "0009_since_when_reviews_and_outcomes")
    active_definition.refresh_from_db()
    revision.refresh_from_db()
    assert (active_definition.review_since, revision.outcome_at) == (hours_ago(1), revision.created_at)
    for hours in (9, 5):
        log_change(active_definition, actor=SYSTEM, event="review_raised", message="x", now=hours_ago(hours))
    decided = {"revision": revision.number, "outcome": "regressed"}
    log_change(
        active_definition,
        actor=SYSTEM,
        event="revision_outcome",
        message="x",
        after=decided,
        now=hours_ago(4),
    )
    migrate("lcm", "0009_since_when_reviews_and_outcomes")
    active_definition.refresh_from_db()
    revision.refresh_from_db()
    assert (active_definition.review_since, revision.outcome_at) == (hours_ago(5), hours_ago(4))


def test_what_needs_no_review_and_is_watched_says_nothing(active_definition):
    DefinitionRevision.objects.update(outcome=Outcome.WATCHING)
    migrate("lcm", "0009_since_when_reviews_and_outcomes")
    active_definition.refresh_from_db()
    assert active_definition.review_since is None
    assert active_definition.current_revision.outcome_at is None


def test_stops_and_waits_are_as_old_as_what_caused_them(db, now, hours_ago):
    pool = create_pool(name="cml-eu", actor=SYSTEM)
    well = create_pool(name="cml-us", actor=SYSTEM)
    Pool.objects.filter(pk=pool.pk).update(
        stopped_reason="no such image", backoff_until=now, updated_at=hours_ago(1)
    )
    slot = Slot.objects.create(pool=pool, number=1, max_leases=1, cpu_cores=1, memory_gb=1, storage_gb=1)
    for hours, outcome, category in (
        (7, "failed", "unknown"),
        (6, "refused", "capacity"),
        (2, "refused", ""),
    ):
        LaunchAttempt.objects.create(
            slot=slot,
            token=str(hours),
            requested_at=hours_ago(hours),
            finished_at=hours_ago(hours),
            outcome=outcome,
            category=category,
        )
    migrate("scheduling", "0009_since_when_pools_launch_nothing")
    pool.refresh_from_db()
    assert (pool.stopped_at, pool.backoff_since) == (hours_ago(1), hours_ago(6))
    log_change(pool, actor=SYSTEM, event="pool_stopped", message="x", now=hours_ago(8))
    migrate("scheduling", "0009_since_when_pools_launch_nothing")
    pool.refresh_from_db()
    well.refresh_from_db()
    assert pool.stopped_at == hours_ago(8)
    assert (well.stopped_at, well.backoff_since) == (None, None)
