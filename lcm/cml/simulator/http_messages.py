"""Requests and replies of the simulated API, without a web framework."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Request:
    """A complete request. `path` starts after /api/v0."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() == "true"

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            raise ApiError(400, "Bad Request: The body is not valid JSON.") from None

    @property
    def bearer(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ").strip()


@dataclass(frozen=True)
class Reply:
    """A reply: JSON, or empty with status 204."""

    status: int
    body: bytes = b""
    content_type: str = "application/json"

    @classmethod
    def of(cls, value: object, status: int = 200) -> Reply:
        return cls(status, json.dumps(value).encode())

    @classmethod
    def empty(cls) -> Reply:
        return cls(204)

    @classmethod
    def error(cls, status: int, description: str) -> Reply:
        return cls.of({"description": description, "code": status}, status)


class ApiError(Exception):
    """A rejection by CML, sent as {code, description}."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(description)
        self.status = status
        self.description = description

    def reply(self) -> Reply:
        return Reply.error(self.status, self.description)
