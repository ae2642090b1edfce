"""Pages of a pool's scheduler, slot labels and the dry run."""

import pytest
from django.contrib.messages import get_messages
from django.db.models import Q
from django.urls import reverse

from scheduling.models import Pool, Reservation, Slot
from scheduling.placement.framework.configuration import DEFAULT_CONFIGURATION
from tests.support.fleet import active_reservation
from tests.support.scheduler_setup import FAILING

TEXT = DEFAULT_CONFIGURATION.replace("[allocate]", "[allocate, reclaim]")


@pytest.fixture
def scheduler_url(pool):
    return reverse("pool_scheduler", args=[pool.pk])


def test_the_form_lists_the_arguments_of_each_plugin(login_as, admin, scheduler_url):
    page = login_as(admin).get(scheduler_url)
    listed = {plugin.name: plugin.arguments for plugin in page.context["form"].known_plugins()}
    (lead,) = listed["timeslot"]
    assert (lead.name, lead.type, lead.default, lead.limits) == ("lead_minutes", "number", "15", "0 to 1440")
    assert lead.meaning == "A job may be placed this many minutes before its timeslot starts."
    assert lead.meaning in page.content.decode()
    assert all(each.type and each.meaning for arguments in listed.values() for each in arguments)


def test_the_form_of_a_pool_without_its_own_scheduler_shows_the_default(login_as, admin, scheduler_url):
    page = login_as(admin).get(scheduler_url)
    assert page.context["form"]["scheduler"].value() == DEFAULT_CONFIGURATION


def test_the_form_lists_the_plugins_and_their_arguments(login_as, admin, scheduler_url, page_text):
    text = page_text(login_as(admin).get(scheduler_url))
    assert "cml-eu uses the default scheduler." in text
    assert "timeslot Place jobs from their lead time until their end" in text
    assert "lead_minutes: 15 " in text
    assert "spread Prefer the slot that is emptiest with the task on it. weight: 1 , cpu_cores: 1" in text
    assert (
        "quota Keep a job waiting that would exceed the limit of its queue or of a parent queue. limits: none"
        in text
    )
    assert "submit_order Place the oldest job first. none" in text


def test_the_form_shows_whether_the_pool_has_its_own_scheduler(login_as, admin, scheduler_url, page_text):
    client = login_as(admin)
    client.post(scheduler_url, {"scheduler": TEXT, "reason": "exams"})
    assert "cml-eu has its own scheduler." in page_text(client.get(scheduler_url))


def test_the_lines_of_the_default_scheduler_fit_the_text_field():
    assert max(len(line) for line in DEFAULT_CONFIGURATION.splitlines()) <= 90


def test_plugins_are_collapsed_unless_customized_or_failed(login_as, viewer, pool, page_text):
    client, pool_url = login_as(viewer), reverse("pool_detail", args=[pool.pk])
    page = client.get(pool_url)
    assert "Default scheduler" in page_text(page)
    assert '<details class="more"><summary>' in page.content.decode()
    Pool.objects.filter(pk=pool.pk).update(scheduler=TEXT)
    page = client.get(pool_url)
    assert "Custom scheduler" in page_text(page)
    assert '<details class="more" open><summary>' in page.content.decode()


def test_a_scheduler_is_saved_as_browsers_send_it(login_as, admin, scheduler_url, pool):
    response = login_as(admin).post(
        scheduler_url, {"scheduler": TEXT.replace("\n", "\r\n"), "reason": "exams"}
    )
    assert response.status_code == 302
    pool.refresh_from_db()
    assert pool.scheduler == TEXT


def test_the_default_scheduler_is_stored_as_empty_text(login_as, admin, scheduler_url, pool):
    login_as(admin).post(scheduler_url, {"scheduler": TEXT, "reason": "exams"})
    login_as(admin).post(scheduler_url, {"scheduler": DEFAULT_CONFIGURATION, "reason": "over"})
    pool.refresh_from_db()
    assert pool.scheduler == ""


def test_problems_are_reported_with_their_line(login_as, admin, scheduler_url, pool, page_text):
    response = login_as(admin).post(
        scheduler_url, {"scheduler": TEXT.replace("name: spot", "name: spod"), "reason": "x"}
    )
    line = TEXT.splitlines().index("  - name: spot") + 1
    assert response.status_code == 422
    assert f"Line {line}: There is no plugin “spod”; did you mean “spot”?" in page_text(response)
    pool.refresh_from_db()
    assert pool.scheduler == ""


def test_limits_of_unknown_queues_show_a_warning(login_as, admin, scheduler_url, pool, page_text):
    limits = "  - name: quota\n    arguments: {limits: {nowhere: {sessions: 1}}}\n"
    text = DEFAULT_CONFIGURATION.replace("  - name: quota\n", limits)
    response = login_as(admin).post(scheduler_url, {"scheduler": text, "reason": "exams"})
    text = [str(message) for message in get_messages(response.wsgi_request)]
    assert "There is no queue “nowhere”: its limit has no effect." in text
    assert "There is no queue “nowhere”" in page_text(
        login_as(admin).get(reverse("pool_detail", args=[pool.pk]))
    )


def test_the_pool_shows_plugins_with_durations_and_failures(
    configure_pool, new_session, login_as, viewer, page_text
):
    fleet = configure_pool(scheduler=FAILING)
    fleet.slot()
    new_session()
    fleet.tick_without_errors()
    page = login_as(viewer).get(reverse("pool_detail", args=[fleet.pool.pk]))
    plugins_by_name = {plugin.name: plugin for plugin in page.context["scheduler"].plugins}
    assert plugins_by_name["resources"].ms >= 0
    assert plugins_by_name["failing_in_tests"].error == "RuntimeError: the licence server does not respond"
    assert "The plugin failing_in_tests failed." in page_text(page)
    assert "failing_in_tests Failed RuntimeError: the licence server does not respond" in page_text(page)
    assert "Edit scheduler" not in page_text(page)


def test_the_pool_page_reports_an_invalid_scheduler(configure_pool, login_as, viewer, page_text):
    fleet = configure_pool(scheduler="actions: [allocate]\nplugins: [gone]\n")
    text = page_text(login_as(viewer).get(reverse("pool_detail", args=[fleet.pool.pk])))
    assert (
        "The scheduler document is invalid, so nothing is placed. Line 2: There is no plugin “gone”" in text
    )


def test_the_labels_of_a_slot_are_edited(fleet, login_as, operator, page_text):
    slot = fleet.slot()
    client, scheduler_url = login_as(operator), reverse("slot_labels", args=[slot.pk])
    rack = {"labels-0-key": "rack", "labels-0-value": "b", "labels-1-key": "", "labels-1-value": ""}
    assert client.post(scheduler_url, {**rack, "reason": "moved"}).status_code == 302
    assert "rack=b" in page_text(client.get(reverse("slot_detail", args=[slot.pk])))
    for wrong, message in (
        ({"labels-1-key": "rack"}, "There are two values for “rack”."),
        ({"labels-1-value": "c"}, "Enter the key of the value “c”."),
    ):
        page = client.post(scheduler_url, {**rack, **wrong, "reason": "moved"})
        assert (page.status_code, message in page_text(page)) == (422, True)
        assert 'name="labels-0-key" value="rack"' in page.content.decode()
    assert Slot.objects.get(pk=slot.pk).labels == {"rack": "b"}
    assert client.post(scheduler_url, {"labels-0-key": "", "reason": "back"}).status_code == 302
    assert Slot.objects.get(pk=slot.pk).labels == {}


def test_a_dry_run_shows_the_placements(fleet, new_session, login_as, operator, page_text):
    session = new_session()
    page = login_as(operator).post(
        reverse("dry_run"), {"pool": "cml-eu", "add_slots": "1", "scheduler": DEFAULT_CONFIGURATION}
    )
    text = page_text(page)
    assert "1 of 1 would be placed , instead of 0." in text
    assert "Newly placed" in text
    assert "new slot 1" in text
    assert session.short_id in text
    assert Reservation.objects.get().slot is None


def test_a_dry_run_of_a_drained_slot_and_another_requirement(
    fleet, new_session, login_as, operator, page_text, active_definition
):
    slot = fleet.slot()
    fleet.slot(cpu_cores=2)
    new_session()
    client = login_as(operator)
    drained_page = client.post(reverse("dry_run"), {"pool": "cml-eu", "drain": [str(slot.pk)]})
    assert "No longer placed" in page_text(drained_page)
    smaller = {
        "pool": "cml-eu", "drain": [str(slot.pk)], "definition": str(active_definition.pk), "cpu_cores": "2",
    }  # fmt: skip
    assert "Placed on another slot" in page_text(client.post(reverse("dry_run"), smaller))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({"cpu_cores": "2"}, "Choose a definition or a session, and enter at least one amount."),
        ({"session": "00000000", "cpu_cores": "2"}, "No session “00000000” is waiting in cml-eu."),
        ({"session": "what?", "cpu_cores": "2"}, "No session “what?” is waiting in cml-eu."),
        ({"scheduler": "plugins: []"}, "Line 1: “actions” is missing."),
        ({"add_slots": "-1"}, "greater than or equal to 0"),
        ({"drain": ["nothing"]}, "nothing is not one of the available choices"),
    ],
)
def test_a_dry_run_reports_invalid_input(data, text, fleet, login_as, operator, page_text):
    page = login_as(operator).post(reverse("dry_run"), {"pool": "cml-eu", **data})
    assert page.status_code == 422
    assert text in page_text(page)


def test_a_dry_run_of_a_definition_requires_amounts(
    fleet, new_session, login_as, operator, active_definition, page_text
):
    new_session()
    page = login_as(operator).post(
        reverse("dry_run"), {"pool": "cml-eu", "definition": str(active_definition.pk)}
    )
    assert page.status_code == 422
    assert page.context["form"].errors == {"definition": ["Enter at least one amount."]}


def test_a_dry_run_accepts_the_short_id_of_a_session(fleet, new_session, login_as, operator, page_text):
    fleet.slot(cpu_cores=2)
    session = new_session()
    form_data = {"pool": "cml-eu", "session": session.short_id, "cpu_cores": "2"}
    page = login_as(operator).post(reverse("dry_run"), form_data)
    assert "1 of 1 would be placed , instead of 0." in page_text(page)
    assert page.context["form"]["session"].value() == session.short_id


def test_a_dry_run_with_an_ambiguous_session_id_requires_more_characters(
    fleet, new_session, login_as, operator, page_text, monkeypatch
):
    monkeypatch.setattr("scheduling.pages.dry_run.by_id", lambda *_: Q())
    new_session(), new_session()
    page = login_as(operator).post(
        reverse("dry_run"), {"pool": "cml-eu", "session": "aaaa", "cpu_cores": "2"}
    )
    assert "More than one ID begins with “aaaa”: enter more characters." in page_text(page)


def test_the_dry_run_form_starts_with_the_pool_and_session_of_the_link(
    fleet, new_session, login_as, operator
):
    session = new_session()
    page = login_as(operator).get(f"{reverse('dry_run')}?pool=cml-eu&session={session.pk}")
    assert page.context["form"]["session"].value() == str(session.pk)
    # Without amounts the requirement does not change.
    result_page = login_as(operator).post(
        reverse("dry_run"), {"pool": "cml-eu", "session": str(session.pk), "add_slots": 1}
    )
    assert result_page.context["found"].placed_after == 1
    assert active_reservation(session).phase == "PENDING"


def test_the_dry_run_without_pools_has_an_empty_state(db, login_as, operator, page_text):
    assert "No pools yet." in page_text(login_as(operator).get(reverse("dry_run")))
