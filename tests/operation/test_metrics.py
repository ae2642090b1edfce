"""What Prometheus scrapes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import lcm
from lcm.actors import SYSTEM
from lcm.lifecycle import SessionStatus
from lcm.services.sessions import transition_session

ROOT = Path(lcm.__file__).parent.parent


def samples(text):
    """Values by name and labels."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(client):
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    return samples(answer.content.decode())


def test_requests_are_counted_by_view_method_and_status(client, db):
    key = ("lcm_http_requests_total", ("method", "GET"), ("status", "401"), ("view", "api:domain-list"))
    before = scraped(client).get(key, 0)
    client.get("/api/domains/")
    assert scraped(client)[key] == before + 1


def test_steps_of_sessions_are_counted_when_they_are_committed(
    client, session, now, django_capture_on_commit_callbacks
):
    steps = (("from_status", "PENDING"), ("to_status", "SCHEDULED"))
    key = ("lcm_session_transitions_total", *steps)
    before = scraped(client).get(key, 0)
    with django_capture_on_commit_callbacks(execute=True):
        transition_session(session=session, to=SessionStatus.SCHEDULED, actor=SYSTEM, now=now)
        assert scraped(client).get(key, 0) == before
    assert scraped(client)[key] == before + 1


def test_active_sessions_are_counted_by_status(client, session_in):
    for status in (SessionStatus.PENDING, SessionStatus.PENDING, SessionStatus.READY, SessionStatus.FAILED):
        session_in(status)
    found = scraped(client)
    assert found[("lcm_sessions_active", ("status", "PENDING"))] == 2
    assert found[("lcm_sessions_active", ("status", "READY"))] == 1
    assert found[("lcm_sessions_active", ("status", "RUNNING"))] == 0
    assert ("lcm_sessions_active", ("status", "FAILED")) not in found


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "secret", "Basic secret", "Bearer ä"])
def test_with_a_token_set_others_are_refused(header, client, settings):
    settings.METRICS_TOKEN = "secret"
    client.raise_request_exception = False
    answer = client.get("/metrics", HTTP_AUTHORIZATION=header)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"lcm_" not in answer.content


def test_with_a_token_set_who_knows_it_is_let_in(client, settings, db):
    settings.METRICS_TOKEN = "secret"
    assert client.get("/metrics", HTTP_AUTHORIZATION="Bearer secret").status_code == 200


COUNT = "from lcm import metrics; metrics.TASKS.labels(task='{task}', result='success').inc({times})"
SHOW = """
from lcm import metrics
metrics.FleetCollector.collect = lambda self: iter(())
print(metrics.exposition().decode())
"""


def run(code, folder):
    env = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_counts_of_several_processes_are_summed(tmp_path):
    for times in (2, 3):
        run(COUNT.format(task="tick", times=times), tmp_path)
    found = samples(run(SHOW, tmp_path))
    assert found[("lcm_tasks_total", ("result", "success"), ("task", "tick"))] == 5
