"""Creating and editing pools: invalid input is explained at its field and is not saved."""

import pytest
from django.urls import reverse

from lcm.models import ChangeLog
from scheduling.models import Pool
from scheduling.pages.pool_forms import NewPoolForm
from tests.support.capacity_setup import make_slot

VALID_FORM = {
    "name": "cml-new",
    "system": "cml",
    "runtime": "simulated",
    "description": "",
    "enabled": "on",
    "min_slots": "1",
    "warm_slots": "1",
    "max_slots": "5",
    "max_leases": "8",
    "idle_seconds": "600",
    "cpu_cores": "16",
    "memory_gb": "64",
    "storage_gb": "500",
    "gpu": "0",
    "first_port": "2000",
    "last_port": "2999",
    "spot_policy": "never",
    "runtime_settings": '{"boot_seconds": 20}',
    "launch_timeout": "300",
    "boot_timeout": "300",
    "binding_timeout": "180",
    "drain_timeout": "120",
    "terminate_timeout": "300",
    "target_wait_seconds": "900",
}
ALL = "__all__"
WRONG = [
    ({"name": "cml-eu"}, "name", "Pool with this Name already exists."),
    ({"name": "CML EU"}, "name", "letters"),
    ({"name": ""}, "name", "required"),
    ({"runtime": "docker"}, "runtime", "docker is not one of the available choices"),
    ({"min_slots": "6"}, ALL, "The minimum cannot exceed the maximum number of slots."),
    ({"warm_slots": "6"}, ALL, "Warm slots cannot exceed the maximum number of slots."),
    ({"max_slots": "0"}, "max_slots", "greater than or equal to 1"),
    ({"min_slots": "-1"}, "min_slots", "greater than or equal to 0"),
    ({"max_leases": "many"}, "max_leases", "whole number"),
    ({"cpu_cores": "0"}, ALL, "A slot needs CPU and memory."),
    ({"cpu_cores": "9999999"}, "cpu_cores", "digits"),
    ({"first_port": "3000"}, ALL, "Ports must be between 1024 and 65535, and the first below the last."),
    ({"last_port": "70000"}, ALL, "Ports must be between 1024 and 65535, and the first below the last."),
    ({"boot_timeout": "0"}, "boot_timeout", "greater than or equal to 1"),
    ({"spot_policy": "sometimes"}, "spot_policy", "not one of the available choices"),
    ({"runtime_settings": "{boot_seconds: 20}"}, "runtime_settings", "This is not valid JSON."),
    ({"runtime_settings": "[1]"}, "runtime_settings", "This is not valid JSON."),
    (
        {"runtime_settings": '{"boot_second": 20}'},
        "runtime_settings",
        "There is no setting “boot_second”; did you mean “boot_seconds”?",
    ),
    ({"runtime_settings": '{"boot_seconds": "long"}'}, "runtime_settings", "must be a number"),
]


@pytest.fixture
def edit_url(pool):
    return reverse("pool_edit", args=[pool.pk])


def test_a_pool_is_created(login_as, admin, db):
    page = login_as(admin).post("/pools/new", VALID_FORM)
    pool = Pool.objects.get(name="cml-new")
    assert page.status_code == 302
    assert page.headers["Location"] == reverse("pool_detail", args=[pool.pk])
    assert (pool.min_slots, pool.max_slots, pool.runtime_settings) == (1, 5, {"boot_seconds": 20})
    entry = ChangeLog.objects.get(event="pool.created")
    assert (entry.actor, entry.object_id) == ("ada", str(pool.pk))


def test_runtime_settings_may_be_empty(login_as, admin, db):
    login_as(admin).post("/pools/new", {**VALID_FORM, "runtime_settings": ""})
    assert Pool.objects.get(name="cml-new").runtime_settings == {}


@pytest.mark.parametrize(("change", "field", "message"), WRONG, ids=[str(row[0]) for row in WRONG])
def test_invalid_input_is_explained_at_its_field_and_nothing_is_stored(
    login_as, admin, pool, change, field, message
):
    page = login_as(admin).post("/pools/new", {**VALID_FORM, **change})
    assert page.status_code == 422
    errors = page.context["form"].errors[field]
    assert any(message in error for error in errors), errors
    assert list(Pool.objects.values_list("name", flat=True)) == ["cml-eu"]
    for value in change.values():
        assert page.context["form"].data["name"] == {**VALID_FORM, **change}["name"]
        assert value in page.context["form"].data.values()


def test_every_field_of_the_form_is_on_the_page(login_as, admin, db):
    body = login_as(admin).get("/pools/new").content.decode()
    assert all(f'name="{name}' in body for name in NewPoolForm().fields)
    assert "reason" not in NewPoolForm().fields


def test_empty_settings_are_shown_as_empty_fields(login_as, admin, pool, edit_url):
    for address in ("/pools/new", edit_url):
        body = login_as(admin).get(address).content.decode()
        assert 'name="runtime_settings-boot_seconds" value=""' in body


def test_the_reason_is_labelled_as_required_for_some_changes(login_as, admin, edit_url):
    form = login_as(admin).get(edit_url).context["form"]
    assert form["reason"].field.optional_word == "required for some changes"


def test_the_edit_form_explains_the_effect_of_saving(login_as, admin, edit_url, page_text):
    message = (
        "Saving clears a stop or back-off, so the pool can launch at once. Running slots keep their size."
    )
    assert message in page_text(login_as(admin).get(edit_url))


def test_a_pool_is_edited_with_a_reason(login_as, admin, pool, edit_url):
    Pool.objects.filter(pk=pool.pk).update(stopped_reason="no template", failures=3)
    page = login_as(admin).post(edit_url, {**VALID_FORM, "max_slots": "9", "reason": "More courses"})
    assert page.status_code == 302
    pool.refresh_from_db()
    assert (pool.name, pool.max_slots, pool.stopped_reason, pool.failures) == ("cml-eu", 9, "", 0)
    entry = ChangeLog.objects.get(event="pool.edited")
    assert (entry.reason, entry.before["max_slots"], entry.after["max_slots"]) == ("More courses", 6, 9)


def test_a_pool_is_disabled_with_a_reason(login_as, admin, pool, edit_url):
    client = login_as(admin)
    form = {**VALID_FORM, "max_slots": "6", "runtime_settings": ""}
    disabled_form = {name: value for name, value in form.items() if name != "enabled"}
    page = client.post(edit_url, disabled_form)
    assert page.status_code == 422
    assert page.context["form"].errors == {"reason": ["Enter a reason. It is recorded in the change log."]}
    pool.refresh_from_db()
    assert pool.enabled
    assert client.post(edit_url, {**form, "enabled": "on"}).status_code == 302
    assert client.post(edit_url, {**disabled_form, "reason": "Moved"}).status_code == 302
    pool.refresh_from_db()
    assert not pool.enabled


def test_an_invalid_edit_changes_nothing(login_as, admin, pool, edit_url, page_text):
    page = login_as(admin).post(edit_url, {**VALID_FORM, "min_slots": "99", "description": "Changed"})
    assert page.status_code == 422
    assert "The minimum cannot exceed the maximum number of slots." in page_text(page)
    pool.refresh_from_db()
    assert (pool.min_slots, pool.description) == (0, "Evening courses")
    assert not ChangeLog.objects.filter(event="pool.edited").exists()


def test_the_edit_form_shows_the_current_values(login_as, admin, pool, edit_url):
    form = login_as(admin).get(edit_url).context["form"]
    assert form["max_slots"].value() == 6
    assert form["description"].value() == "Evening courses"
    assert "runtime" not in form.fields


def test_an_empty_pool_is_deleted_with_a_reason(login_as, admin, pool, active_definition, page_text):
    address = reverse("pool_delete", args=[pool.pk])
    slot = make_slot(pool, 1)
    page = login_as(admin).get(address)
    assert "1 definition uses this pool and must be edited before the next session." in page_text(page)
    refused = login_as(admin).post(address, {"reason": "moved"})
    assert "The pool cml-eu is not empty: 1 slot in use." in page_text(refused)
    slot.delete()
    assert login_as(admin).post(address, {"reason": "moved"}).headers["Location"] == "/pools/"
    assert not Pool.objects.filter(pk=pool.pk).exists()
