"""Rebuild of daily usage as a job."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction
from django.urls import reverse

from fairshare.models import UsageBucket, UsageCheck, UsageRecord
from fairshare.services import usage_buckets
from fairshare.services.retention import remove_old_usage
from fairshare.services.usage_buckets import aggregate_batches, check_usage, pending_batches, rebuild_day
from fairshare.services.usage_rebuild import start_rebuild
from lcm.domain.errors import StateConflict
from lcm.models import Job, JobState
from lcm.tasks import run_job
from tests.support.control_plane import wait_until
from tests.support.fairshare_setup import check_conserved


@pytest.fixture
def busy(stage):
    """A session of two hours, recorded and aggregated."""
    stage.start()
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate")
    return stage


def test_without_records_there_is_nothing_to_rebuild(db, as_admin, now):
    with pytest.raises(StateConflict, match="no record"):
        start_rebuild(reason="why not", actor=as_admin, now=now)


def test_a_rebuild_repairs_differences_and_stores_a_check(busy, as_admin, now):
    UsageBucket.objects.filter(level="domain").update(cpu_cores=1)
    job = start_rebuild(reason="they differ", actor=as_admin, now=now)
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == (JobState.DONE, 1, 1)
    assert job.result == "1 bucket was repaired."
    assert UsageCheck.objects.latest("pk").difference_count == 0


def test_an_admin_starts_a_rebuild_and_is_redirected_to_its_job(busy, client, admin):
    client.force_login(admin)
    response = client.post(reverse("usage_rebuild"), {"reason": "they differ"})
    assert response.url == reverse("job_detail", args=[Job.objects.get().pk])


def test_a_day_whose_records_were_removed_during_the_job_keeps_its_buckets(busy, as_admin, now):
    """The day is complete at the start, then retention removes records, then job and command run."""
    job = start_rebuild(reason="they differ", actor=as_admin, now=now)
    remove_old_usage(now=busy.clock() + timedelta(days=91))
    before = list(UsageBucket.objects.order_by("pk").values())
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.done, job.rejected, job.result) == (
        JobState.DONE,
        0,
        1,
        "0 buckets were repaired.",
    )
    assert "Records of 2026-03-02 were removed" in str(job.notes)
    with pytest.raises(StateConflict, match="Records of 2026-03-02 were removed"):
        rebuild_day(busy.clock().date())
    assert list(UsageBucket.objects.order_by("pk").values()) == before
    assert UsageCheck.objects.latest("pk").difference_count == 0


# --- with a second connection ----------------------------------------------------------------------------

concurrent = [pytest.mark.postgres, pytest.mark.integration, pytest.mark.django_db(transaction=True)]


@contextmanager
def second_connection() -> Iterator[ThreadPoolExecutor]:
    """A thread with its own connection."""
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(connections.close_all).result()


def waits_for_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


class TestConcurrently:
    pytestmark = concurrent

    def test_retention_waits_for_a_rebuild_of_a_day(self, busy):
        UsageBucket.objects.filter(level="domain").update(cpu_cores=1)
        with second_connection() as second:
            with transaction.atomic():
                usage_buckets.lock_buckets()
                removal = second.submit(remove_old_usage, now=busy.clock() + timedelta(days=91))
                wait_until(waits_for_lock, "retention waits for the lock")
                assert len(rebuild_day(busy.clock().date())) == 1
                check_conserved()
            assert removal.result(30).records > 0
        assert not UsageRecord.objects.exists()

    def test_a_check_reads_records_and_buckets_in_one_snapshot(self, busy, monkeypatch):
        """An aggregation commits after the check has read the buckets and before it reads the records."""
        busy.clock.advance(hours=1)
        busy.run("record")
        (group,) = pending_batches()
        read = usage_buckets._buckets

        def read_then_aggregate(day):
            found = read(day)
            assert second.submit(aggregate_batches, group, now=busy.clock()).result(30) == 1
            return found

        monkeypatch.setattr(usage_buckets, "_buckets", read_then_aggregate)
        today = busy.clock().date()
        with second_connection() as second:
            found = check_usage(first=today, last=today, now=busy.clock())
        assert found.differences == []
        monkeypatch.undo()
        call_command("rebuild_usage", "--check")
