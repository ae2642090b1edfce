"""States of live statistics."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

# Figures older than this many scrapes are stale.
STALE_SCRAPES = 2


class LiveState(StrEnum):
    OK = "ok"
    PARTIAL = "partial"
    STALE = "stale"
    ABSENT = "absent"
    FAILED = "failed"
    NOT_CONFIGURED = "not configured"


# The state of several kernels is the first of these that any of them has.
WORST_FIRST = (
    LiveState.NOT_CONFIGURED,
    LiveState.FAILED,
    LiveState.PARTIAL,
    LiveState.STALE,
    LiveState.OK,
    LiveState.ABSENT,
)


def state_of(
    *, has_figures: bool, age: float | None, failed: int, queries: int, scrape_interval: float
) -> LiveState:
    """Return the state of one kernel: `failed` of `queries` failed, `age` is the age of its figures."""
    if failed >= queries:
        return LiveState.FAILED
    if failed:
        return LiveState.PARTIAL
    if not has_figures:
        return LiveState.ABSENT
    if age is None or age > STALE_SCRAPES * scrape_interval:
        return LiveState.STALE
    return LiveState.OK


def state_of_all(states: Iterable[LiveState]) -> LiveState:
    """Return the state of several kernels: the worst of them; absent if there is none."""
    found = set(states)
    return next((state for state in WORST_FIRST if state in found), LiveState.ABSENT)
