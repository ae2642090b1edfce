"""Metrics of web and worker processes, and access to them."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

import lcm
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.monitoring.worker_metrics import metrics_server
from lcm.services.session_transitions import transition_session
from lcm.supervisor.address import Address

ROOT = Path(lcm.__file__).parent.parent


def samples(text):
    """Return values by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(client):
    response = client.get("/metrics")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/plain")
    return samples(response.content.decode())


def test_requests_are_counted_by_view_method_and_status(client, db):
    key = ("lcm_http_requests_total", ("method", "GET"), ("status", "401"), ("view", "api:domain-list"))
    before = scrape(client).get(key, 0)
    client.get("/api/domains/")
    assert scrape(client)[key] == before + 1


def test_session_transitions_are_counted_on_commit(client, session, now, django_capture_on_commit_callbacks):
    steps = (("from_status", "PENDING"), ("to_status", "SCHEDULED"))
    key = ("lcm_session_transitions_total", *steps)
    before = scrape(client).get(key, 0)
    with django_capture_on_commit_callbacks(execute=True):
        transition_session(session=session, to=SessionStatus.SCHEDULED, actor=SYSTEM, now=now)
        assert scrape(client).get(key, 0) == before
    assert scrape(client)[key] == before + 1


def test_active_sessions_are_counted_by_status(client, session_in):
    for status in (SessionStatus.PENDING, SessionStatus.PENDING, SessionStatus.READY, SessionStatus.FAILED):
        session_in(status)
    found = scrape(client)
    assert found[("lcm_sessions_active", ("status", "PENDING"))] == 2
    assert found[("lcm_sessions_active", ("status", "READY"))] == 1
    assert found[("lcm_sessions_active", ("status", "RUNNING"))] == 0
    assert ("lcm_sessions_active", ("status", "FAILED")) not in found


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "secret", "Basic secret", "Bearer ä"])
def test_requests_without_the_token_are_rejected(header, client, settings):
    settings.METRICS_TOKEN = "secret"
    client.raise_request_exception = False
    response = client.get("/metrics", HTTP_AUTHORIZATION=header)
    assert (response.status_code, response["WWW-Authenticate"]) == (401, "Bearer")
    assert b"lcm_" not in response.content


def test_requests_with_the_token_are_accepted(client, settings, db):
    settings.METRICS_TOKEN = "secret"
    assert client.get("/metrics", HTTP_AUTHORIZATION="Bearer secret").status_code == 200


LOCAL = {"REMOTE_ADDR": "127.0.0.1"}
# Without METRICS_TOKEN: request environment and expected status.
CALLERS = [
    (LOCAL, 200),
    ({"REMOTE_ADDR": "127.0.1.1"}, 200),
    ({"REMOTE_ADDR": "::1"}, 200),
    ({"REMOTE_ADDR": "::ffff:127.0.0.1"}, 200),
    (LOCAL | {"HTTP_HOST": "127.0.0.1:8000"}, 200),
    (LOCAL | {"HTTP_HOST": "localhost"}, 200),
    (LOCAL | {"HTTP_HOST": "[::1]:8000"}, 200),
    ({"REMOTE_ADDR": "10.0.0.9"}, 403),
    ({"REMOTE_ADDR": "::ffff:10.0.0.9"}, 403),
    ({"REMOTE_ADDR": ""}, 403),
    ({"REMOTE_ADDR": "10.0.0.9", "HTTP_HOST": "localhost"}, 403),
    (LOCAL | {"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 403),
    (LOCAL | {"HTTP_X_FORWARDED_PROTO": "https"}, 403),
    (LOCAL | {"HTTP_FORWARDED": "for=127.0.0.1"}, 403),
    (LOCAL | {"HTTP_X_REAL_IP": "127.0.0.1"}, 403),
    (LOCAL | {"HTTP_VIA": "1.1 proxy"}, 403),
    (LOCAL | {"HTTP_HOST": "lcm.example.org"}, 403),
    ({"REMOTE_ADDR": "10.0.0.9", "HTTP_AUTHORIZATION": "Bearer "}, 403),
]


@pytest.mark.parametrize(("caller", "status"), CALLERS)
def test_without_a_token_only_direct_local_requests_are_accepted(caller, status, client, settings, db):
    settings.ALLOWED_HOSTS = ["*"]
    settings.METRICS_TOKEN = ""
    response = client.get("/metrics", **caller)
    assert response.status_code == status
    assert (b"METRICS_TOKEN" in response.content) == (status == 403)


@pytest.mark.parametrize(
    ("token", "headers", "status"),
    [
        ("", {}, 200),
        ("", {"X-Forwarded-For": "10.0.0.9"}, 403),
        ("secret", {}, 401),
        ("secret", {"Authorization": "Bearer secret", "Host": "worker:9109"}, 200),
    ],
)
def test_worker_metrics_have_the_same_access_rule(token, headers, status, settings):
    settings.METRICS_TOKEN = token
    server = metrics_server(Address("127.0.0.1", 0), CollectorRegistry())
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    try:
        assert (
            httpx.get(f"http://127.0.0.1:{server.server_port}/metrics", headers=headers).status_code == status
        )
    finally:
        thread.join()
        server.server_close()


COUNT = (
    "from lcm.monitoring import metrics; metrics.TASKS.labels(task='{task}', result='success').inc({times})"
)
SHOW = """
from lcm.monitoring import metrics
metrics.FleetCollector.collect = lambda self: iter(())
print(metrics.render_metrics().decode())
"""


def run(code, folder):
    env = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_counters_of_several_processes_are_summed(tmp_path):
    for times in (2, 3):
        run(COUNT.format(task="tick", times=times), tmp_path)
    found = samples(run(SHOW, tmp_path))
    assert found[("lcm_tasks_total", ("result", "success"), ("task", "tick"))] == 5
