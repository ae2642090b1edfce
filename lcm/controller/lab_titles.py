"""The mark in a lab's title: which attempt of which session it is for. A restart finds the lab by it."""

from __future__ import annotations

import re
from typing import NamedTuple

# CML cuts titles here.
LONGEST_TITLE = 64
_MARK = re.compile(r"^lcm:([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}):(\d{1,4})(?:\s|$)")


class LabOwner(NamedTuple):
    session_id: str
    attempt: int


def format_title(session_id: str, attempt: int, name: str) -> str:
    """A title that carries the mark, with as much of the name as there is room for."""
    return f"lcm:{session_id}:{attempt} {name}"[:LONGEST_TITLE].rstrip()


def parse_title(title: str) -> LabOwner | None:
    """Whose lab it is; None when it is not one of ours."""
    found = _MARK.match(title)
    return LabOwner(found[1], int(found[2])) if found else None
