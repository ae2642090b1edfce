"""The list of runs of observers and lifecycle handlers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from scheduling.models import ObserverRun
from scheduling.pages.observers import RUNS_SHOWN


@pytest.fixture
def runs(db, now):
    """More runs of one observer than its page shows, and two of another; one of each kind of failure."""
    rows = [("usage-record", number, {}) for number in range(RUNS_SHOWN + 5)]
    rows += [("end-running", 0, {"error": "no broker"}), ("end-running", 1, {"failure_count": 2})]
    ObserverRun.objects.bulk_create(
        ObserverRun(observer=name, started_at=now - timedelta(minutes=number), duration_ms=number, **fields)
        for name, number, fields in rows
    )


def test_an_observers_page_leads_to_all_its_runs(login_as, viewer, runs):
    client = login_as(viewer)
    body = client.get("/observers/usage-record/").content.decode()
    assert body.count('data-label="Duration"') == RUNS_SHOWN
    run_list_url = f"{reverse('run_list')}?observer=usage-record"
    assert f'href="{run_list_url}"' in body
    page = client.get(run_list_url)
    assert page.context["total"] == RUNS_SHOWN + 5
    assert {row.observer for row in page.context["rows"].rows} == {"usage-record"}
    assert reverse("run_list") in client.get("/observers/").content.decode()


@pytest.mark.parametrize(
    ("query", "count"),
    [("failed=true", 2), ("failed=false", RUNS_SHOWN + 5), ("q=broker", 1), ("observer=end-running", 2)],
)
def test_runs_are_filtered(login_as, viewer, runs, query, count):
    assert login_as(viewer).get(f"{reverse('run_list')}?{query}").context["total"] == count


def test_runs_are_paged(login_as, viewer, runs):
    page = login_as(viewer).get(f"{reverse('run_list')}?size=25")
    assert len(page.context["rows"].rows) == 25
    assert page.context["next_query"]


def test_the_list_of_runs_starts_with_the_number_of_failures(login_as, viewer, runs):
    client = login_as(viewer)
    page = client.get(reverse("run_list"))
    assert f"<strong>{RUNS_SHOWN + 7} runs · 2 failed.</strong>" in page.content.decode()
    assert page.context["crumbs"] == [("Observers", reverse("observer_list")), ("Runs", "")]
    ObserverRun.objects.filter(observer="end-running").delete()
    assert "runs · 0 failed." in client.get(reverse("run_list")).content.decode()
    ObserverRun.objects.all().delete()
    assert "<strong>No runs yet.</strong>" in client.get(reverse("run_list")).content.decode()


@pytest.mark.parametrize(
    ("sort", "first"), [("-duration_ms", "usage-record"), ("-failure_count", "end-running")]
)
def test_runs_are_sorted_by_duration_and_failures(login_as, viewer, runs, sort, first):
    rows = login_as(viewer).get(f"{reverse('run_list')}?sort={sort}").context["rows"].rows
    assert rows[0].observer == first
    values = [getattr(row, sort[1:]) for row in rows]
    assert values == sorted(values, reverse=True)
