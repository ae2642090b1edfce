"""Bulk import of topologies as a job."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from lcm.domain.errors import InvalidInput
from lcm.models import Job, JobState, LabletDefinition
from lcm.services.definitions import read_topology
from lcm.tasks import run_job
from tests.support.factories import LAB


def upload(client, **files: str):
    return send(client, *((f"{name}.yaml", text.encode()) for name, text in files.items()))


def send(client, *files: tuple[str, bytes]):
    uploads = [SimpleUploadedFile(name, content) for name, content in files]
    return client.post(reverse("definition_bulk_import"), {"topologies": uploads})


def test_each_valid_file_becomes_a_draft_and_the_others_are_reported(client, admin):
    client.force_login(admin)
    response = upload(
        client, good=LAB, same=LAB, bad="nodes: 3", other=LAB.replace("Branch office", "Campus")
    )
    job = Job.objects.get()
    assert response.url == reverse("job_detail", args=[job.pk])
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.done, job.rejected) == (JobState.DONE, 2, 2)
    assert job.result == "2 definitions imported as drafts. 2 items rejected."
    assert [note.split(":")[0] for note in job.notes] == ["same.yaml", "bad.yaml"]
    found = LabletDefinition.objects.order_by("name").values_list("name", "status")
    assert list(found) == [("branch-office", "draft"), ("campus", "draft")]


def test_a_job_that_imports_nothing_reports_it(client, admin):
    client.force_login(admin)
    upload(client, bad="nodes: 3")
    job = Job.objects.get()
    run_job(str(job.pk))
    job.refresh_from_db()
    assert job.result == "0 definitions imported as drafts. 1 item rejected."
    for url in (reverse("job_list"), reverse("job_detail", args=[job.pk])):
        status = re.search(
            r'class="(?:status|badge) (tone-\w+)"[^>]*>.*?Failed', client.get(url).content.decode()
        )
        assert status, url
        assert status[1] == "tone-bad", "a failed job is red"


def test_a_title_without_letters_is_replaced_by_the_file_name(client, admin):
    client.force_login(admin)
    upload(client, my_lab=LAB.replace("Branch office", '"?"'))
    run_job(str(Job.objects.get().pk))
    assert LabletDefinition.objects.get().name == "my-lab"


@pytest.mark.parametrize(
    "content",
    [
        LAB.encode("utf-16"),
        LAB.replace("Branch office", "Büro").encode("latin-1"),
        LAB.encode("utf-16-le"),
        LAB.replace("Branch office", "Branch\0office").encode(),
    ],
    ids=["UTF-16", "Latin-1", "UTF-16 without a mark", "NUL"],
)
def test_a_binary_file_is_rejected_as_in_a_single_import(client, admin, content):
    client.force_login(admin)
    with pytest.raises(InvalidInput) as single_import:
        read_topology(text=content)
    (error,) = single_import.value.fields["topology"]
    send(client, ("odd.yaml", content), ("good.yaml", LAB.encode()))
    job = Job.objects.get()
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.done, job.rejected) == (JobState.DONE, 1, 1)
    assert job.notes == [f"odd.yaml: {error}"]


def test_two_files_with_the_same_name_are_both_imported(client, admin):
    client.force_login(admin)
    other = LAB.replace("Branch office", "Campus")
    send(client, ("lab.yaml", LAB.encode()), ("lab.yaml", other.encode()))
    job = Job.objects.get()
    run_job(str(job.pk))
    assert (job.title, job.total) == ("Import 2 definitions", 2)
    assert sorted(LabletDefinition.objects.values_list("name", flat=True)) == ["branch-office", "campus"]


def test_a_missing_file_is_reported_at_the_field(client, admin):
    client.force_login(admin)
    response = client.post(reverse("definition_bulk_import"), {})
    assert response.status_code == 422
    assert not Job.objects.exists()


def test_too_many_files_are_rejected(client, admin):
    client.force_login(admin)
    response = upload(client, **{f"lab{number}": "x" for number in range(51)})
    assert response.status_code == 422
    assert "Choose at most 50 files" in response.content.decode()
