"""The owner mark in a lab title: session id and attempt. A restarted controller finds its labs by it."""

from __future__ import annotations

import re
from typing import NamedTuple

# CML truncates longer titles.
LONGEST_TITLE = 64
_MARK = re.compile(r"^lcm:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):(\d{1,4})(?:\s|$)")


class LabOwner(NamedTuple):
    session_id: str
    attempt: int


def format_title(session_id: str, attempt: int, name: str) -> str:
    """Return a title with the owner mark and as much of the name as fits."""
    return f"lcm:{session_id}:{attempt} {name}"[:LONGEST_TITLE].rstrip()


def parse_title(title: str) -> LabOwner | None:
    """Return the session and attempt in a lab title, or None if LCM did not create the lab."""
    match = _MARK.match(title)
    return LabOwner(match[1], int(match[2])) if match else None
