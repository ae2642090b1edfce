"""Jobs: progress, result, errors, retries and lost workers."""

import re
from datetime import UTC, datetime, time, timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.extensions import Extension
from lcm.models import ChangeLog, Domain, Job, JobState, LabletSession
from lcm.services import jobs
from lcm.services.jobs import JobStep, claim_job, enqueue_abandoned_jobs, retry_job, run_step, start_job
from lcm.tasks import clean_up, run_job
from lcm.web import bulk_actions
from tests.support import extensions


@pytest.fixture
def enqueued(monkeypatch):
    """The ids of enqueued jobs."""
    keys = []
    monkeypatch.setattr(jobs, "enqueue_job", lambda job: keys.append(str(job.pk)))
    return keys


@pytest.fixture
def counting(enqueued):
    """A kind of job that counts to three, one per step, and fails at the steps in `failing_steps`."""
    failing_steps = set()

    def step(job, now):
        number = job.cursor.get("at", 0)
        if number in failing_steps:
            raise InvalidInput({"at": f"{number} is a bad number."})
        if number == 3:
            return JobStep(result=f"counted to {job.done}")
        return JobStep(done=1, cursor={"at": number + 1}, more=True, notes=[f"was at {number}"])

    with extensions.added(Extension(jobs={"count": step})):
        yield failing_steps


@pytest.fixture
def job(counting, as_operator, now, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        return start_job(kind="count", title="Count to 3", arguments={}, actor=as_operator, now=now, total=3)


def run(job) -> Job:
    run_job(str(job.pk))
    job.refresh_from_db()
    return job


def test_a_job_is_enqueued_and_logged(job, enqueued):
    assert enqueued == [str(job.pk)]
    assert ChangeLog.objects.get(object_id=str(job.pk)).message == "job started: Count to 3"


def test_a_job_runs_step_by_step_to_its_result(job):
    run(job)
    assert (job.state, job.done, job.percent, job.result) == (JobState.DONE, 3, 100, "counted to 3")
    assert job.notes == ["was at 0", "was at 1", "was at 2"]


def test_progress_is_saved_after_every_step(job, now):
    claimed = claim_job(key=str(job.pk), now=now)
    assert run_step(claimed, now=now)
    job.refresh_from_db()
    assert (job.state, job.done, job.percent) == (JobState.RUNNING, 1, 33)


def test_only_one_worker_runs_a_job_at_a_time(job, now):
    assert claim_job(key=str(job.pk), now=now) is not None
    assert claim_job(key=str(job.pk), now=now) is None


def test_an_abandoned_job_is_enqueued_again_and_continues(job, now, enqueued):
    first_worker = claim_job(key=str(job.pk), now=now)
    run_step(first_worker, now=now)
    assert enqueue_abandoned_jobs(now=now + timedelta(minutes=1)) == 0
    assert enqueue_abandoned_jobs(now=now + timedelta(minutes=3)) == 1
    assert enqueued == [str(job.pk)] * 2
    second_worker = claim_job(key=str(job.pk), now=now + timedelta(minutes=3))
    assert (second_worker.done, second_worker.attempt) == (1, 2)
    assert not run_step(first_worker, now=now)
    job.refresh_from_db()
    assert job.done == 1


def test_an_error_fails_the_job_with_its_message(job, counting):
    counting.add(2)
    run(job)
    assert (job.state, job.done) == (JobState.FAILED, 2)
    assert job.error == "2 is a bad number."


def test_a_retried_job_continues_where_it_stopped(job, counting, as_operator, now):
    counting.add(2)
    run(job)
    counting.clear()
    retry_job(job=job, actor=as_operator, now=now)
    run(job)
    assert (job.state, job.done, job.error) == (JobState.DONE, 3, "")


def test_only_a_failed_job_can_be_retried(job, as_operator, now):
    with pytest.raises(StateConflict, match="failed"):
        retry_job(job=job, actor=as_operator, now=now)


def test_a_job_of_an_unknown_kind_fails_with_a_message(enqueued, as_operator, now):
    job = start_job(kind="dance", title="Dance", arguments={}, actor=as_operator, now=now)
    assert run(job).error == "Unknown kind of job: “dance”."


def test_a_long_job_yields_to_other_tasks(job, enqueued, monkeypatch):
    monkeypatch.setattr("lcm.tasks.JOB_TURN", timedelta(seconds=-1))
    run(job)
    assert (job.state, job.done) == (JobState.QUEUED, 1)
    assert len(enqueued) == 2


def test_jobs_are_removed_a_week_after_their_end(job, now):
    run(job)
    clean_up()
    assert Job.objects.exists()
    Job.objects.update(created_at=now - timedelta(days=9), finished_at=now - timedelta(days=8))
    clean_up()
    assert not Job.objects.exists()


# --- bulk actions on all matching rows -----------------------------------------------------------------


@pytest.fixture
def cancel(operator, enqueued):
    """`cancel(filters)`: run the bulk action on all matching sessions, as the worker does."""

    def start(filters: str) -> Job:
        arguments = {"action": "cancel-sessions", "filter_query": filters, "reason": "power cut"}
        actor = Actor.person(operator)
        now = timezone.now()
        return run(start_job(kind="bulk", title="Cancel", arguments=arguments, actor=actor, now=now))

    return start


def statuses():
    return sorted(LabletSession.objects.values_list("status", flat=True))


def test_all_matching_sessions_are_cancelled(cancel, session_in, monkeypatch):
    monkeypatch.setattr(bulk_actions, "BATCH", 1)
    for status in (SessionStatus.PENDING, SessionStatus.PENDING, SessionStatus.RUNNING, SessionStatus.FAILED):
        session_in(status)
    job = cancel("status=PENDING")
    assert statuses() == ["CANCELLED", "CANCELLED", "FAILED", "RUNNING"]
    assert (job.done, job.result) == (2, "2 sessions cancelled or being stopped.")


def test_a_second_run_finds_nothing_to_do(cancel, session):
    cancel("status=PENDING")
    assert cancel("status=PENDING").done == 0
    assert session.transitions.count() == 2


@pytest.mark.parametrize("filters", ["status=LOST", "owner=unknown", "domain=atlantis"])
def test_invalid_filters_cancel_nothing(filters, cancel, session):
    assert cancel(filters).done == 0
    assert statuses() == ["PENDING"]


def test_a_domain_renamed_before_the_job_runs_cancels_nothing(cancel, session):
    Domain.objects.update(name="renamed")
    assert cancel("domain=academy").done == 0
    assert statuses() == ["PENDING"]


def start_cancel_job(client, filters: str) -> Job:
    """Start a job that cancels all matching sessions."""
    form = {"all": "1", "filter_query": filters, "reason": "power cut"}
    client.post(reverse("session_bulk_cancel"), form)
    return Job.objects.get()


def test_a_job_reads_times_in_the_requesters_time_zone(client, operator, session_in, enqueued, monkeypatch):
    """Noon in Tokyo is 03:00 UTC, so a session at 09:00 UTC starts after noon in the person's time zone."""
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 0)
    operator.time_zone = "Asia/Tokyo"
    operator.save()
    day = timezone.now().date() + timedelta(days=1)
    morning = datetime.combine(day, time(9), tzinfo=UTC)
    session_in(SessionStatus.PENDING, starts_at=morning, ends_at=morning + timedelta(hours=1))
    client.force_login(operator)
    job = start_cancel_job(client, f"starts_after={day}T12:00")
    assert job.total == 1
    assert run(job).done == 1


def test_a_job_finds_the_rows_that_matched_when_it_was_requested(
    client, operator, session_in, enqueued, monkeypatch, time_machine
):
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 0)
    session_in(SessionStatus.PENDING)
    client.force_login(operator)
    job = start_cancel_job(client, "created=1h")
    time_machine.move_to(timezone.now() + timedelta(hours=2))
    assert run(job).done == job.total == 1


# --- pages --------------------------------------------------------------------------------------------


def test_an_action_on_many_rows_starts_a_job_whose_page_shows_progress(
    client, operator, session_in, enqueued, monkeypatch
):
    monkeypatch.setattr(bulk_actions, "AT_ONCE", 1)
    for _ in range(3):
        session_in(SessionStatus.PENDING)
    client.force_login(operator)
    confirmation = client.post(reverse("session_bulk_cancel"), {"all": "1", "filter_query": "status=PENDING"})
    assert "This runs as a background job." in confirmation.content.decode()
    form = {"all": "1", "filter_query": "status=PENDING", "reason": "power cut"}
    response = client.post(reverse("session_bulk_cancel"), form)
    job = Job.objects.get()
    assert response.url == reverse("job_detail", args=[job.pk])
    page = client.get(response.url).content.decode()
    assert "Waiting for a worker." in page
    assert 'hx-trigger="every 2s"' in page
    run(job)
    page = client.get(response.url, headers={"HX-Request": "true"}).content.decode()
    assert "3 sessions cancelled or being stopped." in page
    assert "hx-trigger" not in page
    assert "<html" not in page


def test_a_failed_job_is_retried_from_its_page(client, operator, job, counting):
    counting.add(1)
    run(job)
    client.force_login(operator)
    page = client.get(reverse("job_detail", args=[job.pk])).content.decode()
    assert "1 is a bad number." in page
    client.post(reverse("job_retry", args=[job.pk]))
    job.refresh_from_db()
    assert job.state == JobState.QUEUED


def test_jobs_are_listed_with_their_progress(client, viewer, job):
    client.force_login(viewer)
    page = client.get(reverse("job_list")).content.decode()
    assert "Count to 3" in page
    assert "<strong>1 unfinished job.</strong>" in page


@pytest.mark.parametrize(
    ("done", "rejected", "label", "css_class"),
    [(3, 0, "Done", "tone-ok"), (2, 1, "Partly done", "tone-warn"), (0, 3, "Failed", "tone-bad")],
)
def test_a_job_with_rejected_items_is_not_shown_as_done(
    client, viewer, job, now, done, rejected, label, css_class
):
    fields = {"state": JobState.DONE, "finished_at": now, "done": done, "rejected": rejected}
    Job.objects.filter(pk=job.pk).update(**fields, notes=["one.yaml: no"] if rejected else [])
    client.force_login(viewer)
    page = client.get(reverse("job_detail", args=[job.pk])).content.decode()
    rows = client.get(reverse("job_list")).content.decode()
    for text, kind in ((page, "badge"), (rows, "status")):
        (shown,) = re.findall(rf'class="{kind} ({css_class})"><svg.*?</svg>([^<]*)<', text)
        assert shown == (css_class, label)
    assert ('id="notes">Rejected<' in page) == bool(rejected)
    assert ("1 with rejected items." in rows) == bool(rejected)
    assert ("<progress" in page, "<progress" in rows) == (bool(done), bool(done))


def test_jobs_with_rejected_items_can_be_filtered(client, viewer, job, now):
    client.force_login(viewer)
    assert "No job matches" in client.get(reverse("job_list"), {"rejected": "true"}).content.decode()
    Job.objects.update(state=JobState.DONE, finished_at=now, rejected=1)
    assert "Count to 3" in client.get(reverse("job_list"), {"rejected": "true"}).content.decode()
    assert "No job matches" in client.get(reverse("job_list"), {"rejected": "false"}).content.decode()


def test_the_list_states_how_long_jobs_are_kept(client, viewer, settings, db):
    settings.CONFIG["JOB_DAYS"] = 3
    client.force_login(viewer)
    page = client.get(reverse("job_list")).content.decode()
    assert "<strong>0 unfinished jobs" in page
    assert "Jobs are kept for 3 days after they end." in page


def test_the_api_returns_the_progress_of_a_job_and_retries_it(api, operator, job, counting):
    counting.add(2)
    run(job)
    client = api(operator)
    shown = client.get(f"/api/jobs/{job.pk}/").json()
    assert (shown["state"], shown["done"], shown["percent"]) == ("failed", 2, 66)
    assert client.get("/api/jobs/?state=failed").json()["results"][0]["id"] == str(job.pk)
    assert client.post(f"/api/jobs/{job.pk}/retry").json()["state"] == "queued"
    assert client.post(f"/api/jobs/{job.pk}/retry").status_code == 409
