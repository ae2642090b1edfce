"""Direct requests to an in-process simulator, without the CML client."""

from __future__ import annotations

import json
from typing import Any

from lcm.cml.simulator.calls import respond
from lcm.cml.simulator.http_messages import Reply, Request


class SimulatorClient:
    """A signed-in user of a simulator."""

    def __init__(self, controller, username="admin", password="simulated"):
        self.controller = controller
        self.token = controller.users.log_in({"username": username, "password": password}, controller.now)

    def __call__(self, method: str, path: str, body: Any = b"", **query: str) -> Reply:
        content = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else _json(body)
        headers = {"authorization": f"Bearer {self.token}"}
        return respond(self.controller, Request(method, path, query, headers, content))

    def get(self, path: str, **query: str) -> Any:
        reply = self("GET", path, **query)
        assert reply.status == 200, reply
        return json.loads(reply.body)

    def import_lab(self, topology: str, title: str = "a lab") -> str:
        return json.loads(self("POST", "/import", topology, title=title).body)["id"]


def error(reply: Reply) -> tuple[int, str]:
    """Return status and description of an error response; the code in the body equals the status."""
    body = json.loads(reply.body)
    assert body["code"] == reply.status
    return reply.status, body["description"]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
