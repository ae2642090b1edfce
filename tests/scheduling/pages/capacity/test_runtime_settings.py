"""Runtime settings as typed fields and rows, and the connection test of a worker."""

from __future__ import annotations

import time

import pytest
from django.urls import reverse

from scheduling.capacity.runtimes.base import Health
from scheduling.models import Pool
from scheduling.services import worker_check
from tests.scheduling.pages.capacity.test_pool_forms import VALID_FORM

FORM = {name: value for name, value in VALID_FORM.items() if name != "runtime_settings"}
WORKER = "runtime_settings-workers"
TWO_WORKERS = {
    **FORM,
    "runtime": "static",
    "max_slots": "2",
    f"{WORKER}-0-name": "cml-1",
    f"{WORKER}-0-endpoint": "https://cml-1.example.org",
    f"{WORKER}-0-ca": "/etc/lcm/workers-ca.pem",
    f"{WORKER}-0-labels-0-key": "site",
    f"{WORKER}-0-labels-0-value": "eu",
    f"{WORKER}-0-labels-1-key": "",
    f"{WORKER}-0-labels-1-value": "",
    f"{WORKER}-1-name": "",
    f"{WORKER}-1-endpoint": "",
    f"{WORKER}-2-name": "cml-2",
    f"{WORKER}-2-endpoint": "https://cml-2.example.org",
    "runtime_settings-labels-0-key": "tier",
    "runtime_settings-labels-0-value": "gold",
}
TWO_WORKERS_SAVED = {
    "workers": [
        {
            "name": "cml-1",
            "endpoint": "https://cml-1.example.org",
            "ca": "/etc/lcm/workers-ca.pem",
            "labels": {"site": "eu"},
        },
        {"name": "cml-2", "endpoint": "https://cml-2.example.org"},
    ],
    "labels": {"tier": "gold"},
}


@pytest.fixture
def post(login_as, admin, db):
    """`post(values)`: the response of the form for a new pool."""
    return lambda values, address="/pools/new": login_as(admin).post(address, values)


@pytest.mark.parametrize(
    ("values", "saved"),
    [
        ({"boot_seconds": "0"}, {"boot_seconds": 0}),
        ({"boot_seconds": "2.5", "spot": "on"}, {"boot_seconds": 2.5, "spot": True}),
        (
            {"offerings-0-name": "a", "offerings-0-market": "spot", "offerings-1-name": "b"},
            {"offerings": [{"name": "a", "market": "spot"}, {"name": "b"}]},
        ),
        (
            {"offerings-0-name": "a", "offerings-1-name": "b", "refuse_offerings": "a, b,"},
            {"offerings": [{"name": "a"}, {"name": "b"}], "refuse_offerings": ["a", "b"]},
        ),
        ({"labels-0-key": "site", "labels-0-value": "eu"}, {"labels": {"site": "eu"}}),
        ({"labels-0-key": "", "boot_seconds": "", "offerings-0-name": ""}, {}),
    ],
)
def test_fields_and_rows_are_saved_as_settings(values, saved, post):
    page = post({**FORM, **{f"runtime_settings-{name}": value for name, value in values.items()}})
    assert page.status_code == 302, page.context["form"].errors
    assert Pool.objects.get(name="cml-new").runtime_settings == saved


def test_listed_workers_are_rows_and_an_unchanged_form_changes_nothing(post, login_as, admin):
    assert post(TWO_WORKERS).status_code == 302
    pool = Pool.objects.get(name="cml-new")
    assert pool.runtime_settings == TWO_WORKERS_SAVED
    address = reverse("pool_edit", args=[pool.pk])
    body = login_as(admin).get(address).content.decode()
    assert f'name="{WORKER}-1-endpoint" value="https://cml-2.example.org"' in body
    assert f'name="{WORKER}-0-labels-0-value" value="eu"' in body
    assert post(TWO_WORKERS, address).status_code == 302, "no reason is needed"
    pool.refresh_from_db()
    assert pool.runtime_settings == TWO_WORKERS_SAVED


def test_stored_defaults_stay_when_the_form_does_not_change_them(post, pool):
    stored = {"spot": False, "boot_seconds": 4}
    Pool.objects.filter(pk=pool.pk).update(runtime_settings=stored)
    values = {**FORM, "max_slots": "6", "runtime_settings-boot_seconds": "4"}
    assert post(values, reverse("pool_edit", args=[pool.pk])).status_code == 302
    pool.refresh_from_db()
    assert pool.runtime_settings == stored


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({f"{WORKER}-0-endpoint": "cml-1"}, "an address like https://cml-1.example.org"),
        ({f"{WORKER}-0-name": "cml-2"}, "Two workers are named “cml-2”."),
        (
            {"runtime": "simulated", "runtime_settings-boot_seconds": "long"},
            "a number from 0 to 3600",
        ),
        (
            {"runtime": "simulated", "runtime_settings-boot_seconds": "9" * 5000},
            "a number from 0 to 3600",
        ),
    ],
)
def test_a_wrong_setting_is_explained_and_what_was_entered_stays(change, message, post):
    page = post({**TWO_WORKERS, **change})
    assert page.status_code == 422
    assert message in " ".join(page.context["form"].errors["runtime_settings"])
    body = page.content.decode()
    for name, value in change.items():
        assert f'value="{value}"' in body, name
    assert not Pool.objects.filter(name="cml-new").exists()


@pytest.mark.parametrize("text", ['{"boot_seconds": ' + "9" * 5000 + "}", "[" * 100_000])
def test_unreadable_json_is_rejected_at_its_field(text, post):
    page = post({**FORM, "runtime_settings": text})
    assert page.status_code == 422
    assert "not valid JSON" in page.context["form"].errors["runtime_settings"][0]


def test_a_row_is_added_without_javascript_and_nothing_is_saved(post):
    page = post({**TWO_WORKERS, "name": "", "add_row": "workers"})
    body = page.content.decode()
    assert page.status_code == 200
    assert f'name="{WORKER}-3-name" value=""' in body
    assert f'name="{WORKER}-0-endpoint" value="https://cml-1.example.org"' in body
    assert "field-error" not in body
    assert not Pool.objects.filter(name="cml-new").exists()


def test_the_settings_of_another_runtime_are_shown(post, login_as, admin):
    body = post({**FORM, "runtime": "ec2", "add_row": ""}).content.decode()
    assert 'name="runtime_settings-launch_template"' in body
    assert 'name="runtime_settings-offerings-0-instance_type"' in body
    body = login_as(admin).get("/pools/new?runtime=static").content.decode()
    assert f'name="{WORKER}-0-endpoint"' in body
    assert login_as(admin).get("/pools/new?runtime=docker").status_code == 200


@pytest.mark.parametrize(
    ("health", "text"),
    [
        (Health(True, version="2.9.1"), "Connected: CML 2.9.1 is ready."),
        (Health(False, "cml-1 cannot be probed: timed out"), "cml-1 cannot be probed: timed out"),
    ],
)
def test_the_connection_to_a_worker_is_tested(health, text, post, monkeypatch):
    called = []

    def probe(endpoint, ca, *, timeout):
        called.append((endpoint, ca, timeout))
        return health

    monkeypatch.setattr(worker_check, "probe_cml", probe)
    page = post({**TWO_WORKERS, "test_worker": "0"})
    assert text in page.content.decode()
    assert called == [("https://cml-1.example.org", "/etc/lcm/workers-ca.pem", worker_check.TIMEOUT)]
    assert not Pool.objects.filter(name="cml-new").exists()


@pytest.mark.parametrize(("row", "text"), [
    ("1", "“endpoint”"), ("9", None), ("-1", None), ("x", None), ("9" * 5000, None),
])  # fmt: skip
def test_a_row_without_an_address_is_not_requested(row, text, post, monkeypatch):
    monkeypatch.setattr(worker_check, "probe_cml", pytest.fail)
    body = post({**TWO_WORKERS, "test_worker": row}).content.decode()
    assert ('class="notice' in body) == bool(text)
    assert text is None or text in body


def test_the_test_of_an_unreachable_worker_ends_in_time(db):
    started = time.monotonic()
    health = worker_check.check_worker({"endpoint": "http://127.0.0.1:9"})
    assert not health.ready
    assert "127.0.0.1:9 cannot be probed" in health.reason
    assert time.monotonic() - started < worker_check.TIMEOUT + 1
