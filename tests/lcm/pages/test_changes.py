"""The page of a change: labels, units and times instead of raw database values."""

from __future__ import annotations

import html
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse

from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog
from lcm.pages.changes import field_differences
from lcm.services.changelog import log_change
from lcm.services.jobs import start_job
from lcm.templatetags.lcm import sentence_case
from lcm.web.object_links import link_objects, object_name
from scheduling.models import Pool
from tests.support.capacity_setup import make_slot
from tests.support.factories import make_project


def shown_difference(obj, before, after):
    log_change(obj, actor=SYSTEM, event="tried", message="tried", before=before, after=after)
    [row] = field_differences(ChangeLog.objects.order_by("pk").last())
    return row.label, row.before, row.after


@pytest.mark.parametrize(
    ("name", "before", "after", "texts"),
    [
        ("status", "PENDING", "SCHEDULED", ("Status", "Pending", "Scheduled")),
        ("cpu_cores", "3.50", "2.00", ("CPU", "3.5 cores", "2 cores")),
        ("total_memory_mb", None, 3584, ("Total memory", None, "3,584 MB")),
        ("idle_seconds", 1800, 60, ("Idle", "1,800 s", "60 s")),
        ("awaits_arrival", False, True, ("Awaits arrival", "no", "yes")),
        ("missing", [], ["disk", "CPU"], ("Missing", None, "disk, CPU")),
        ("definition", "ospf v1.0", "bgp v2.0", ("Definition", "ospf v1.0", "bgp v2.0")),
        (
            "drift",
            None,
            [{"kind": "extra", "name": "r1_vnc", "allocated": None, "observed": 7990}],
            ("Drift", None, "kind extra · name r1_vnc · observed 7990"),
        ),
    ],
)
def test_differences_are_shown_as_text(name, before, after, texts, session):
    assert shown_difference(session, {name: before}, {name: after}) == texts


def test_times_and_ids_are_shown_as_clock_times_and_names(session, project):
    _, _, ends = shown_difference(session, None, {"ends_at": session.ends_at})
    assert ends.startswith("<time ")
    assert shown_difference(project, None, {"domain": project.domain_id}) == (
        "Domain",
        None,
        project.domain.name,
    )


def test_the_page_has_no_raw_status(client, viewer, session_in):
    session = session_in(SessionStatus.SCHEDULED)
    change = ChangeLog.objects.filter(object_id=str(session.pk), event="session.scheduled").last()
    client.force_login(viewer)
    page = client.get(reverse("change_detail", args=[change.pk])).content.decode()
    for words in ("Session scheduled", "Pending", "Scheduled"):
        assert words in page
    for raw in ("session.scheduled", "PENDING", "SCHEDULED"):
        assert raw not in page


def test_the_actor_links_to_all_changes_of_that_person(client, viewer, operator, admin, session):
    for person in (operator, admin):
        log_change(session, actor=Actor.person(person), event="tried", message=f"tried by {person}")
    log_change(session, actor=SYSTEM, event="tried", message="tried by the system")
    client.force_login(viewer)
    operator_change = ChangeLog.objects.get(message=f"tried by {operator}")
    link = f'href="{reverse("change_list")}?user={operator.pk}"'
    for page in (reverse("change_list"), reverse("change_detail", args=[operator_change.pk])):
        assert link in client.get(page).content.decode()
    assert "?user=" not in _page_of(client, "tried by the system")
    response = client.get(reverse("change_list"), {"user": operator.pk})
    assert {row.user_id for row in response.context["rows"].rows} == {operator.pk}
    assert operator_change in response.context["rows"].rows
    (chip,) = response.context["chips"]
    assert chip == {"text": f"Actor: {operator}", "query": ""}


def test_a_change_links_to_its_object_while_it_exists(client, viewer, session, project, now):
    deleted, job = (
        make_project("academy", "gone"),
        start_job(kind="bulk", title="Cancel all", arguments={}, actor=SYSTEM, now=now),
    )
    for each in (deleted, session.definition, viewer):
        log_change(each, actor=SYSTEM, event="tried", message=f"tried {each}")
    deleted_page = reverse("project_detail", args=[deleted.pk])
    deleted.delete()
    client.force_login(viewer)
    rows = client.get(reverse("change_list")).content.decode()
    for name, url_name, key in (
        (f"session {session.short_id}", "session_detail", session.pk),
        (f"definition {session.definition}", "definition_detail", session.definition_id),
        ("job Cancel all", "job_detail", job.pk),
    ):
        assert f'href="{reverse(url_name, args=[key])}">{name}</a>' in rows
    assert deleted_page not in rows
    assert 'data-label="Object">project gone</td>' in rows
    assert 'data-label="Object">person vera</td>' in rows
    page = _page_of(client, f"tried {session.definition}")
    definition_page = reverse("definition_detail", args=[session.definition_id])
    assert f'<a href="{definition_page}">definition {session.definition}</a>' in page
    assert f'?object_id={session.definition_id}">All changes to this object</a>' in page


def test_slots_and_pools_have_pages_too(client, viewer, session):
    pool = Pool.objects.get(name="cml-eu")
    slot = make_slot(pool, 1)
    for each in (pool, slot):
        log_change(each, actor=SYSTEM, event="tried", message="tried")
    client.force_login(viewer)
    rows = client.get(reverse("change_list")).content.decode()
    assert f'href="{reverse("pool_detail", args=[pool.pk])}">pool cml-eu</a>' in rows
    assert f'href="{reverse("slot_detail", args=[slot.pk])}">slot cml-eu-01</a>' in rows


def test_objects_of_all_kinds_need_one_query(session, project, now, django_assert_num_queries):
    start_job(kind="bulk", title="Cancel", arguments={}, actor=SYSTEM, now=now)
    for each in (project, project.domain, session.definition, Pool.objects.first()):
        log_change(each, actor=SYSTEM, event="tried", message="tried")
    rows = list(ChangeLog.objects.all())
    with django_assert_num_queries(1):
        link_objects(rows)
    assert all(row.object_url for row in rows)


@pytest.mark.parametrize(
    ("kind", "label", "name"),
    [
        ("slot", "cml-us-01", "slot cml-us-01"),
        ("labletsession", "session 5f9a34", "session 5f9a34"),
        ("fairsharepolicy", "policy of cml-eu", "policy of cml-eu"),
        ("driftreview", "r1_vnc extra", "port drift r1_vnc extra"),
        ("unknown", "something", "something"),
    ],
)
def test_an_object_is_shown_with_its_kind_and_name(kind, label, name):
    assert object_name(ChangeLog(object_type=kind, object_label=label)) == name


def test_a_change_shows_its_exact_time_and_the_missing_reason(client, viewer, session):
    changed_at = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    log_change(session, actor=SYSTEM, event="tried", message="tried", now=changed_at)
    client.force_login(viewer)
    page = _page_of(client, "tried")
    assert ">2026-02-03 04:05:06 UTC</time>" in page
    assert "Reason: none." in page
    assert "Before and after" not in page
    assert "none recorded" in page


def _page_of(client, message: str) -> str:
    change = ChangeLog.objects.get(message=message)
    return client.get(reverse("change_detail", args=[change.pk])).content.decode()


@pytest.fixture
def three_changes(session, operator, admin, now):
    """Changes by otto two days ago, by ada yesterday and by the system an hour ago."""
    for actor, ago in ((Actor.person(operator), 48), (Actor.person(admin), 24), (SYSTEM, 1)):
        log_change(
            session, actor=actor, event="tried", message=f"tried {ago}", now=now - timedelta(hours=ago)
        )


def found(client, **query):
    response = client.get(reverse("change_list"), {**query, "q": "tried"})
    return response, [row.message for row in response.context["rows"].rows]


def test_changes_are_found_by_the_name_of_the_person(client, viewer, three_changes):
    client.force_login(viewer)
    response, rows = found(client, person="otto")
    assert rows == ["tried 48"]
    assert [chip["text"] for chip in response.context["chips"]] == ["Person: otto"]
    assert 'type="text" name="person" value="otto"' in response.content.decode()
    assert found(client, person="ADA")[1] == ["tried 24"]
    response, rows = found(client, person="unknown")
    assert rows == []
    assert "Person: There is no “unknown”." in html.unescape(response.content.decode())
    assert 'name="person" value="unknown"' in response.content.decode()


def test_changes_are_found_by_time(client, viewer, three_changes, now):
    viewer.time_zone = "America/New_York"
    viewer.save()
    client.force_login(viewer)

    def typed(hours):
        local = (now - timedelta(hours=hours)).astimezone(ZoneInfo("America/New_York"))
        return local.strftime("%Y-%m-%dT%H:%M")

    assert found(client, since=typed(30))[1] == ["tried 1", "tried 24"]
    assert found(client, until=typed(30))[1] == ["tried 48"]
    response, rows = found(client, since=typed(30), until=typed(5))
    assert rows == ["tried 24"]
    for name, hours in (("since", 30), ("until", 5)):
        assert f'type="datetime-local" name="{name}" value="{typed(hours)}"' in response.content.decode()
    assert [chip["text"] for chip in response.context["chips"]] == [
        f"Time, from: {typed(30).replace('T', ' ')}",
        f"Time, to: {typed(5).replace('T', ' ')}",
    ]
    assert "In America/New_York." in response.content.decode()
    assert found(client, at="24h", until=typed(0))[1] == ["tried 1"]
    assert "From: Enter a valid" in found(client, since="yesterday")[0].content.decode()


def test_the_api_takes_the_same_filters(api, viewer, three_changes, now):
    def messages(query):
        rows = api(viewer).get("/api/changes/", {**query, "q": "tried"}).json()["results"]
        return [row["message"] for row in rows]

    assert messages({"person": "otto"}) == ["tried 48"]
    assert messages({"since": (now - timedelta(hours=30)).isoformat()}) == ["tried 1", "tried 24"]
    response = api(viewer).get("/api/changes/", {"person": "unknown"})
    assert (response.status_code, list(response.json()["details"])) == (400, ["person"])


def test_changes_can_be_filtered_by_jobs(client, viewer, session, now):
    job = start_job(kind="bulk", title="Cancel", arguments={}, actor=SYSTEM, now=now)
    client.force_login(viewer)
    response = client.get(reverse("change_list"), {"object_type": "job"})
    assert [row.object_id for row in response.context["rows"].rows] == [str(job.pk)]
    assert [chip["text"] for chip in response.context["chips"]] == ["Object: Job"]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("pool cml-eu created", "Pool cml-eu created"),
        ("drain: power cut", "Drain: power cut"),
        ("cml-eu-01 drains", "cml-eu-01 drains"),
        ("ospf v1 edited", "ospf v1 edited"),
        ("Ready → Running", "Ready → Running"),
        ("", ""),
    ],
)
def test_a_change_starts_with_a_capital_unless_it_starts_with_a_name(message, shown):
    assert sentence_case(message) == shown
