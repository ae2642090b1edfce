"""A fake CML worker with scripted responses."""

from __future__ import annotations

import json
from typing import Any

import httpx

from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from tests.support.cml_environment import QUICK_RETRIES

ScriptedResponse = httpx.Response | Exception


class ScriptedWorker:
    """Returns the responses of a path in order and repeats the last one; accepts every sign-in."""

    def __init__(self, **responses: list[ScriptedResponse]) -> None:
        self.responses = responses
        self.requests: list[tuple[str, str]] = []
        self.tokens: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        self.requests.append((request.method, name))
        self.tokens.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        remaining = self.responses.get(name)
        if remaining is None:
            return (
                ok(f"token-{len(self.requests)}")
                if name == "authenticate"
                else ok({"version": "2.10.0", "ready": True})
            )
        response = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        if isinstance(response, Exception):
            raise response
        return httpx.Response(response.status_code, headers=response.headers, content=response.content)

    def count(self, name: str) -> int:
        return sum(call == name for _, call in self.requests)

    def client(self, **options: Any) -> CmlClient:
        worker = CmlEndpoint("w1", "https://cml.test", "admin", "secret")
        return CmlClient(
            worker, transport=httpx.MockTransport(self), **{"retry_policy": QUICK_RETRIES, **options}
        )


def ok(value: Any) -> httpx.Response:
    return httpx.Response(200, content=json.dumps(value).encode())


def status(code: int, description: str = "because", **headers: str) -> httpx.Response:
    body = json.dumps({"code": code, "description": description}).encode()
    return httpx.Response(
        code, content=body, headers={key.replace("_", "-"): value for key, value in headers.items()}
    )
