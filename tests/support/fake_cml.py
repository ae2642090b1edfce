"""A fake CML worker with scripted responses."""

from __future__ import annotations

import json
from typing import Any

import httpx

from lcm.cml.client.client import CmlClient
from lcm.cml.client.endpoint import CmlEndpoint
from tests.support.cml_environment import HASTY

Answer = httpx.Response | Exception


class Scripted:
    """Returns the responses of a path in order and repeats the last one; accepts every sign-in."""

    def __init__(self, **answers: list[Answer]) -> None:
        self.answers = answers
        self.seen: list[tuple[str, str]] = []
        self.tokens: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        name = request.url.path.rpartition("/")[2]
        self.seen.append((request.method, name))
        self.tokens.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        waiting = self.answers.get(name)
        if waiting is None:
            return (
                ok(f"token-{len(self.seen)}")
                if name == "authenticate"
                else ok({"version": "2.10.0", "ready": True})
            )
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def count(self, name: str) -> int:
        return sum(call == name for _, call in self.seen)

    def client(self, **more: Any) -> CmlClient:
        worker = CmlEndpoint("w1", "https://cml.test", "admin", "secret")
        return CmlClient(worker, transport=httpx.MockTransport(self), **{"patience": HASTY, **more})


def ok(value: Any) -> httpx.Response:
    return httpx.Response(200, content=json.dumps(value).encode())


def status(code: int, description: str = "because", **headers: str) -> httpx.Response:
    body = json.dumps({"code": code, "description": description}).encode()
    return httpx.Response(
        code, content=body, headers={key.replace("_", "-"): value for key, value in headers.items()}
    )
