"""Faults on request: what goes wrong, at which calls, and how often."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from lcm.cml.simulator.http_messages import Reply, Request
from lcm.cml.simulator.options import OptionError


class FaultKind(StrEnum):
    LATENCY = "latency"  # answers `seconds` later
    STATUS = "status"  # answers with `status` and `description`
    UNAUTHORIZED = "unauthorized"  # forgets the token and answers 401
    TRUNCATE = "truncate"  # sends half of the JSON as if it were the whole
    DROP = "drop"  # breaks the connection off in the middle of the answer
    MISSING_FIELDS = "missing_fields"  # leaves the keys `fields` out, wherever they are
    REPLACE = "replace"  # sends `body` in place of the answer


# These answer in place of the call; with `executed` the call is done first and its answer is lost (or late).
REPLACING_KINDS = frozenset({FaultKind.STATUS, FaultKind.DROP})


@dataclass
class Fault:
    """A fault at calls whose path matches the regex, after `skip` of them, `times` times (None: always)."""

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
        """A fault as the administration takes it."""
        try:
            fault = cls(**values)
            fault.kind = FaultKind(fault.kind)
            re.compile(fault.path)
        except (TypeError, ValueError, re.error) as error:
            raise OptionError(f"This is no fault: {error}") from None
        return fault

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def takes(self, request: Request) -> bool:
        """Whether this request is one to fail; counts it."""
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
    """A reply after the fault has been at it."""
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
