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
def address(pool):
    return reverse("pool_scheduler", args=[pool.pk])


def test_the_form_shows_the_usual_one_when_there_is_none(by, admin, address):
    page = by(admin).get(address)
    assert page.context["form"]["scheduler"].value() == DEFAULT_CONFIGURATION


def test_the_form_lists_the_plugins_and_their_arguments(by, admin, address, words):
    said = words(by(admin).get(address))
    assert "cml-eu uses the default scheduler." in said
    assert "timeslot Place jobs from their lead time until their end" in said
    assert "lead_minutes: 15 " in said
    assert "spread Prefer the slot that is emptiest with the task on it. weight: 1 , cpu_cores: 1" in said
    assert (
        "quota Keep a job waiting that would exceed the limit of its queue or of a parent queue. limits: none"
        in said
    )
    assert "submit_order Place the oldest job first. none" in said


def test_the_form_shows_whether_the_pool_has_its_own_scheduler(by, admin, address, words):
    client = by(admin)
    client.post(address, {"scheduler": TEXT, "reason": "exams"})
    assert "cml-eu has its own scheduler." in words(client.get(address))


def test_a_line_of_the_usual_one_fits_its_box():
    assert max(len(line) for line in DEFAULT_CONFIGURATION.splitlines()) <= 90


def test_plugins_are_collapsed_unless_customized_or_failed(by, viewer, pool, words):
    client, home = by(viewer), reverse("pool_detail", args=[pool.pk])
    page = client.get(home)
    assert "Default scheduler" in words(page)
    assert '<details class="more"><summary>' in page.content.decode()
    Pool.objects.filter(pk=pool.pk).update(scheduler=TEXT)
    page = client.get(home)
    assert "Custom scheduler" in words(page)
    assert '<details class="more" open><summary>' in page.content.decode()


def test_a_scheduler_is_saved_as_browsers_send_it(by, admin, address, pool):
    answer = by(admin).post(address, {"scheduler": TEXT.replace("\n", "\r\n"), "reason": "exams"})
    assert answer.status_code == 302
    pool.refresh_from_db()
    assert pool.scheduler == TEXT


def test_the_usual_one_is_not_stored(by, admin, address, pool):
    by(admin).post(address, {"scheduler": TEXT, "reason": "exams"})
    by(admin).post(address, {"scheduler": DEFAULT_CONFIGURATION, "reason": "over"})
    pool.refresh_from_db()
    assert pool.scheduler == ""


def test_problems_are_reported_with_their_line(by, admin, address, pool, words):
    answer = by(admin).post(address, {"scheduler": TEXT.replace("name: spot", "name: spod"), "reason": "x"})
    line = TEXT.splitlines().index("  - name: spot") + 1
    assert answer.status_code == 422
    assert f"Line {line}: There is no plugin “spod”; did you mean “spot”?" in words(answer)
    pool.refresh_from_db()
    assert pool.scheduler == ""


def test_limits_of_unknown_queues_are_warned_of(by, admin, address, pool, words):
    limits = "  - name: quota\n    arguments: {limits: {nowhere: {sessions: 1}}}\n"
    text = DEFAULT_CONFIGURATION.replace("  - name: quota\n", limits)
    answer = by(admin).post(address, {"scheduler": text, "reason": "exams"})
    said = [str(message) for message in get_messages(answer.wsgi_request)]
    assert "There is no queue “nowhere”: its limit has no effect." in said
    assert "There is no queue “nowhere”" in words(by(admin).get(reverse("pool_detail", args=[pool.pk])))


def test_the_pool_shows_plugins_with_durations_and_failures(configure_pool, new_session, by, viewer, words):
    fleet = configure_pool(scheduler=FAILING)
    fleet.slot()
    new_session()
    fleet.tick_without_errors()
    page = by(viewer).get(reverse("pool_detail", args=[fleet.pool.pk]))
    shown = {plugin.name: plugin for plugin in page.context["scheduler"].plugins}
    assert shown["resources"].ms >= 0
    assert shown["failing_in_tests"].error == "RuntimeError: the licence server does not answer"
    assert "The plugin failing_in_tests failed." in words(page)
    assert "failing_in_tests Failed RuntimeError: the licence server does not answer" in words(page)
    assert "Edit scheduler" not in words(page)


def test_the_pool_page_reports_an_invalid_scheduler(configure_pool, by, viewer, words):
    fleet = configure_pool(scheduler="actions: [allocate]\nplugins: [gone]\n")
    said = words(by(viewer).get(reverse("pool_detail", args=[fleet.pool.pk])))
    assert (
        "The scheduler document is invalid, so nothing is placed. Line 2: There is no plugin “gone”" in said
    )


def test_django_admin_refuses_a_wrong_scheduler(by, admin, pool):
    admin.is_staff = admin.is_superuser = True
    admin.save()
    client = by(admin)
    address = reverse("admin:scheduling_pool_change", args=[pool.pk])
    form = client.get(address).context["adminform"].form
    data = {name: field for name, field in form.initial.items() if name in form.fields and field is not None}
    data |= {"scheduler": "plugins: []", "runtime_settings": "{}", "reason": "put right"}
    page = client.post(address, data)
    assert page.status_code == 200
    assert page.context["adminform"].form.errors["scheduler"] == ["Line 1: “actions” is missing."]
    assert Pool.objects.get(pk=pool.pk).scheduler == ""


def test_labels_of_a_slot(fleet, by, operator, words):
    slot = fleet.slot()
    client, address = by(operator), reverse("slot_labels", args=[slot.pk])
    assert client.post(address, {"labels": '{"rack": "b"}', "reason": "moved"}).status_code == 302
    assert "rack=b" in words(client.get(reverse("slot_detail", args=[slot.pk])))
    wrong = client.post(address, {"labels": '{"rack": 7}', "reason": "moved"})
    assert (wrong.status_code, "Labels must map names to texts" in words(wrong)) == (422, True)
    assert Slot.objects.get(pk=slot.pk).labels == {"rack": "b"}
    assert client.post(address, {"labels": "", "reason": "back"}).status_code == 302
    assert Slot.objects.get(pk=slot.pk).labels == {}


def test_a_dry_run_shows_the_placements(fleet, new_session, by, operator, words):
    session = new_session()
    page = by(operator).post(
        reverse("dry_run"), {"pool": "cml-eu", "add_slots": "1", "scheduler": DEFAULT_CONFIGURATION}
    )
    said = words(page)
    assert "1 of 1 would be placed , instead of 0." in said
    assert "Newly placed" in said
    assert "new slot 1" in said
    assert session.short_id in said
    assert Reservation.objects.get().slot is None


def test_a_dry_run_of_a_drained_slot_and_another_requirement(
    fleet, new_session, by, operator, words, active_definition
):
    slot = fleet.slot()
    fleet.slot(cpu_cores=2)
    new_session()
    client = by(operator)
    gone = client.post(reverse("dry_run"), {"pool": "cml-eu", "drain": [str(slot.pk)]})
    assert "No longer placed" in words(gone)
    smaller = {
        "pool": "cml-eu", "drain": [str(slot.pk)], "definition": str(active_definition.pk), "cpu_cores": "2",
    }  # fmt: skip
    assert "Placed elsewhere" in words(client.post(reverse("dry_run"), smaller))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"cpu_cores": "2"}, "Choose a definition or a session, and enter at least one amount."),
        ({"session": "00000000", "cpu_cores": "2"}, "No session “00000000” is waiting in cml-eu."),
        ({"session": "what?", "cpu_cores": "2"}, "No session “what?” is waiting in cml-eu."),
        ({"scheduler": "plugins: []"}, "Line 1: “actions” is missing."),
        ({"add_slots": "-1"}, "greater than or equal to 0"),
        ({"drain": ["nothing"]}, "nothing is not one of the available choices"),
    ],
)
def test_a_dry_run_reports_invalid_input(data, said, fleet, by, operator, words):
    page = by(operator).post(reverse("dry_run"), {"pool": "cml-eu", **data})
    assert page.status_code == 422
    assert said in words(page)


def test_a_dry_run_of_a_definition_requires_amounts(
    fleet, new_session, by, operator, active_definition, words
):
    new_session()
    page = by(operator).post(reverse("dry_run"), {"pool": "cml-eu", "definition": str(active_definition.pk)})
    assert page.status_code == 422
    assert page.context["form"].errors == {"definition": ["Enter at least one amount."]}


def test_a_dry_run_takes_the_short_id_of_a_session(fleet, new_session, by, operator, words):
    fleet.slot(cpu_cores=2)
    session = new_session()
    asked = {"pool": "cml-eu", "session": session.short_id, "cpu_cores": "2"}
    page = by(operator).post(reverse("dry_run"), asked)
    assert "1 of 1 would be placed , instead of 0." in words(page)
    assert page.context["form"]["session"].value() == session.short_id


def test_a_dry_run_with_an_ambiguous_session_id_requires_more_characters(
    fleet, new_session, by, operator, words, monkeypatch
):
    monkeypatch.setattr("scheduling.pages.dry_run.by_id", lambda *_: Q())
    new_session(), new_session()
    page = by(operator).post(reverse("dry_run"), {"pool": "cml-eu", "session": "aaaa", "cpu_cores": "2"})
    assert "More than one id begins with “aaaa”: enter more characters." in words(page)


def test_the_dry_run_begins_with_the_pool_and_session_of_the_link(fleet, new_session, by, operator):
    session = new_session()
    page = by(operator).get(f"{reverse('dry_run')}?pool=cml-eu&session={session.pk}")
    assert page.context["form"]["session"].value() == str(session.pk)
    # Without amounts it is unchanged.
    ran = by(operator).post(
        reverse("dry_run"), {"pool": "cml-eu", "session": str(session.pk), "add_slots": 1}
    )
    assert ran.context["found"].placed_after == 1
    assert active_reservation(session).phase == "PENDING"


def test_without_a_pool_there_is_nothing_to_rehearse(db, by, operator, words):
    assert "No pools yet." in words(by(operator).get(reverse("dry_run")))
