"""Rebuilding daily usage as a job."""

from __future__ import annotations

import pytest
from django.urls import reverse

from fairshare.models import UsageBucket, UsageCheck
from fairshare.services.rebuilding import start_rebuild
from lcm.errors import StateConflict
from lcm.models import Job, JobState
from lcm.tasks import run_job


@pytest.fixture
def busy(stage):
    """A session of two hours, recorded and summed."""
    stage.start()
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate")
    return stage


def test_without_records_there_is_nothing_to_rebuild(db, as_admin, now):
    with pytest.raises(StateConflict, match="no record"):
        start_rebuild(reason="why not", actor=as_admin, now=now)


def test_a_rebuild_mends_what_differs_and_compares(busy, as_admin, now):
    UsageBucket.objects.filter(level="domain").update(cpu_cores=1)
    job = start_rebuild(reason="they differ", actor=as_admin, now=now)
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == (JobState.DONE, 1, 1)
    assert job.result == "1 bucket was mended."
    assert UsageCheck.objects.latest("pk").difference_count == 0


def test_an_admin_starts_it_and_comes_to_its_page(busy, client, admin):
    client.force_login(admin)
    answer = client.post(reverse("usage_rebuild"), {"reason": "they differ"})
    assert answer.url == reverse("job_detail", args=[Job.objects.get().pk])
