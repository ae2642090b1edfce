"""Scrape targets for Prometheus."""

from datetime import timedelta

import pytest

from lcm.domain.lifecycle import SessionStatus
from lcm.models import ApiToken, Kernel
from lcm.monitoring.heartbeats import scrape_address, send_heartbeat
from observations.models import Presence, ScrapeTarget
from observations.observers import ServiceDiscoveryObserver
from scheduling.coordination.coordinator import process_observer
from scheduling.models import Slot, SlotState
from scheduling.services.controller_leases import acquire_leases, release_leases
from tests.support.factories import make_controller
from tests.support.observed_labs import on_slot

ADDRESS = "/api/internal/prometheus-targets"


@pytest.fixture
def prometheus_token(db):
    return make_controller("prometheus", "prometheus:targets")


@pytest.fixture
def ready(session_in, now):
    """A slot with a recent heartbeat and a session on it."""
    slot = on_slot(session_in(SessionStatus.RUNNING))
    Slot.objects.filter(pk=slot.pk).update(endpoint="https://worker-1.example.org", last_heartbeat=now)
    return slot


def observe(now):
    return process_observer("service-discovery", clock=lambda: now)


def listed(client):
    response = client.get(ADDRESS)
    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"
    return {group["labels"]["__meta_lcm_name"]: group for group in response.json()}


def test_service_discovery_is_listed_with_its_description(admin, api):
    found = {each["name"]: each for each in api(admin).get("/api/observers/").json()["results"]}
    assert found["service-discovery"]["kind"] == "observer"
    assert ServiceDiscoveryObserver.__doc__.startswith("Updates the scrape targets")


def test_slots_are_listed_with_pool_and_system(api, prometheus_token, ready, now):
    observe(now)
    assert listed(api(prometheus_token)) == {
        ready.name: {
            "targets": ["worker-1.example.org:443"],
            "labels": {
                "__meta_lcm_kind": "slot",
                "__meta_lcm_name": ready.name,
                "pool": "cml-eu",
                "system": "cml",
            },
        }
    }


def test_a_slot_is_listed_while_it_is_ready_and_alive(ready, now):
    later = now + timedelta(minutes=5)

    def is_listed(at):
        observe(at)
        return ScrapeTarget.objects.exists()

    assert is_listed(now)
    Kernel.objects.update(status="RUNNING")
    assert is_listed(later)
    Kernel.objects.update(status="TERMINATED")
    assert not is_listed(later)
    Slot.objects.update(last_heartbeat=later, state=SlotState.DRAINING)
    assert not is_listed(later)


def test_only_changes_of_the_target_list_are_counted(ready, now):
    assert [observe(now).success_count for _ in range(3)] == [1, 0, 0]
    Slot.objects.update(state=SlotState.DRAINING)
    assert [observe(now).success_count for _ in range(2)] == [1, 0]


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        ("http://10.0.0.5:8080/sim-1", "10.0.0.5:8080"),
        ("http://[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("https://host", "host:443"),
        ("host", None),
        ("http://host:nonsense", None),
    ],
)
def test_a_slot_has_the_address_of_its_worker(ready, now, endpoint, address):
    Slot.objects.update(endpoint=endpoint)
    observe(now)
    assert ScrapeTarget.objects.values_list("address", flat=True).first() == address


def test_a_controller_is_listed_from_its_first_lease_to_its_last(
    api, prometheus_token, controller, ready, now
):
    Slot.objects.update(endpoint="")
    acquire_leases(token=controller.token, holder="eu-1", metrics_address="10.0.0.9:9108", now=now)
    observe(now)
    found = listed(api(prometheus_token))["eu-1"]
    assert found["targets"] == ["10.0.0.9:9108"]
    assert found["labels"]["pool"] == "cml-eu"
    assert found["labels"]["system"] == "cml"
    release_leases(token=controller.token, holder="eu-1", now=now)
    observe(now)
    assert listed(api(prometheus_token)) == {}


@pytest.mark.parametrize("ended", ["revoked_at", "expires_at"])
def test_a_controller_is_not_scraped_when_its_token_has_ended(controller, ready, now, ended):
    acquire_leases(token=controller.token, holder="eu-1", metrics_address="10.0.0.9:9108", now=now)
    observe(now)
    assert ScrapeTarget.objects.filter(name="eu-1").exists()
    ApiToken.objects.update(**{ended: now})
    observe(now)
    assert not ScrapeTarget.objects.filter(name="eu-1").exists()


def test_a_silent_controller_is_removed(controller, ready, now):
    acquire_leases(token=controller.token, holder="eu-1", metrics_address="10.0.0.9:9108", now=now)
    acquire_leases(token=controller.token, holder="stand-by", metrics_address="10.0.0.8:9108", now=now)
    assert observe(now).success_count == 3
    acquire_leases(
        token=controller.token,
        holder="stand-by",
        metrics_address="10.0.0.8:9108",
        now=now + timedelta(minutes=2),
    )
    observe(now + timedelta(minutes=2))
    assert set(ScrapeTarget.objects.filter(kind="controller").values_list("name", flat=True)) == {"stand-by"}


def test_unchanged_targets_are_not_written(ready, now):
    observe(now)
    (before,) = ScrapeTarget.objects.all()
    observe(now + timedelta(seconds=30))
    (after,) = ScrapeTarget.objects.all()
    assert (after.pk, after.since) == (before.pk, before.since)
    Slot.objects.update(endpoint="https://elsewhere.example.org")
    observe(now + timedelta(seconds=60))
    (moved,) = ScrapeTarget.objects.all()
    assert (moved.pk, moved.address) == (before.pk, "elsewhere.example.org:443")


def test_a_kind_that_cannot_be_read_keeps_the_others(controller, ready, now, monkeypatch):
    acquire_leases(token=controller.token, holder="eu-1", metrics_address="10.0.0.9:9108", now=now)
    observe(now)

    def fail(now):
        raise ZeroDivisionError

    monkeypatch.setattr("observations.selectors.discovery._slots", fail)
    result = observe(now + timedelta(minutes=2))
    assert result.failure_count == 1
    assert list(ScrapeTarget.objects.values_list("kind", flat=True)) == ["slot"]


def test_service_discovery_changes_no_other_state(ready, session, now):
    before = list(Slot.objects.values())
    kernels = list(Kernel.objects.order_by("pk").values())
    observe(now)
    assert list(Slot.objects.values()) == before
    assert list(Kernel.objects.order_by("pk").values()) == kernels


def test_web_and_worker_processes_report_their_addresses(api, prometheus_token, db, now):
    send_heartbeat("web", "lcm-1:8000")
    send_heartbeat("worker", "lcm-2:9109")
    process_observer("service-discovery")
    found = listed(api(prometheus_token))
    assert {name: group["labels"]["__meta_lcm_kind"] for name, group in found.items()} == {
        "lcm-1:8000": "web",
        "lcm-2:9109": "worker",
    }
    assert Presence.objects.count() == 2


@pytest.mark.parametrize(
    ("bind", "host", "address"),
    [
        ("127.0.0.1:8000", "", "127.0.0.1:8000"),
        ("0.0.0.0:8000", "", "this-host:8000"),
        ("[::]:8000", "", "this-host:8000"),
        ("0.0.0.0:8000", "lcm-1.example.org", "lcm-1.example.org:8000"),
    ],
)
def test_a_process_is_reached_by_name(settings, monkeypatch, bind, host, address):
    monkeypatch.setattr("socket.gethostname", lambda: "this-host")
    settings.CONFIG["METRICS_HOST"] = host
    assert scrape_address(bind) == address


def test_the_prometheus_key_has_no_other_access(api, prometheus_token, controller, viewer, session):
    client = api(prometheus_token)
    for path in ("lablet-sessions/", "slots/", "internal/lablet-sessions", "internal/slots", "live-stats"):
        assert client.get(f"/api/{path}").status_code in (403, 405), path
    assert client.post("/api/internal/leases/hold", {"holder": "x"}).status_code == 403
    for other in (controller, viewer):
        assert api(other).get(ADDRESS).status_code == 403


def test_a_token_for_prometheus_is_made_on_its_page(client, admin, now):
    client.force_login(admin)
    form = {
        "name": "prometheus",
        "kind": "controller",
        "scopes": "prometheus:targets",
        "expires_at": f"{now + timedelta(days=30):%Y-%m-%dT%H:%M}",
    }
    response = client.post("/tokens/new", form)
    assert response.status_code == 200, response.content.decode()
    assert "lcm_" in response.content.decode()
