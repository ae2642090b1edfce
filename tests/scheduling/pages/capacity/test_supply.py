"""A pool's supply: offerings in order, or listed workers."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.urls import reverse

from scheduling.models import Pool
from scheduling.pages.supply import settings_shown, supply_of, supply_text
from tests.scheduling.pages.capacity.test_pool_forms import VALID_FORM
from tests.support.capacity_setup import pool_named

EC2 = {
    "region": "eu-central-1",
    "launch_template": "lt-0a1b2c3d",
    "interruption_queue_url": "https://robot:hunter2@sqs.example.org/notices",
    "tags": {"team": "labs"},
    "offerings": [
        {"instance_type": "m6i.4xlarge", "zone": "eu-central-1a"},
        {"instance_type": "m5zn.metal", "zone": "eu-central-1b", "market": "spot"},
        {"instance_type": "m5.metal", "market": "spot"},
    ],
}
WORKERS = [
    {
        "name": "cml-1",
        "endpoint": "https://cml-1.example.org",
        "ca": "/etc/lcm/ca.pem",
        "labels": {"rack": "7"},
    },
    {"name": "cml-2", "endpoint": "https://cml-2.example.org"},
]


@pytest.fixture
def ec2_pool(db, settings):
    settings.CONFIG["PUBLIC_URL"] = "https://lcm.example.org"
    return pool_named("cml-ec2", runtime="ec2", runtime_settings=EC2, spot_policy="fallback", max_slots=4)


@pytest.fixture
def static_pool(db):
    return pool_named("cml-rack", runtime="static", runtime_settings={"workers": WORKERS}, max_slots=2)


@pytest.fixture
def pool_page_text(login_as, viewer, page_text):
    def page(pool):
        return page_text(login_as(viewer).get(reverse("pool_detail", args=[pool.pk])))

    return page


def record_refusals(pool, now, **minutes):
    until = {name: (now + timedelta(minutes=each)).isoformat() for name, each in minutes.items()}
    Pool.objects.filter(pk=pool.pk).update(refused_offerings=until)
    pool.refresh_from_db()


def test_offerings_are_in_request_order(ec2_pool, pool_page_text):
    assert (
        "Offerings in request order Type Zone Market State "
        "m5zn.metal eu-central-1b Spot Available "
        "m5.metal not set Spot Available "
        "m6i.4xlarge eu-central-1a On demand Available"
    ) in pool_page_text(ec2_pool)


def test_a_refused_offering_shows_when_it_is_requested_again(ec2_pool, now, pool_page_text):
    record_refusals(ec2_pool, now, **{"m5.metal/spot": 3, "m6i.4xlarge/eu-central-1a": -1})
    page = pool_page_text(ec2_pool)
    assert "m5.metal not set Spot Refused requested again in 2 min" in page
    assert "m6i.4xlarge eu-central-1a On demand Available" in page
    assert "m5.metal/spot was refused. The provider had no capacity. LCM tries again in 2 min" in page
    assert "Other offerings are tried meanwhile." in page


def test_several_refusals_share_one_notice(ec2_pool, now, pool_page_text):
    refused = {"m6i.4xlarge/eu-central-1a": 3, "m5zn.metal/eu-central-1b/spot": 2, "m5.metal/spot": 3}
    record_refusals(ec2_pool, now, **refused)
    page = pool_page_text(ec2_pool)
    assert "3 offerings were refused. The provider had no capacity. LCM tries again in 1 min" in page
    assert "Other offerings are tried meanwhile." not in page


@pytest.mark.parametrize("fields", [{"enabled": False}, {"stopped_reason": "no credentials"}])
def test_a_pool_that_launches_nothing_does_not_mention_other_offerings(ec2_pool, now, pool_page_text, fields):
    record_refusals(ec2_pool, now, **{"m5.metal/spot": 3})
    Pool.objects.filter(pk=ec2_pool.pk).update(**fields)
    page = pool_page_text(ec2_pool)
    assert "m5.metal not set Spot Refused" in page
    assert "was refused" not in page
    assert "Stopped by a configuration error. No credentials." in page or not fields.get("stopped_reason")


def test_offerings_excluded_by_the_spot_policy_come_last_and_are_not_used(ec2_pool, pool_page_text):
    Pool.objects.filter(pk=ec2_pool.pk).update(spot_policy="never")
    assert (
        "m6i.4xlarge eu-central-1a On demand Available "
        "m5zn.metal eu-central-1b Spot Not used on-demand only "
        "m5.metal not set Spot Not used on-demand only"
    ) in pool_page_text(ec2_pool)


def test_a_runtime_that_cannot_be_created_reports_the_reason(ec2_pool, pool_page_text):
    Pool.objects.filter(pk=ec2_pool.pk).update(runtime_settings={"region": "eu-central-1"})
    assert "No offering can be requested. “launch_template” is required." in pool_page_text(ec2_pool)


@pytest.mark.parametrize("interface", ["page", "api"])
def test_an_ec2_pool_is_rejected_while_public_url_is_a_loopback_address(
    login_as, api, admin, ec2_pool, settings, page_text, interface
):
    settings.CONFIG["PUBLIC_URL"] = "http://127.0.0.1:8000"
    if interface == "api":
        response = api(admin).patch(f"/api/pools/{ec2_pool.pk}/", {"warm_slots": 1})
        assert response.status_code == 400
        message = response.json()["details"]["runtime"][0]
    else:
        fields = {
            **VALID_FORM,
            "spot_policy": "fallback",
            "max_slots": 4,
            "runtime_settings": json.dumps(EC2),
        }
        page = login_as(admin).post(reverse("pool_edit", args=[ec2_pool.pk]), {**fields, "reason": "exams"})
        message = page_text(page)
    assert (
        "PUBLIC_URL is “http://127.0.0.1:8000”. Workers of the runtime ec2 cannot reach LCM there." in message
    )
    assert Pool.objects.get(pk=ec2_pool.pk).warm_slots == 0


def test_settings_are_readable_and_contain_no_password(ec2_pool, pool_page_text):
    page = pool_page_text(ec2_pool)
    assert "interruption_queue_url https://sqs.example.org/notices" in page
    assert "tags team=labs" in page
    for raw_text in ("hunter2", "{'", "[{"):
        assert raw_text not in page


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"boot_seconds": 15}, ("boot_seconds", "15 s")),
        ({"refuse_percent": 2.5}, ("refuse_percent", "2.5 %")),
        ({"spot": True}, ("spot", "yes")),
        ({"broken": False}, ("broken", "no")),
        ({"vanish_after_seconds": None}, ("vanish_after_seconds", "none")),
        ({"labels": {}}, ("labels", "none")),
        ({"refuse_offerings": ["a", "b"]}, ("refuse_offerings", "a, b")),
        ({"api_token": "f00"}, ("api_token", "set, not shown")),
    ],
)
def test_settings_are_formatted_by_their_type(values, message):
    assert list(settings_shown(values)) == [message]


def test_listed_workers_are_shown_as_a_table_without_offerings(static_pool, pool_page_text):
    page = pool_page_text(static_pool)
    assert (
        "Workers listed in the settings, one per slot Name Address Labels "
        "cml-1 https://cml-1.example.org rack=7 cml-2 https://cml-2.example.org none"
    ) in page
    assert "Offerings" not in page
    assert "ca.pem" not in page


def test_a_worker_that_did_not_respond_shows_the_time(static_pool, now, pool_page_text):
    failed = {"cml-1": (now - timedelta(hours=3)).isoformat()}
    Pool.objects.filter(pk=static_pool.pk).update(failed_workers=failed)
    page = pool_page_text(static_pool)
    assert "cml-1 tried last; no response 3 h ago https://cml-1.example.org" in page
    assert page.count("no response") == 1


def test_a_notice_shows_that_all_workers_are_in_use(static_pool, now, pool_page_text):
    record_refusals(static_pool, now, listed=3)
    assert "Every listed worker is in use. LCM tries again in 2 min" in pool_page_text(static_pool)


def test_a_long_list_of_workers_is_truncated(static_pool, now):
    supply = supply_of(static_pool, now=now, most=1)
    assert ([each.name for each in supply.workers], supply.hidden) == (["cml-1"], 1)
    assert supply_text(supply) == "2 workers listed"


def test_the_list_of_pools_shows_the_offerings_of_each(
    login_as, viewer, pool, ec2_pool, static_pool, now, page_text
):
    record_refusals(ec2_pool, now, **{"m5.metal/spot": 3})
    broken = pool_named("cml-broken")
    Pool.objects.filter(pk=broken.pk).update(runtime="gone")
    page = page_text(login_as(viewer).get("/pools/"))
    for message in (
        "Simulated 1 offering",
        "EC2 3 offerings, 1 refused",
        "Static 2 workers listed",
        "gone invalid settings",
    ):
        assert message in page


def test_the_reloaded_board_shows_the_offerings(login_as, viewer, ec2_pool, page_text):
    page = login_as(viewer).get(reverse("pool_board", args=[ec2_pool.pk]), headers={"HX-Request": "true"})
    assert "m5zn.metal eu-central-1b Spot Available" in page_text(page)
