"""Headers of every response: request id and content security policy."""

import pytest

from lcm.config.logs import request_id
from lcm.models import ChangeLog

# page redirect, API, API error, page not found, public responses, a method that is not allowed
REQUESTS = [
    ("get", "/sessions/", 302),
    ("get", "/api/lablet-sessions/", 401),
    ("get", "/api/nowhere", 404),
    ("get", "/nowhere", 404),
    ("get", "/healthz", 200),
    ("get", "/metrics", 200),
    ("post", "/healthz", 405),
]


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path", "status"), REQUESTS)
def test_every_response_has_the_content_policy(method, path, status, client):
    response = getattr(client, method)(path)
    assert response.status_code == status
    policy = response["Content-Security-Policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in response["Content-Security-Policy"]


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path", "status"), REQUESTS)
def test_every_response_has_its_own_request_id(method, path, status, client):
    first, second = (getattr(client, method)(path)["X-Request-ID"] for _ in range(2))
    assert len(first) == 32
    assert first != second


@pytest.mark.django_db
@pytest.mark.parametrize(("method", "path", "status"), REQUESTS)
def test_every_response_has_the_other_security_headers(method, path, status, client):
    response = getattr(client, method)(path)
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["X-Frame-Options"] == "DENY"
    assert response["Referrer-Policy"] == "same-origin"
    assert "camera=()" in response["Permissions-Policy"]


def test_an_internal_error_has_the_security_headers(client, monkeypatch):
    def fail():
        raise RuntimeError("oh")

    monkeypatch.setattr("lcm.monitoring.metrics.render_metrics", fail)
    client.raise_request_exception = False
    response = client.get("/metrics")
    assert response.status_code == 500
    assert "default-src 'none'" in response["Content-Security-Policy"]
    assert response["X-Request-ID"]


def test_only_the_api_documentation_may_use_inline_styles(api, viewer):
    policy = api(viewer).get("/api/docs")["Content-Security-Policy"]
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in api(viewer).get("/api/schema")["Content-Security-Policy"]


@pytest.mark.parametrize("given", ["abcd1234", "my-request.0001_A", "x" * 64, "12345678-1234-1234"])
def test_a_request_id_from_the_client_is_kept(given, client):
    assert client.get("/healthz", HTTP_X_REQUEST_ID=given)["X-Request-ID"] == given


@pytest.mark.parametrize(
    "given",
    ["", "short", "x" * 65, "with space inside", "new\nline-12345", "<script>alert</script>", "idähnlich"],
)
def test_a_malformed_request_id_is_replaced(given, client):
    request_id = client.get("/healthz", HTTP_X_REQUEST_ID=given)["X-Request-ID"]
    assert request_id != given
    assert len(request_id) == 32


def test_a_change_is_logged_with_the_request_id_of_the_response(api, admin):
    response = api(admin).post("/api/domains/", {"name": "academy"})
    assert ChangeLog.objects.get().request_id == response["X-Request-ID"]


def test_the_request_id_is_reset_after_the_request(client):
    client.get("/healthz", HTTP_X_REQUEST_ID="my-request-0001")
    assert request_id.get() == ""


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/lablet-sessions/", "/sessions/"])
def test_responses_stay_out_of_shared_caches(path, client):
    response = client.get(path)
    assert "private" in response["Cache-Control"] or "no-store" in response["Cache-Control"]
    assert "Cookie" in response["Vary"]
