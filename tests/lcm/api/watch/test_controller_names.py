"""The name of a controller, its leases and its scrape address belong to the token it reports with."""

from datetime import timedelta

import pytest

from lcm.models import ApiToken
from observations.models import Presence
from scheduling.models import Pool, ProcessLease
from tests.support.factories import make_controller

HOLD, RELEASE = "/api/internal/leases/hold", "/api/internal/leases/release"
CURRENT, FORGED = "10.0.0.9:9108", "203.0.113.66:80"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def pools(active_definition):
    return {name: Pool.objects.get(name=name) for name in ("cml-eu", "cml-us")}


@pytest.fixture
def held(api, controller):
    """The controller of cml-eu serves its pool as `eu-1`."""
    response = api(controller).post(HOLD, {"holder": "eu-1", "metrics_address": CURRENT})
    assert response.json()[0]["held"]
    return controller


def addresses():
    return dict(Presence.objects.values_list("name", "address"))


def holders():
    return dict(ProcessLease.objects.values_list("name", "holder"))


@pytest.mark.parametrize("pool", ["pool:cml-us", "pool:cml-eu"])
@pytest.mark.parametrize(("path", "body"), [(HOLD, {"metrics_address": FORGED}), (HOLD, {}), (RELEASE, {})])
def test_a_name_held_by_another_token_is_rejected(api, held, pool, path, body):
    response = api(make_controller("rival", pool)).post(path, {"holder": "eu-1", **body})
    assert (response.status_code, response.json()["code"]) == (409, "state_conflict")
    assert "The name “eu-1” belongs to the token of another controller." in response.json()["message"]
    assert addresses() == {"eu-1": CURRENT}
    assert holders() == {"controller:cml-eu": "eu-1"}


def test_a_token_may_run_several_controllers(api, held):
    response = api(held).post(HOLD, {"holder": "eu-2", "metrics_address": "10.0.0.10:9108"})
    assert (response.json()[0]["held"], response.json()[0]["holder"]) == (False, "eu-1")
    assert addresses() == {"eu-1": CURRENT, "eu-2": "10.0.0.10:9108"}


# State of the former token, pool of the new token, whether the new token gets the name.
TAKEOVERS = [
    ("valid", "pool:cml-eu", False),
    ("revoked", "pool:cml-eu", True),
    ("revoked", "pool:cml-us", True),
    ("expired", "pool:cml-eu", True),
    ("silent", "pool:cml-eu", True),
    ("silent", "pool:cml-us", False),
    ("ended", "pool:cml-eu", True),
    ("ended", "pool:cml-us", False),
]


@pytest.mark.parametrize(("former", "pool", "granted"), TAKEOVERS)
def test_a_new_token_takes_over_the_name_of_an_inactive_token(api, held, now, former, pool, granted):
    changes = {"revoked": {"revoked_at": now}, "expired": {"expires_at": now - timedelta(seconds=1)}}
    ApiToken.objects.filter(pk=held.token.pk).update(**changes.get(former, {"last_used_at": now}))
    if former == "silent":
        Presence.objects.update(seen_at=now - timedelta(seconds=31))
    if former == "ended":
        assert api(held).post(RELEASE, {"holder": "eu-1"}).status_code == 204
    renewed = make_controller("renewed", pool)
    response = api(renewed).post(HOLD, {"holder": "eu-1", "metrics_address": "10.0.0.11:9108"})
    assert (response.status_code == 200, Presence.objects.get().token == renewed.token) == (
        granted,
        granted,
    )
    kept = "" if former == "ended" else CURRENT
    assert addresses() == {"eu-1": "10.0.0.11:9108" if granted else kept}


def test_a_token_whose_pools_do_not_exist_registers_nothing(api):
    response = api(make_controller("lost", "pool:nowhere")).post(
        HOLD, {"holder": "lost", "metrics_address": FORGED}
    )
    assert (response.status_code, response.json()) == (200, [])
    assert (addresses(), holders()) == ({}, {})


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("worker_1.example.org:9108", 200),
        ("[2001:db8::9]:65535", 200),
        ("user@10.0.0.9:9108", 400),
        ("10.0.0.9:0", 400),
        ("10.0.0.9:65536", 400),
        ("10.0.0.9:9108/metrics", 400),
        ("10.0.0.9?x=:9108", 400),
        ("http://10.0.0.9:9108", 400),
    ],
)
def test_a_metrics_address_is_a_host_and_a_port(api, controller, address, status):
    response = api(controller).post(HOLD, {"holder": "eu-1", "metrics_address": address})
    assert response.status_code == status


@pytest.mark.django_db(transaction=True)
def test_of_two_tokens_that_claim_a_name_concurrently_only_one_gets_it(api, at_once, held, now):
    Presence.objects.update(seen_at=now - timedelta(minutes=5))
    rivals = [make_controller(name, "pool:cml-eu") for name in ("left", "right")]
    statuses = at_once(
        *(lambda each=each: api(each).post(HOLD, {"holder": "eu-1"}).status_code for each in rivals)
    )
    assert sorted(statuses) == [200, 409]
