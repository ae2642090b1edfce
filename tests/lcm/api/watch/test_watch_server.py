"""The watch process: access and headers of its responses, probes, metrics, and clients that disconnect."""

import asyncio

import pytest
from django.db import OperationalError

from lcm.api.watch import long_poll_view, view
from lcm.api.watch.hub import hub
from lcm.api.watch.server import WatchServer
from lcm.web.server import health
from tests.support.watch_server import WATCH, request_watch

# Transaction tests: the watch process reads the database in other threads.
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("path", [WATCH, f"{WATCH}/"])
def test_a_watch_without_since_returns_the_current_revision(controller, path):
    response = request_watch(path, key=controller.key)
    assert (response.status_code, response.json()) == (200, {"revision": 0, "changes": []})


def test_a_response_has_the_headers_of_the_api(controller):
    response = request_watch(key=controller.key, headers={"X-Request-ID": "my-request"})
    assert response.headers["X-Request-ID"] == "my-request"
    assert response.headers["X-LCM-Time"]
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Content-Length"] == str(len(response.content))
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_a_request_is_logged_with_its_id_and_counted(controller, caplog):
    with caplog.at_level("INFO", logger="lcm.requests"):
        request_watch(key=controller.key, headers={"X-Request-ID": "my-request"})
    (record,) = [record for record in caplog.records if record.getMessage() == "request"]
    assert (record.path, record.status, record.client) == (WATCH, 200, "127.0.0.1")
    assert (
        'lcm_http_requests_total{method="GET",status="200",view="api:internal-watch"}'
        in request_watch("/metrics", base="http://localhost").text
    )


@pytest.mark.parametrize("path", ["/", "/api/internal/watches", "/api/internal/slots", "/login"])
def test_the_watch_process_serves_no_other_path(path):
    response = request_watch(path)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_other_protocols_are_rejected():
    with pytest.raises(ValueError, match="does not support websocket"):
        asyncio.run(WatchServer()({"type": "websocket", "path": WATCH}, None, None))


@pytest.mark.parametrize(
    ("base", "headers", "status"),
    [
        ("http://testserver", {}, 301),
        ("https://testserver", {}, 401),
        ("http://testserver", {"X-Forwarded-Proto": "https"}, 401),
        ("http://testserver", {"X-Forwarded-Proto": "http"}, 301),
        ("http://unknown.example.org", {}, 400),
    ],
)
def test_plain_http_is_redirected_if_https_is_required(settings, base, headers, status):
    settings.SECURE_SSL_REDIRECT = True
    if base.startswith("http:"):
        settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    response = request_watch(base=base, headers=headers)
    assert response.status_code == status
    if status == 301:
        assert response.headers["Location"] == f"https://testserver{WATCH}"


def test_probes_are_not_redirected(settings, monkeypatch):
    settings.SECURE_SSL_REDIRECT = True
    monkeypatch.setattr(health, "CHECKS", {"database": lambda: ""})
    monkeypatch.setattr(health, "beat_problem", lambda: "")
    assert (request_watch("/healthz").status_code, request_watch("/healthz").text) == (200, "ok")
    assert request_watch("/readyz").json() == {"ready": True, "checks": {"database": "ok", "beat": "ok"}}


@pytest.mark.parametrize(
    ("token", "sent", "base", "status"),
    [
        ("", "", "http://localhost", 200),
        ("", "", "http://lcm.example.org", 403),
        ("secret", "Bearer secret", "http://lcm.example.org", 200),
        ("secret", "Bearer other", "http://localhost", 401),
    ],
)
def test_metrics_have_the_access_rule_of_the_web_process(settings, token, sent, base, status):
    settings.METRICS_TOKEN = token
    assert request_watch("/metrics", base=base, headers={"Authorization": sent}).status_code == status


def test_metrics_contain_only_metrics_of_the_process():
    text = request_watch("/metrics", base="http://localhost").text
    assert "lcm_http_requests_total" in text
    assert "lcm_sessions_active" not in text


def test_an_unexpected_error_is_a_response_and_is_logged(controller, monkeypatch, caplog):
    def fail(*args):
        raise RuntimeError("oh")

    monkeypatch.setattr(long_poll_view, "watch", fail)
    response = request_watch(key=controller.key)
    assert (response.status_code, response.json()["code"]) == (500, "server_error")
    assert response.json()["details"]["id"] == response.headers["X-Request-ID"]
    assert "server_error" in caplog.messages


def test_a_database_error_is_503(controller, monkeypatch):
    def fail(*args):
        raise OperationalError("connection refused")

    monkeypatch.setattr(view.WatchView, "initial", fail)
    response = request_watch(key=controller.key)
    assert (response.status_code, response.json()["code"]) == (503, "unavailable")
    assert response.headers["Retry-After"] == "5"


def test_a_disconnected_client_leaves_no_waiter(controller, caplog):
    """The server cancels a request whose client has disconnected."""

    async def scenario():
        async def receive():
            await asyncio.sleep(60)

        headers = [(b"authorization", f"Bearer {controller.key}".encode())]
        scope = {"type": "http", "method": "GET", "path": WATCH, "query_string": b"since=0&wait=20"}
        poll = asyncio.create_task(WatchServer()({**scope, "headers": headers}, receive, None))
        while not hub().waiting:
            await asyncio.sleep(0.01)
        poll.cancel()
        await asyncio.wait([poll])
        return hub().waiting

    assert asyncio.run(scenario()) == {}
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
