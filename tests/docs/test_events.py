"""docs/events.md: the catalogue of the code, and the receiver against real requests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.utils import timezone

from lcm.events.webhook_secrets import secret_of, signed_headers
from lcm.management.commands.event_catalogue import catalogue_table
from lcm.models import Webhook
from lcm.supervisor.child_process import die_with_parent
from tests.support.control_plane import ROOT, wait_until
from tests.support.webhook_receiver import send_request

EXAMPLE = ROOT / "docs" / "examples" / "webhook_receiver.py"
PAGE = ROOT / "docs" / "events.md"
BODY = '{"type":"org.lcm.session.ready","data":{"message":"started — ready"}}'
WEBHOOK = Webhook(name="docs")


def test_the_page_has_the_table_of_the_code_and_the_example():
    text = PAGE.read_text()
    assert text.endswith(catalogue_table()), "run manage.py event_catalogue"
    assert f"```python\n{EXAMPLE.read_text()}```" in text


def test_the_example_has_about_twenty_lines():
    assert len([line for line in EXAMPLE.read_text().splitlines() if line]) <= 22


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The URL of the example and its output."""
    port, output = free_port(), tmp_path / "output"
    env = {**os.environ, "LCM_SECRET": secret_of(WEBHOOK)}
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, EXAMPLE, str(port)], env=env, stdout=log, stderr=log, preexec_fn=die_with_parent
        )
    try:
        yield f"http://127.0.0.1:{port}/", output
    finally:
        process.kill()
        process.wait()


def send(url: str, body: str, **changed: str) -> int | None:
    headers = signed_headers(WEBHOOK, message_id="d-1", body=BODY, now=timezone.now()) | changed
    allowed = [ip_network("127.0.0.0/8")]
    return send_request(url, body=body.encode(), headers=headers, allowed=allowed).status


def test_the_example_accepts_signed_events_and_rejects_others(receiver):
    url, output = receiver
    wait_until(lambda: send(url, BODY) == 204, "the receiver accepts an event")
    assert "d-1 org.lcm.session.ready started — ready" in output.read_text()
    assert send(url, BODY.replace("ready", "failed")) == 401
    assert send(url, BODY, **{"webhook-timestamp": "1"}) == 401
