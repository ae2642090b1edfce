"""Importing many topologies as a job."""

from __future__ import annotations

from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from lcm.models import Job, JobState, LabletDefinition
from lcm.tasks import run_job
from tests.factories import LAB


def upload(client, **files: str):
    uploads = [SimpleUploadedFile(f"{name}.yaml", text.encode()) for name, text in files.items()]
    return client.post(reverse("definition_import_many"), {"topologies": uploads})


def test_each_file_becomes_a_draft_and_the_others_are_told(client, admin):
    client.force_login(admin)
    answer = upload(client, good=LAB, same=LAB, bad="nodes: 3", other=LAB.replace("Branch office", "Campus"))
    job = Job.objects.get()
    assert answer.url == reverse("job_detail", args=[job.pk])
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.done, job.refused) == (JobState.DONE, 2, 2)
    assert job.result == "2 definitions imported as drafts; 2 could not be."
    assert [note.split(":")[0] for note in job.notes] == ["same.yaml", "bad.yaml"]
    found = LabletDefinition.objects.order_by("name").values_list("name", "status")
    assert list(found) == [("branch-office", "draft"), ("campus", "draft")]


def test_a_title_that_says_nothing_leaves_the_name_to_the_file(client, admin):
    client.force_login(admin)
    upload(client, my_lab=LAB.replace("Branch office", '"?"'))
    run_job(str(Job.objects.get().pk))
    assert LabletDefinition.objects.get().name == "my-lab"


def test_no_file_is_told_at_the_field(client, admin):
    client.force_login(admin)
    answer = client.post(reverse("definition_import_many"), {})
    assert answer.status_code == 422
    assert not Job.objects.exists()


def test_too_many_files_are_refused(client, admin):
    client.force_login(admin)
    answer = upload(client, **{f"lab{number}": "x" for number in range(51)})
    assert answer.status_code == 422
    assert "At most 50 files" in answer.content.decode()
