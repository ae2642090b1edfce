"""The controller of docs/examples, unchanged, against a real control plane."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from lcm.supervisor.child_process import die_with_parent
from tests.end_to_end.controller.test_lifecycle import ALL_STEPS
from tests.support.control_plane import ROOT, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("controller")]

EXAMPLE = ROOT / "docs" / "examples" / "controller.py"
POOL = "cml-us"


@pytest.fixture
def example(plane, tmp_path) -> Iterator[subprocess.Popen[bytes]]:
    plane.worker(POOL)
    env = {**os.environ, "LCM_URL": plane.url, "LCM_TOKEN": plane.known["controllers"][POOL]}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, EXAMPLE], env=env, stdout=log, stderr=log, preexec_fn=die_with_parent
        )
    try:
        yield process
        assert process.poll() is None, (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()


def test_the_example_has_at_most_sixty_lines():
    assert len([line for line in EXAMPLE.read_text().splitlines() if line]) <= 60


def test_a_session_completes_and_is_observed(plane, example):
    session = plane.run(seconds=6, pool=POOL)
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
    assert plane.steps(session) == ALL_STEPS
    assert plane.session(session)["observation_count"] == 1


def test_the_example_observes_on_request(plane, example):
    session = plane.request_session(pool=POOL)
    plane.until(session, "RUNNING")
    assert plane.call("POST", f"lablet-sessions/{session}/observe-resources").status_code == 202
    wait_until(lambda: plane.session(session)["observation_count"] == 1, "it was observed", 60)
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "test done"})
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
