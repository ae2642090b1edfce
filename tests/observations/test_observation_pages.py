"""Pages of observations: what they say, and that they cost few queries."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from lcm.models import DefinitionRevision
from observations.models import DriftReview
from observations.services.requests import request_observation
from tests.factories import make_definition
from tests.observations.labs import on_slot, post, seen

HTMX = {"HX-Request": "true"}


@pytest.fixture
def known(active_definition, observed):
    observed(active_definition, 10, cpu="2.00", memory=3000, storage=6500)
    return active_definition


@pytest.fixture
def as_(client):
    def log_in(user):
        client.force_login(user)
        return client

    return log_in


def page(name, definition):
    return reverse(name, args=[definition.pk])


def test_the_review_says_what_is_wrong_and_shows_the_evidence(as_, viewer, known):
    text = as_(viewer).get(page("definition_review", known)).content.decode()
    assert "CPU is set too high." in text
    assert "10 sessions used at most 2 of 4 cores." in text
    assert text.count('class="dot"') >= 30
    assert "decayed p95 2 used × 1.15 = 2.3, rounded up to 2.5 cores" in text
    assert "Apply as revision" not in text
    assert "An administrator can apply a change." in text


def test_a_definition_nobody_observed_says_so(as_, viewer, definition):
    text = as_(viewer).get(page("definition_review", definition)).content.decode()
    assert "No session has been observed to its end yet." in text
    assert "No session has measured this yet" in text


def test_the_preview_answers_with_the_parts_a_choice_changes(as_, admin, known):
    query = {"cpu_cores": "custom", "cpu_cores_custom": "1.5", "memory_gb": "max"}
    text = as_(admin).get(page("definition_preview", known), query, headers=HTMX).content.decode()
    assert "10 of 10" in text
    assert "Which ones on CPU" in text
    assert text.count("hx-swap-oob") == 3
    assert "−62 %" in text
    assert 'name="token"' in text


def test_a_number_that_cannot_be_is_told_and_cannot_be_applied(as_, admin, known):
    query = {"cpu_cores": "custom", "cpu_cores_custom": "-3"}
    text = as_(admin).get(page("definition_preview", known), query, headers=HTMX).content.decode()
    assert "A number above 0" in text
    assert "disabled" in text


def token_in(text):
    return text.split('name="token" value="')[1].split('"')[0]


def test_applying_from_the_page(as_, admin, known):
    client = as_(admin)
    shown = client.get(page("definition_review", known), {"cpu_cores": "recommended"}).content.decode()
    data = {"cpu_cores": "recommended", "memory_gb": "keep", "storage_gb": "keep", "token": token_in(shown)}
    data |= {"cpu_cores_basis": "used", "memory_gb_basis": "used", "storage_gb_basis": "used"}
    answer = client.post(page("definition_apply", known), {**data, "reason": "they say so"})
    assert (answer.status_code, answer.headers["Location"]) == (302, page("definition_detail", known))
    assert DefinitionRevision.objects.get(number=2).reason == "they say so"
    text = client.get(page("definition_review", known)).content.decode()
    assert "Revision 2 is being watched: 0 of 5 sessions within so far." in text


def test_a_stale_page_is_told_what_changed_and_keeps_the_reason(as_, admin, known, observed):
    client = as_(admin)
    shown = client.get(page("definition_review", known), {"cpu_cores": "recommended"}).content.decode()
    observed(known, 1, cpu="3.00", memory=3000, storage=6500)
    data = {"cpu_cores": "recommended", "token": token_in(shown), "reason": "they say so"}
    plain = client.post(page("definition_apply", known), data)
    swapped = client.post(page("definition_apply", known), data, headers=HTMX)
    assert (plain.status_code, swapped.status_code) == (412, 422)
    text = swapped.content.decode()
    assert "the proposal was 2.5 cores and is 3.5 cores by now." in text
    assert 'value="they say so"' in text
    assert text.strip().startswith('<div class="stack" id="panel-review">')


def test_the_list_of_definitions_shows_class_and_waste(as_, viewer, known, definition):
    text = as_(viewer).get(reverse("definition_list")).content.decode()
    assert "1 of 2 is worth fixing." in text
    assert text.index("campus") < text.index("branch-office")
    assert "20 <span" in text.replace("\n", "")  # core-hours wasted: 2 cores × 10 hours
    rows = as_(viewer).get(reverse("definition_list") + "?class=insufficient").content.decode()
    assert ">campus<" not in rows


def test_the_list_sorts_by_what_it_shows(as_, viewer, known, definition):
    client = as_(viewer)
    for sort in ("-assessment__waste_cpu", "assessment__n", "-assessment__worth", "name"):
        assert client.get(reverse("definition_list"), {"sort": sort}).status_code == 200


def exported(response):
    async def read():
        return b"".join([part async for part in response.streaming_content])

    return async_to_sync(read)().decode()


@pytest.mark.django_db(transaction=True)
def test_definitions_and_their_evidence_are_exported(as_, viewer, known):
    client = as_(viewer)
    heads, row = exported(client.get(reverse("definition_list"), {"format": "csv"})).splitlines()
    found = dict(zip(heads.split(","), row.split(","), strict=True))
    assert (found["Class"], found["CPU cores set"], found["CPU cores recommended"]) == (
        "over",
        "4.00",
        "2.50",
    )
    asked = {"definition": known.pk, "format": "json"}
    rows = json.loads(exported(client.get(reverse("evidence_list"), asked)))
    assert len(rows) == 10
    assert {(each["peak_cpu_used"], each["counts"], each["revision"]) for each in rows} == {("2.00", True, 1)}


def test_bulk_actions_understand_the_filters_of_the_list(as_, admin, known, definition):
    asked = {"all": "1", "filter_query": "class=over", "reason": "too big"}
    as_(admin).post(reverse("definition_bulk_deprecate"), asked)
    known.refresh_from_db()
    definition.refresh_from_db()
    assert (known.status, definition.status) == ("deprecated", "draft")


def test_a_session_shows_planned_beside_observed_and_its_ports(as_, viewer, operator, running, now):
    on_slot(running, ports={"r1_serial": 5041, "host_pat": 2022})
    post(running, seen(now, cpu="1.00", ports={"r1_serial": 5041, "r9_vnc": 6001}), now)
    text = as_(viewer).get(reverse("session_observed", args=[running.pk])).content.decode()
    assert "−75 %" in text
    assert "1 match, 2 differ" in text
    assert "Held back on the worker until seen free" in text
    assert "Acknowledge…" not in text
    assert (
        "Acknowledge…" in as_(operator).get(reverse("session_observed", args=[running.pk])).content.decode()
    )


def test_observe_now_shows_its_progress_and_its_end(as_, operator, running, as_operator, now, time_machine):
    time_machine.move_to(now, tick=False)
    client, here = as_(operator), reverse("session_observed", args=[running.pk])
    answer = client.post(reverse("session_observe", args=[running.pk]), headers=HTMX).content.decode()
    assert "Observing…" in answer
    assert 'hx-trigger="every 2s"' in answer
    time_machine.move_to(now + timedelta(seconds=121), tick=False)
    late = client.get(here).content.decode()
    assert "No answer" in late
    assert "every 2s" not in late
    request_observation(session=running, actor=as_operator, now=now + timedelta(seconds=121))
    post(running, seen(now + timedelta(seconds=130)), now + timedelta(seconds=130))
    time_machine.move_to(now + timedelta(seconds=131), tick=False)
    assert "answered in 9 s" in client.get(here).content.decode()


def test_only_a_running_session_offers_to_be_observed(as_, operator, collecting):
    text = as_(operator).get(reverse("session_observed", args=[collecting.pk])).content.decode()
    assert "Observe now" not in text


def test_drift_is_acknowledged_and_opened_again_from_its_pages(as_, operator, running, now):
    on_slot(running, ports={})
    post(running, seen(now, ports={"r9_vnc": 6001}), now)
    review, client = DriftReview.objects.get(), as_(operator)
    assert "1 deviation waits" in client.get(reverse("drift_list")).content.decode()
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    client.post(reverse("drift_acknowledge", args=[review.pk]), {"reason": "known", "until": until})
    panel = client.get(reverse("definition_drift", args=[review.definition_id])).content.decode()
    assert "“known”, otto, until" in panel
    client.post(reverse("drift_reopen", args=[review.pk]))
    review.refresh_from_db()
    assert review.state == "open"


def test_a_session_is_excluded_and_brought_back_from_the_page(as_, admin, known):
    session = known.sessions.first()
    client = as_(admin)
    client.post(reverse("session_exclude", args=[session.pk]), {"reason": "a test"})
    text = client.get(page("definition_review", known)).content.decode()
    assert "“a test”" in text
    assert "Bring back…" in text
    client.post(reverse("session_include", args=[session.pk]))
    assert "“a test”" not in client.get(page("definition_review", known)).content.decode()


def test_a_review_is_snoozed_from_the_page(as_, admin, known, now):
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    client = as_(admin)
    client.post(page("review_snooze", known), {"reason": "exams", "until": until})
    assert "Snoozed until" in client.get(page("definition_review", known)).content.decode()
    client.post(page("review_dismiss", known), {"reason": "as it should be"})
    assert "Dismissed by ada" in client.get(page("definition_review", known)).content.decode()


def test_observed_sessions_are_listed_with_why_they_do_not_count(as_, viewer, known, running, now):
    post(running, seen(now), now)
    text = as_(viewer).get(reverse("evidence_list")).content.decode()
    assert "1–11 of 11 observed sessions" in text
    assert "It did not reach collecting" in text
    left = as_(viewer).get(reverse("evidence_list"), {"left_out": "not_collected"}).content.decode()
    assert "1–1 of 1 observed session" in left
    for text, count in ((known.name.upper(), " of 11 "), ("no-such-lab", "No observed session matches")):
        assert count in as_(viewer).get(reverse("evidence_list"), {"q": text}).content.decode()


def test_pages_cost_the_same_for_few_and_many(as_, viewer, known, observed, django_assert_max_num_queries):
    client = as_(viewer)
    for name in ("definition_review", "definition_drift"):
        with django_assert_max_num_queries(24):
            client.get(page(name, known), headers=HTMX)
    for index in range(5):
        make_definition(f"more-{index}")
    with django_assert_max_num_queries(12):
        client.get(reverse("definition_list"))
    for name in ("drift_list", "evidence_list"):
        with django_assert_max_num_queries(12):
            client.get(reverse(name))
