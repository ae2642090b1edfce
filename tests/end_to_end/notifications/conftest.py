"""LCM with its own PostgreSQL and Valkey, which the tests stop and restart."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from lcm.services.mail_run import HEARTBEAT as MAIL_RUN
from tests.end_to_end.faults.bootstrap import bootstrap
from tests.end_to_end.faults.servers import Broker, Database
from tests.support.control_plane import ControlPlane, control_plane, free_address, wait_until
from tests.support.environment import clean_environment
from tests.support.mail_server import MailServer, smtp_server
from tests.support.postgres import NOT_DURABLE, SETTINGS
from tests.support.webhook_receiver import Received, Receiver

NUMBERS = count(1)


@dataclass
class Stage:
    """A running LCM, and its API as an Admin."""

    plane: ControlPlane
    database: Database
    broker: Broker
    mail: MailServer
    key: str
    # Ids of the tokens whose creation LCM confirmed.
    confirmed: set[str] = field(default_factory=set)

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"http://{self.plane.address}/api/{path}"
        return httpx.request(method, url, json=body, headers=headers, timeout=30)

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = self.call("POST", path, body)
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created

    def subscribe(self, receiver: Receiver, event_type: str = "token.created") -> str:
        """Create a webhook with a rule; return the id of the webhook."""
        name = f"hook-{next(NUMBERS)}"
        webhook: str = self.create("webhooks/", {"name": name, "url": receiver.url})["id"]
        self.create("event-rules/", {"name": name, "event_types": [event_type], "webhook": webhook})
        return webhook

    def cause_events(self, number: int) -> None:
        """Create tokens; each creation is an event. A refused or lost request is not repeated."""
        for _ in range(number):
            body = {"name": f"token-{next(NUMBERS)}", "kind": "controller", "scopes": ["pool:faults"]}
            try:
                response = self.call("POST", "tokens/", body)
            except httpx.HTTPError:
                continue
            if response.status_code == 201:
                self.confirmed.add(response.json()["id"])

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.database.connect() as connection:
            return connection.execute(query, values).fetchall()  # type: ignore[arg-type]

    def change(self, query: str) -> None:
        with self.database.connect() as connection:
            connection.execute(query)  # type: ignore[arg-type]

    def last_event(self) -> int:
        found: int = self.rows("SELECT coalesce(max(id), 0) FROM lcm_changelog")[0][0]
        return found

    def missing(self, requests: list[Received], *, after: int) -> set[int]:
        """Return the token events in the change log after this one that the receiver does not have."""
        query = "SELECT id FROM lcm_changelog WHERE event = 'token.created' AND id > %s"
        logged = {key for (key,) in self.rows(query, after)}
        return logged - {event_id(each) for each in requests}

    def kill_worker(self) -> None:
        """Kill the worker and its child processes; the supervisor starts a new one."""
        for pid in self.plane.processes("lcm.celery worker"):
            os.kill(pid, signal.SIGKILL)

    def end_leases(self) -> None:
        """Let a minute pass for the leases of a worker that is gone, and all pauses."""
        with self.database.connect() as connection, connection.transaction():
            connection.execute("UPDATE lcm_webhook SET leased_until = NULL")
            connection.execute("DELETE FROM lcm_heartbeat WHERE name = %s", [MAIL_RUN])
            connection.execute("UPDATE lcm_delivery SET next_attempt_at = now() WHERE state = 'pending'")

    def wait_for(self, condition: Any, what: str) -> None:
        wait_until(condition, what, details=lambda: self.plane.output[-3000:])


def event_id(request: Received) -> int:
    return int(json.loads(request.body)["id"])


@pytest.fixture(scope="package")
def folder() -> Iterator[Path]:
    """A folder that the user of PostgreSQL can enter; pytest denies access to its own."""
    with tempfile.TemporaryDirectory(prefix="lcm-notifications-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(scope="package")
def mail() -> Iterator[MailServer]:
    with smtp_server() as server:
        yield server


@pytest.fixture(scope="package")
def shared_stage(folder: Path, mail: MailServer) -> Iterator[Stage]:
    database, broker = Database(folder / "postgres"), Broker(folder / "valkey")
    database.folder.mkdir()
    database.url = database.start(SETTINGS | NOT_DURABLE)
    broker.begin()
    settings = {
        "DATABASE_URL": database.url,
        "REDIS_URL": broker.url,
        "EMAIL_URL": mail.url,
        "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "EVENT_INTERVAL": "0.2",
        "TICK_INTERVAL": "3600",
        "WEB_WORKERS": "1",
        "API_RATE": "100000/min",
        "LOG_LEVEL": "WARNING",
    }
    try:
        with control_plane(folder / "data", free_address(), **settings) as plane:
            plane.start_and_wait()
            known = bootstrap(clean_environment(**settings, DATA_DIR=str(plane.data_dir)))
            yield Stage(plane, database, broker, mail, known.person)
    finally:
        broker.stop()
        database.stop()


@pytest.fixture
def stage(shared_stage: Stage) -> Iterator[Stage]:
    """The running LCM; the rules of the test are disabled at its end."""
    shared_stage.confirmed.clear()
    yield shared_stage
    shared_stage.change("UPDATE lcm_eventrule SET enabled = false")
    shared_stage.change("UPDATE lcm_webhook SET enabled = false")
    shared_stage.change(
        "UPDATE lcm_delivery SET state = 'dropped', next_attempt_at = NULL WHERE state = 'pending'"
    )
