"""Texts and query counts of the observation pages."""

import json
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import strip_tags

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, DefinitionRevision, Job, LabletDefinition, RevisionOutcome
from lcm.services.definitions import revert_definition, revise_definition
from lcm.tasks import run_job
from lcm.web import bulk_actions
from observations.arithmetic.measures import MEASURED
from observations.models import DefinitionAssessment, DriftReview, SessionObservation
from observations.pages.evidence import EXCLUDE
from observations.pages.lists import EVIDENCE
from observations.selectors.evidence import not_counted_sessions
from observations.services.requests import request_observation
from observations.services.session_exclusion import exclude_session, include_session
from tests.support.factories import make_definition
from tests.support.observed_labs import make_past_session, on_slot, post, seen

HTMX = {"HX-Request": "true"}
# Keeps numbers and units on one line.
KEPT = "\N{NO-BREAK SPACE}"


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


def test_the_review_shows_wrong_requirements_with_evidence(as_, viewer, known):
    text = as_(viewer).get(page("definition_review", known)).content.decode()
    assert "CPU is set too high." in text
    assert f"10 sessions used at most 2 of 4{KEPT}cores." in text
    assert text.count('class="dot"') >= 30
    assert f"decayed p95 2 used × 1.15 = 2.3, rounded up to 2.5{KEPT}cores" in text
    assert "Apply as revision" not in text
    assert "Only Admins can apply changes: " in text


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ({}, {"current": "current 4", "proposal": "proposal 2.5", "max": "max 2.1", "p95": "p95 2.1"}),
        ({"cpu_cores": "keep"}, {"current": "current 4", "max": "max 2.1", "p95": "p95 2.1"}),
        (
            {"cpu_cores": "custom", "cpu_cores_custom": "2"},
            {"current": "current 4", "proposal": "proposal 2", "max": "max 2.1", "p95": "p95 2.1"},
        ),
    ],
    ids=["recommended", "keep", "custom"],
)
def test_a_chart_has_a_dot_per_session_and_lines_for_the_proposal(query, lines, as_, viewer, known, observed):
    observed(known, 1, cpu="2.10", memory=3000, storage=6500)
    chart = as_(viewer).get(page("definition_review", known), query).context["charts"][0].chart
    assert {line.kind: line.label for line in chart.lines} == lines
    above = 1 if lines.get("proposal") == "proposal 2" else 0
    assert [mark.kind for mark in chart.marks] == ["over"] * above
    assert chart.dots.count("<circle") == 11 - above


@pytest.mark.parametrize(
    ("cores", "note"),
    [
        ("2.5", "none above the proposal"),
        ("2.05", "1 session above the proposal"),
        ("1", "11 sessions above the proposal"),
        ("4", "none above the current requirement"),
    ],
)
def test_a_chart_names_the_line_that_sessions_exceed(cores, note, as_, viewer, known, observed):
    observed(known, 1, cpu="2.10", memory=3000, storage=6500)
    query = {"cpu_cores": "custom", "cpu_cores_custom": cores}
    response = as_(viewer).get(page("definition_review", known), query)
    assert response.context["charts"][0].note == note


def test_the_charts_show_the_time_range_of_the_page(as_, viewer, known, now):
    LabletDefinition.objects.filter(pk=known.pk).update(created_at=now - timedelta(days=40))
    old = SessionObservation.objects.filter(definition=known).values_list("session_id", flat=True)[:4]
    SessionObservation.objects.filter(session__in=list(old)).update(observed_at=now - timedelta(days=20))
    client, around = as_(viewer), page("definition_detail", known)

    def shown(query, name="definition_review", **data):
        headers = {**HTMX, "HX-Current-URL": f"http://testserver{around}?{query}"}
        return client.get(page(name, known), data, headers=headers)

    for query, count in (("", 10), ("range=all", 10), ("range=30d", 10), ("range=7d", 6)):
        charts = shown(query).context["charts"]
        assert charts[0].chart.dots.count("<circle") == count, query
    # A choice in the form keeps the range, and a link of the range has no choices.
    preview = shown("range=7d", "definition_preview", cpu_cores="keep")
    assert preview.context["charts"][0].chart.dots.count("<circle") == 6
    assert 'id="review-range"' not in preview.content.decode()
    link = shown("", "definition_preview", cpu_cores="keep", range="7d")
    assert link.context["charts"][0].chart.dots.count("<circle") == 6
    assert f'href="{around}?range=7d"' in link.content.decode()
    SessionObservation.objects.update(observed_at=now - timedelta(days=20))
    text = shown("range=7d").content.decode()
    assert "No session was observed in this time range." in text
    assert "No sessions observed yet" not in text
    alone = client.get(page("definition_review", known), {"range": "7d", "cpu_cores": "keep"})
    assert f'href="{page("definition_review", known)}?cpu_cores=keep&amp;range=30d"' in alone.content.decode()


def test_the_chart_of_one_session_has_a_singular_text(as_, viewer, active_definition, observed):
    observed(active_definition, 1, cpu="2.00", memory=3000, storage=6500)
    chart = as_(viewer).get(page("definition_review", active_definition)).context["charts"][0]
    assert chart.sentence.startswith("CPU used by one session, in cores: ")


def test_the_lead_names_all_wrong_requirements(as_, viewer, active_definition, observed):
    observed(active_definition, 8, cpu="4.50", memory=5000, storage=6500)
    assert lead_in(as_(viewer), active_definition).startswith(
        "<strong>CPU and memory are set too low.</strong> "
        f"8 sessions used at most 4.5 of 4{KEPT}cores and 4.89 of 3.5{KEPT}GB memory."
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"cpu_cores": "recommended"}, ("15 core-hours less", "")),
        ({"cpu_cores": "custom", "cpu_cores_custom": "4.5"}, ("5 core-hours more", "")),
        (
            {"cpu_cores": "recommended", "memory_gb": "custom", "memory_gb_custom": "5"},
            ("15 core-hours less", "15 GB-hours of memory more"),
        ),
        ({"cpu_cores": "keep"}, ("the same", "")),
    ],
)
def test_the_effect_over_the_last_days_is_shown_in_hours(query, expected, as_, viewer, known):
    figures = as_(viewer).get(page("definition_review", known), query).context["figures"]
    held = next(each for each in figures if each.label == "Effect over the last 30 days")
    assert (held.value, held.note) == expected


def test_a_single_source_is_not_selectable(as_, viewer, known, definition, observed):
    text = as_(viewer).get(page("definition_review", known)).content.decode()
    assert '<option value="allocated">allocated (10)</option>' in text
    observed(definition, 5, cpu=None, memory=None, storage=None)
    text = as_(viewer).get(page("definition_review", definition)).content.decode()
    assert "<option" not in text
    assert '<input type="hidden" name="cpu_cores_source" value="allocated">' in text
    assert "allocated, 5 sessions" in text


def test_the_number_of_unlisted_nodes_is_shown(as_, viewer, active_definition, observed):
    observed(active_definition, 5, nodes=8)
    text = as_(viewer).get(page("definition_review", active_definition)).content.decode()
    assert "The 6 of 8 nodes with the most memory." in text


def test_the_review_of_an_unobserved_definition_is_empty(as_, viewer, definition):
    text = as_(viewer).get(page("definition_review", definition)).content.decode()
    assert "No completed session has been observed yet." in text
    assert text.count("No sessions observed yet") == 1, "one empty state instead of empty charts"
    assert 'class="chart' not in text


def test_the_preview_returns_the_parts_that_depend_on_the_basis(as_, admin, known):
    query = {"cpu_cores": "custom", "cpu_cores_custom": "1.5", "memory_gb": "max"}
    text = as_(admin).get(page("definition_preview", known), query, headers=HTMX).content.decode()
    assert "10 of 10" in text
    assert "Sessions by CPU" in text
    assert text.count("hx-swap-oob") == 3 + len(MEASURED)
    assert "−62&nbsp;%" in text
    assert 'name="token"' in text


def test_an_invalid_number_is_reported_and_cannot_be_applied(as_, admin, known):
    query = {"cpu_cores": "custom", "cpu_cores_custom": "-3"}
    text = as_(admin).get(page("definition_preview", known), query, headers=HTMX).content.decode()
    assert "CPU must be between 0.01 and 999,999 cores, with at most two decimals; you entered" in text
    assert "disabled" in text


def error_of(resource, text):
    found = re.search(rf'<div id="{resource}-problem"[^>]*>(.*?)</div>', text, re.S)
    return strip_tags(found[1]).strip()


def test_errors_stand_at_their_fields_and_the_other_rows_keep_what_was_entered(as_, admin, viewer, known):
    query = {
        "cpu_cores": "custom",
        "cpu_cores_custom": "many",
        "memory_gb": "custom",
        "memory_gb_custom": "-3",
        "storage_gb": "custom",
        "storage_gb_custom": "5.5",
    }
    client = as_(admin)
    for path in ("definition_review", "definition_preview"):
        headers = HTMX if path == "definition_preview" else {}
        response = client.get(page(path, known), query, headers=headers)
        text = response.content.decode()
        assert error_of("cpu_cores", text) == "“many” is not a number."
        assert error_of("memory_gb", text).startswith("Memory must be between 0.01")
        assert error_of("storage_gb", text) == ""
        assert {figure.value for figure in response.context["figures"]} == {"–"}
        assert "Correct the marked values to see the effect." in text
    rows = {
        row.resource: row for row in client.get(page("definition_review", known), query).context["options"]
    }
    assert (rows["storage_gb"].custom, rows["storage_gb"].is_custom) == ("5.5", True)
    assert (rows["cpu_cores"].custom, rows["memory_gb"].custom) == ("many", "-3")
    refused = client.post(page("definition_apply", known), query | {"reason": "x", "token": "y"})
    assert refused.status_code == 400
    assert error_of("cpu_cores", refused.content.decode()) == "“many” is not a number."
    assert "refusals" not in refused.context
    assert refused.context["reason"] == "x"


def test_a_missing_reason_is_reported_at_its_field(as_, admin, known):
    client = as_(admin)
    shown = client.get(page("definition_review", known), {"cpu_cores": "recommended"}).content.decode()
    data = {"cpu_cores": "recommended", "token": token_in(shown), "reason": " "}
    response = client.post(page("definition_apply", known), data, headers=HTMX)
    assert response.status_code == 422
    assert "Enter a reason" in response.context["reason_problem"]
    assert 'id="review-reason-problem"' in response.content.decode()


def test_people_who_cannot_apply_see_who_can(as_, viewer, admin, known):
    text = as_(viewer).get(page("definition_review", known)).content.decode()
    assert f"Only Admins can apply changes: {admin.display_name}." in text


def test_a_revert_offers_to_snooze_the_same_recommendation(as_, admin, regress):
    definition = regress(2)
    client = as_(admin)
    DefinitionAssessment.objects.filter(definition=definition).update(flags={"cpu_cores": "over"})
    form = {"based_on": "2", "reason": "too slow"}
    response = client.post(reverse("definition_revert", args=[definition.pk, 1]), form)
    offer = page("review_snooze", definition) + "?after=revert"
    assert (response.status_code, response["Location"]) == (302, offer)
    text = client.get(offer).content.decode()
    assert "Snooze the same recommendation for" in text
    assert "Do not snooze" in text
    assert "too slow" in text
    until = timezone.localtime(timezone.now() + timedelta(days=7))
    client.post(offer, {"until": f"{until:%Y-%m-%dT%H:%M}", "reason": "too slow"})
    assert DefinitionAssessment.objects.get(definition=definition).snooze_reason == "too slow"


def token_in(text):
    return text.split('name="token" value="')[1].split('"')[0]


def test_applying_from_the_page(as_, admin, known):
    client = as_(admin)
    shown = client.get(page("definition_review", known), {"cpu_cores": "recommended"}).content.decode()
    data = {"cpu_cores": "recommended", "memory_gb": "keep", "storage_gb": "keep", "token": token_in(shown)}
    data |= {"cpu_cores_source": "used", "memory_gb_source": "used", "storage_gb_source": "used"}
    response = client.post(page("definition_apply", known), {**data, "reason": "they say so"})
    assert (response.status_code, response.headers["Location"]) == (302, page("definition_detail", known))
    assert DefinitionRevision.objects.get(number=2).reason == "they say so"
    text = client.get(page("definition_review", known)).content.decode()
    assert "Watching revision 2: 0 of 5 sessions stayed within limits." in text


def lead_in(client, definition):
    text = client.get(page("definition_review", definition)).content.decode()
    return text.split('<p class="lead">')[1].split("</p>")[0]


def test_the_lead_counts_sessions_with_the_current_revision(
    as_, viewer, known, observed, as_admin, now, django_capture_on_commit_callbacks
):
    client, fits = as_(viewer), "<strong>Right-sized</strong>"
    with django_capture_on_commit_callbacks(execute=True):
        revise_definition(
            definition=known,
            requirements={"cpu_cores": Decimal("2.5")},
            based_on=1,
            reason="less",
            actor=as_admin,
            now=now,
        )
    assert lead_in(client, known) == f"{fits} according to 10 sessions, none with revision 2 yet."
    observed(known, 2, cpu="2.00", memory=3000, storage=6500)
    assert lead_in(client, known) == f"{fits} according to 12 sessions, 2 with revision 2."
    DefinitionRevision.objects.filter(number=2).update(outcome=RevisionOutcome.REGRESSED)
    assert lead_in(client, known) == (
        "<strong>Revision 2 was exceeded by the sessions after it.</strong> "
        "Over all 12 sessions the requirements are right-sized."
    )


def test_the_lead_of_a_first_revision_counts_its_sessions(as_, viewer, active_definition, observed):
    client = as_(viewer)
    observed(active_definition, 1, cpu="3.40", memory=3000, storage=6500)
    assert lead_in(client, active_definition).startswith(
        "<strong>Not enough data: 1 session observed.</strong>"
    )
    observed(active_definition, 1, cpu="3.40", memory=3000, storage=6500)
    assert lead_in(client, active_definition).startswith(
        "<strong>Not enough data: 2 sessions observed.</strong>"
    )
    observed(active_definition, 8, cpu="3.40", memory=3000, storage=6500)
    assert lead_in(client, active_definition).endswith("</strong> according to 10 sessions.")


def test_a_stale_page_shows_what_changed_and_keeps_the_reason(as_, admin, known, observed):
    client = as_(admin)
    shown = client.get(page("definition_review", known), {"cpu_cores": "recommended"}).content.decode()
    observed(known, 1, cpu="3.00", memory=3000, storage=6500)
    data = {"cpu_cores": "recommended", "token": token_in(shown), "reason": "they say so"}
    plain = client.post(page("definition_apply", known), data)
    swapped = client.post(page("definition_apply", known), data, headers=HTMX)
    assert (plain.status_code, swapped.status_code) == (412, 422)
    text = swapped.content.decode()
    assert "the proposal was 2.5 cores and is now 3.5 cores." in text
    assert 'value="they say so"' in text
    assert text.strip().startswith('<div class="stack" id="panel-review">')


REVIEW_BACK = "Revert to revision"


@pytest.fixture
def regress(known, observed, as_admin, now, django_capture_on_commit_callbacks):
    """`regress(2)` requires 2 GB, which the next session exceeds; without a number, as revision 1."""

    def apply_and_exceed(memory=None):
        based_on = known.current_revision.number
        data = {"definition": known, "based_on": based_on, "reason": "x", "actor": as_admin, "now": now}
        with django_capture_on_commit_callbacks(execute=True):
            if memory is None:
                revert_definition(number=1, **data)
            else:
                revise_definition(requirements={"memory_gb": Decimal(memory)}, **data)
        observed(known, 1, cpu="2.00", memory=4000, storage=6500)
        assert known.current_revision.outcome == "regressed"
        return known

    return apply_and_exceed


def test_administrators_can_revert_a_regressed_revision(as_, admin, viewer, regress):
    shown = page("definition_review", regress(2))
    text = as_(admin).get(shown).content.decode()
    assert "memory exceeded by 1 of 1 session." in text
    assert "Revert to revision 1…" in text
    text = as_(viewer).get(shown).content.decode()
    assert "Revision 2 has regressed:" in text
    assert REVIEW_BACK not in text
    assert "Choose other values" not in text


@pytest.mark.parametrize("second", [None, 3], ids=["a revert", "after a revision that regressed"])
def test_a_revert_to_a_regressed_revision_is_not_offered(second, as_, admin, regress):
    regress(2)
    text = as_(admin).get(page("definition_review", regress(second))).content.decode()
    assert "Revision 3 has regressed:" in text
    assert REVIEW_BACK not in text
    assert '<a href="#review-form">Choose other values</a> below.' in text


def test_a_regression_without_a_flag_can_be_snoozed_on_the_page(as_, admin, viewer, regress):
    definition = regress(2)
    DefinitionAssessment.objects.filter(definition=definition).update(flags={}, reasons=[])
    assert "Snooze…" in as_(admin).get(page("definition_review", definition)).content.decode()
    assert "Snooze…" not in as_(viewer).get(page("definition_review", definition)).content.decode()
    as_(admin).post(page("review_dismiss", definition), {"reason": "one odd session"})
    assert DefinitionAssessment.objects.get(definition=definition).snooze_reason == "one odd session"


def test_the_list_of_definitions_shows_class_and_waste(as_, viewer, known, definition):
    text = as_(viewer).get(reverse("definition_list")).content.decode()
    assert "1 of 2 definitions needs review." in text
    assert text.index("campus") < text.index("branch-office")
    assert "20 <span" in text.replace("\n", "")  # core-hours wasted: 2 cores × 10 hours
    rows = as_(viewer).get(reverse("definition_list") + "?class=not_enough_data").content.decode()
    assert ">campus<" not in rows


def test_the_list_sorts_by_its_columns(as_, viewer, known, definition):
    client = as_(viewer)
    for sort in ("-assessment__waste_cpu", "assessment__n", "name"):
        assert client.get(reverse("definition_list"), {"sort": sort}).context["sort"] == sort


def test_the_order_of_the_list_is_shown_and_can_be_restored(as_, viewer, known, definition):
    client = as_(viewer)
    text = client.get(reverse("definition_list")).content.decode()
    assert (
        "Sorted by review priority. Waste covers the last 30 days. Sessions counts the measured sessions."
        in text
    )
    assert "aria-sort" not in text
    sorted_by_name = client.get(reverse("definition_list"), {"sort": "name", "q": "c"}, headers=HTMX)
    assert '<a href="?q=c">Sort by review priority</a>.' in sorted_by_name.content.decode()


def exported(response):
    return response.getvalue().decode()


@pytest.mark.django_db(transaction=True)
def test_definitions_and_their_evidence_are_exported(as_, viewer, known):
    client = as_(viewer)
    heads, row = exported(client.get(reverse("definition_list"), {"format": "csv"})).splitlines()
    found = dict(zip(heads.split(","), row.split(","), strict=True))
    assert (found["Class"], found["CPU cores required"], found["CPU cores recommended"]) == (
        "Over-provisioned",
        "4.00",
        "2.50",
    )
    data = {"definition": known.pk, "format": "json"}
    rows = json.loads(exported(client.get(reverse("evidence_list"), data)))
    assert len(rows) == 10
    assert {(each["peak_cpu_used"], each["counted"], each["revision"]) for each in rows} == {
        ("2.00", True, 1)
    }


def test_bulk_actions_understand_the_filters_of_the_list(as_, admin, known, definition):
    data = {"all": "1", "filter_query": "class=over_provisioned", "reason": "too big"}
    as_(admin).post(reverse("definition_bulk_deprecate"), data)
    known.refresh_from_db()
    definition.refresh_from_db()
    assert (known.status, definition.status) == ("deprecated", "draft")


def test_a_session_page_compares_planned_and_observed(as_, viewer, operator, running, now):
    on_slot(running, ports={"r1_serial": 5041, "host_pat": 2022})
    post(running, seen(now, cpu="1.00", ports={"r1_serial": 5041, "r9_vnc": 6001}), now)
    text = as_(viewer).get(reverse("session_observation", args=[running.pk])).content.decode()
    assert "−75 %" in text
    assert "1 match, 2 differ" in text
    assert 'data-label="Used">1 <span class="sub">core</span>' in text
    assert "<summary>" in text[text.index('id="ports-title"') : text.index("Show 1 matching")]
    lead = re.sub(r"<[^>]+>", "", text[text.index('class="lead"') :])
    assert re.search(r"Observed (just now|\d+ s ago)\. 2 ports differ from the plan\.", lead)
    assert "Reserved on the worker until observed free" in text
    assert "Acknowledge…" not in text
    assert (
        "Acknowledge…"
        in as_(operator).get(reverse("session_observation", args=[running.pk])).content.decode()
    )


def test_an_unobserved_session_shows_when_it_will_be_observed(as_, viewer, running, session_in):
    on_slot(running, ports={"r1_serial": 5041})
    text = as_(viewer).get(reverse("session_observation", args=[running.pk])).content.decode()
    when = "LCM observes the lab before teardown and on request."
    assert f"<strong>Not observed yet.</strong> {when}" in text
    assert text.count(when) == 1
    panel = as_(viewer).get(reverse("session_observation", args=[running.pk]), headers=HTMX).content.decode()
    assert when in panel
    assert text.count('data-label="Used"><span class="muted">not yet</span>') == 3
    assert "<code>r1_serial</code> <b>5041</b>" in text
    assert "<summary>" not in text[text.index('id="ports-title"') :], "nothing to fold"
    ended = session_in(SessionStatus.TERMINATED)
    text = as_(viewer).get(reverse("session_observation", args=[ended.pk])).content.decode()
    assert "The session ended without an observation." in text


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (SessionStatus.PENDING, "Ports are allocated when a slot is assigned."),
        (SessionStatus.TERMINATED, "The session has released its ports."),
    ],
)
def test_a_session_without_ports_shows_the_reason(status, expected, as_, viewer, session_in):
    session = session_in(status)
    here = reverse("session_observation", args=[session.pk])
    assert expected in as_(viewer).get(here).content.decode()
    DefinitionRevision.objects.update(port_template=[])
    assert "The session has no ports." in as_(viewer).get(here).content.decode()


def test_observe_now_shows_progress_and_completion(as_, operator, running, as_operator, now, time_machine):
    time_machine.move_to(now, tick=False)
    client, here = as_(operator), reverse("session_observation", args=[running.pk])
    response = client.post(reverse("session_observe", args=[running.pk]), headers=HTMX).content.decode()
    assert "Observing…" in response
    assert 'hx-trigger="every 2s"' in response
    assert re.search(r"as of \d\d:\d\d:\d\d", response)
    time_machine.move_to(now + timedelta(seconds=121), tick=False)
    late = client.get(here).content.decode()
    assert "No response" in late
    assert "every 2s" not in late
    request_observation(session=running, actor=as_operator, now=now + timedelta(seconds=121))
    post(running, seen(now + timedelta(seconds=130)), now + timedelta(seconds=130))
    time_machine.move_to(now + timedelta(seconds=131), tick=False)
    assert "completed in 9 s" in client.get(here).content.decode()


def test_a_rejected_observation_request_is_shown_once_in_the_panel(as_, operator, collecting):
    client, address = as_(operator), reverse("session_observe", args=[collecting.pk])
    response = client.post(address, headers=HTMX)
    text = response.content.decode()
    assert (response.status_code, "<html" in text) == (422, False)
    notice = text[text.index('role="alert"') :]
    assert "is collecting; only a running session can be observed." in notice
    assert "only a running session" not in client.get(reverse("home")).content.decode()


def test_without_htmx_a_rejected_observation_request_is_shown_on_the_session_page(as_, operator, collecting):
    address = reverse("session_observe", args=[collecting.pk])
    response = as_(operator).post(address, follow=True)
    assert response.redirect_chain[-1][0] == reverse("session_detail", args=[collecting.pk])
    assert "only a running session can be observed." in response.content.decode()


def test_only_a_running_session_has_observe_now(as_, operator, collecting):
    text = as_(operator).get(reverse("session_observation", args=[collecting.pk])).content.decode()
    assert "Observe now" not in text


def test_drift_is_acknowledged_and_reopened_on_its_pages(as_, operator, running, now):
    on_slot(running, ports={})
    post(running, seen(now, ports={"r9_vnc": 6001}), now)
    review, client = DriftReview.objects.get(), as_(operator)
    assert "1 open deviation" in client.get(reverse("drift_list")).content.decode()
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    client.post(reverse("drift_acknowledge", args=[review.pk]), {"reason": "known", "until": until})
    panel = client.get(reverse("definition_drift", args=[review.definition_id])).content.decode()
    assert "“known”, otto, until" in panel
    address = reverse("drift_reopen", args=[review.pk])
    assert client.post(address).status_code == 422
    client.post(address, {"reason": "it grew"})
    review.refresh_from_db()
    assert review.state == "open"
    assert ChangeLog.objects.get(event="observation.drift_reopened").reason == "it grew"


def test_the_drift_of_a_definition_describes_each_deviation(as_, viewer, active_definition, running, now):
    client, here = as_(viewer), page("definition_drift", active_definition)
    on_slot(running, ports={"r1_serial": 5041})
    assert "No ports observed yet." in client.get(here).content.decode()
    post(running, seen(now, ports={"r1_serial": 5041}), now)
    assert "All observed labs use their allocated ports." in client.get(here).content.decode()
    later = now + timedelta(minutes=1)
    post(running, seen(later, ports={"r1_serial": 5041, "r9_vnc": 6001}), later)
    text = client.get(here).content.decode()
    assert "<strong>1 open deviation.</strong>" in text
    assert ">Port drift</h2>" not in text
    assert "Show all" not in text


def test_a_long_drift_panel_links_to_the_full_list(as_, viewer, active_definition, now):
    shown = {"definition": active_definition, "kind": "extra", "first_seen": now, "last_seen": now}
    for number in range(51):
        DriftReview.objects.create(fingerprint=str(number), name=f"r{number}", **shown)
    panel = as_(viewer).get(page("definition_drift", active_definition), headers=HTMX).content.decode()
    assert "Show all" in panel
    assert ">Port drift</h2>" in panel


def test_a_session_is_excluded_and_included_on_the_page(as_, admin, known):
    session = known.sessions.first()
    client = as_(admin)
    client.post(reverse("session_exclude", args=[session.pk]), {"reason": "a test"})
    text = client.get(page("definition_review", known)).content.decode()
    assert "“a test”" in text
    assert "Include…" in text
    address = reverse("session_include", args=[session.pk])
    assert client.post(address).status_code == 422
    client.post(address, {"reason": "it was right"})
    assert ChangeLog.objects.get(event="observation.included").reason == "it was right"
    assert "“a test”" not in client.get(page("definition_review", known)).content.decode()


def test_excluded_sessions_stay_listed_before_newer_uncounted_ones(
    as_, admin, known, project, operator, as_admin, now
):
    odd = known.sessions.order_by("created_at").first()
    exclude_session(session=odd, reason="by hand", actor=as_admin, now=now)
    for _ in range(21):
        session = make_past_session(known, project, operator, ended=now, length=timedelta(minutes=5))
        post(session, seen(now), now)
    rows = not_counted_sessions(known)
    assert (rows[0].session_id, len(rows)) == (odd.pk, 21)
    text = as_(admin).get(page("definition_review", known)).content.decode()
    assert reverse("session_include", args=[odd.pk]) in text


def test_admins_exclude_and_include_sessions_in_the_list(as_, admin, operator, known):
    session = known.sessions.first()
    there = {"session": session.pk}
    exclude, include = (reverse(f"session_{name}", args=[session.pk]) for name in ("exclude", "include"))
    text = as_(admin).get(reverse("evidence_list"), there).content.decode()
    assert (exclude in text, include in text) == (True, False)
    as_(admin).post(exclude, {"reason": "a test"})
    text = as_(admin).get(reverse("evidence_list"), there).content.decode()
    assert (exclude in text, include in text) == (False, True)
    text = as_(operator).get(reverse("evidence_list"), there).content.decode()
    assert (exclude in text, include in text) == (False, False)


@pytest.mark.parametrize(
    ("minutes", "least", "expected"),
    [
        (4, 600, "up too briefly (up for 4 min, at least 10 min needed)"),
        (4, 300, "up too briefly (up for 4 min, at least 5 min needed)"),
        (8, 300, "up too briefly (up for 8 min, too short by the rule at that time)"),
    ],
)
def test_pages_show_how_long_the_nodes_of_a_short_session_were_up(
    minutes, least, expected, as_, viewer, active_definition, project, operator, now, settings
):
    session = make_past_session(
        active_definition, project, operator, ended=now, length=timedelta(minutes=minutes)
    )
    post(session, seen(now), now)
    settings.CONFIG = {**settings.CONFIG, "SAMPLE_MIN_UPTIME_SECONDS": least}
    client = as_(viewer)
    pages = (
        page("definition_review", active_definition),
        reverse("session_observation", args=[session.pk]),
        reverse("evidence_list"),
    )
    for address in pages:
        assert expected in client.get(address).content.decode(), address


def test_a_review_is_snoozed_on_the_page(as_, admin, known, now):
    until = (now + timedelta(days=10)).strftime("%Y-%m-%dT%H:%M")
    client = as_(admin)
    client.post(page("review_snooze", known), {"reason": "exams", "until": until})
    assert "Snoozed until" in client.get(page("definition_review", known)).content.decode()
    client.post(page("review_dismiss", known), {"reason": "as it should be"})
    assert "Dismissed by ada" in client.get(page("definition_review", known)).content.decode()


def test_uncounted_sessions_are_listed_with_the_reason(as_, viewer, known, running, now):
    post(running, seen(now), now)
    text = as_(viewer).get(reverse("evidence_list")).content.decode()
    assert ">11 observed sessions<" in text
    assert "The session ended before Collecting" in text
    left = as_(viewer).get(reverse("evidence_list"), {"not_counted_reason": "not_collected"}).content.decode()
    assert ">1 observed session<" in left


def test_observed_sessions_are_found_by_id_owner_and_definition(as_, viewer, operator, known, project, now):
    other = make_past_session(known, project, viewer, ended=now)
    post(other, seen(now), now)
    client, here = as_(viewer), reverse("evidence_list")
    looked_for = {
        known.name.upper(): ">11 observed",
        other.pk.hex[:8]: ">1 observed",
        str(other.pk): ">1 observed",
        viewer.username: ">1 observed",
        operator.username[:3].upper(): ">10 observed",
        "no-such-lab": "No observed session matches",
    }
    for text, count in looked_for.items():
        assert count in client.get(here, {"q": text}).content.decode(), text


def test_the_list_of_observed_sessions_is_below_definitions(as_, viewer, known):
    response = as_(viewer).get(reverse("evidence_list"))
    assert response.context["crumbs"] == [("Definitions", "/definitions/"), ("Observed sessions", "")]
    groups = response.context["navigation"]()
    assert [entry.key for _, each in groups for entry, _, is_here in each if is_here] == ["definitions"]


def test_the_lead_counts_observed_sessions(as_, viewer, active_definition, observed, as_admin, now):
    lead = EVIDENCE.lead
    assert lead() == "**No sessions observed yet.**"
    first = observed(active_definition, 1)[0]
    assert lead() == "**1 observed session · 1 counted** · 0 above the allocation"
    exclude_session(session=first, reason="x", actor=as_admin, now=now)
    assert lead() == "**1 observed session · 0 counted** · 0 above the allocation"
    observed(active_definition, 2, cpu="5.00", memory=9000)
    assert lead() == "**3 observed sessions · 2 counted** · 2 above the allocation"
    include_session(session=first, reason="x", actor=as_admin, now=now)
    assert lead() == "**3 observed sessions · 3 counted** · 2 above the allocation"
    text = as_(viewer).get(reverse("evidence_list")).content.decode()
    assert text.count("</svg>above</span>") == 4
    assert "Exclude…" not in text


def test_many_sessions_are_excluded_and_included_with_a_reason(as_, admin, known):
    client, keys = as_(admin), [str(each.pk) for each in known.sessions.all()[:3]]
    exclude, include = reverse("evidence_bulk_exclude"), reverse("evidence_bulk_include")
    assert "Exclude 3 observed sessions?" in client.post(exclude, {"pk": keys}).content.decode()
    assert client.post(exclude, {"pk": keys, "reason": " "}).status_code == 422
    client.post(exclude, {"pk": keys, "reason": "a course of tests"})
    assert known.observations.filter(is_sample=True).count() == 7
    assert set(known.observations.filter(is_sample=False).values_list("excluded_reason", flat=True)) == {
        "a course of tests"
    }
    dialog = client.post(include, {"all": "1", "filter_query": ""}).content.decode()
    assert "3 of 10 observed sessions can be included." in dialog
    client.post(include, {"all": "1", "filter_query": "", "reason": "they were right"})
    assert known.observations.filter(is_sample=True).count() == 10
    assert ChangeLog.objects.filter(event="observation.included", reason="they were right").count() == 3


def test_very_many_sessions_are_excluded_by_a_job(as_, admin, known, monkeypatch):
    monkeypatch.setitem(vars(EXCLUDE), "at_once", 1)
    monkeypatch.setattr(bulk_actions, "BATCH", 4)
    data = {"all": "1", "filter_query": f"definition={known.pk}", "reason": "a course of tests"}
    as_(admin).post(reverse("evidence_bulk_exclude"), data)
    job = Job.objects.get()
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.title, job.result) == ("Exclude 10 observed sessions", "10 observed sessions excluded.")
    assert not known.observations.filter(is_sample=True).exists()


def test_pages_cost_the_same_for_few_and_many(as_, viewer, known, observed, django_assert_max_num_queries):
    client = as_(viewer)
    for name in ("definition_review", "definition_drift"):
        with django_assert_max_num_queries(20):
            client.get(page(name, known), headers=HTMX)
    for index in range(5):
        make_definition(f"more-{index}")
    with django_assert_max_num_queries(12):
        client.get(reverse("definition_list"))
    for address in (reverse("drift_list"), reverse("evidence_list"), f"{reverse('evidence_list')}?q=o"):
        with django_assert_max_num_queries(12):
            client.get(address)
