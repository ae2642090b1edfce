"""Liveness and readiness."""

from concurrent.futures import Future
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection

from lcm.services.maintenance import record_heartbeat
from lcm.web.server import health


@pytest.fixture(autouse=True)
def checks_in_this_thread(monkeypatch):
    """Let the checks see the data of the test's transaction."""

    def submit(work):
        future = Future()
        future.set_result(work())
        return future

    monkeypatch.setattr(health, "_threads", SimpleNamespace(submit=submit))
    monkeypatch.setattr(health, "close_old_connections", lambda: None)


@pytest.fixture
def broker_up(monkeypatch):
    monkeypatch.setitem(health.CHECKS, "broker", lambda: "")


@pytest.fixture
def beat_alive(db, now):
    record_heartbeat(name="beat", now=now)


@pytest.mark.parametrize("cookie", ["", "x" * 32])
def test_liveness_needs_no_database(client, settings, cookie):
    client.cookies[settings.SESSION_COOKIE_NAME] = cookie
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok")


def test_readiness_is_ok_when_all_dependencies_respond(client, broker_up, beat_alive):
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {"ready": True, "checks": {"database": "ok", "broker": "ok", "beat": "ok"}}


@pytest.mark.parametrize("address", ["unix:///nowhere/valkey.sock", "redis://127.0.0.1:1/0"])
def test_a_broker_that_is_down_is_named(address, client, beat_alive, settings):
    settings.REDIS_URL = address
    response = client.get("/readyz")
    assert (response.status_code, response.json()["ready"]) == (503, False)
    checks = response.json()["checks"]
    assert checks["broker"].startswith("the broker does not respond: ")
    assert (checks["database"], checks["beat"]) == ("ok", "ok")


def test_a_beat_that_never_ran_is_named(client, broker_up, db):
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["beat"] == "beat has not run a task yet"


@pytest.mark.parametrize(("age", "status"), [(0, 200), (25, 200), (35, 503), (3600, 503)])
def test_a_beat_that_stopped_is_named(age, status, client, broker_up, settings, db, now):
    settings.CONFIG["BEAT_HEARTBEAT_MAX_AGE"] = 30.0
    record_heartbeat(name="beat", now=now - timedelta(seconds=age))
    response = client.get("/readyz")
    assert response.status_code == status
    if status == 503:
        assert response.json()["checks"]["beat"].startswith("beat's last task ran ")


def test_a_database_that_is_down_is_named(client, broker_up, monkeypatch, beat_alive):
    def fail(*args, **kwargs):
        raise OperationalError("connection refused\nsecond line")

    with monkeypatch.context() as broken:
        broken.setattr(connection, "cursor", fail)
        response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"] == "the database does not respond: connection refused"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_need_no_login_and_are_read_only(path, client, broker_up, beat_alive):
    assert client.get(path).status_code == 200
    assert client.post(path).status_code == 405


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_are_not_redirected_to_https(path, client, broker_up, beat_alive, settings):
    settings.SECURE_SSL_REDIRECT = True
    assert client.get(path).status_code == 200
    assert client.get("/login").status_code == 301
