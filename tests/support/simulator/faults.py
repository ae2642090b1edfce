"""Fault injection: the kind of fault, the calls it applies to, and how often."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from lcm.cml.simulator.http_messages import Reply, Request
from lcm.cml.simulator.options import OptionError


class FaultKind(StrEnum):
    LATENCY = "latency"  # responds `seconds` later
    STATUS = "status"  # responds with `status` and `description`
    UNAUTHORIZED = "unauthorized"  # invalidates the token and responds 401
    TRUNCATE = "truncate"  # sends half of the JSON as if it were complete
    DROP = "drop"  # closes the connection in the middle of the response
    MISSING_FIELDS = "missing_fields"  # omits the keys `fields` at any depth
    REPLACE = "replace"  # sends `body` instead of the response


# These replace the response. With `executed`, the call is carried out first and its response is lost or late.
REPLACING_KINDS = frozenset({FaultKind.STATUS, FaultKind.DROP})


@dataclass
class Fault:
    """A fault for calls whose path matches the regex, after `skip` of them, `times` times (None: always)."""

    kind: FaultKind
    path: str = ""
    method: str = ""
    times: int | None = None
    skip: int = 0
    executed: bool = False
    status: int = 503
    description: str = "Service Unavailable"
    seconds: float = 1.0
    fields: list[str] = field(default_factory=list)
    body: str = ""

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Read a fault from the administration API's JSON."""
        try:
            fault = cls(**values)
            fault.kind = FaultKind(fault.kind)
            re.compile(fault.path)
        except (TypeError, ValueError, re.error) as error:
            raise OptionError(f"Invalid fault: {error}") from None
        return fault

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def matches(self, request: Request) -> bool:
        """Return whether the fault applies to this request, and count it."""
        if self.times == 0 or (self.method and self.method != request.method):
            return False
        if not re.search(self.path, request.path):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


def apply_fault(reply: Reply, fault: Fault) -> Reply:
    """Return the reply with the fault applied."""
    if fault.kind == FaultKind.REPLACE:
        return Reply(reply.status if reply.body else 200, fault.body.encode())
    if fault.kind == FaultKind.TRUNCATE:
        return Reply(reply.status, reply.body[: len(reply.body) // 2])
    if fault.kind == FaultKind.MISSING_FIELDS and reply.body:
        return Reply.of(_without(json.loads(reply.body), frozenset(fault.fields)), reply.status)
    return reply


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, names) for key, item in value.items() if key not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value
