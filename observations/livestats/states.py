"""How far the live statistics of a kernel can be trusted."""

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


# What is said of many, the first that is true of one of them.
WORST_FIRST = (
    LiveState.NOT_CONFIGURED,
    LiveState.FAILED,
    LiveState.PARTIAL,
    LiveState.STALE,
    LiveState.OK,
    LiveState.ABSENT,
)


def state_of(
    *, has_figures: bool, age: float | None, failed: int, asked: int, scrape_interval: float
) -> LiveState:
    """Of one kernel: `failed` of the `asked` queries brought nothing, `age` is that of its figures."""
    if failed >= asked:
        return LiveState.FAILED
    if failed:
        return LiveState.PARTIAL
    if not has_figures:
        return LiveState.ABSENT
    if age is None or age > STALE_SCRAPES * scrape_interval:
        return LiveState.STALE
    return LiveState.OK


def state_of_all(states: Iterable[LiveState]) -> LiveState:
    """Of many kernels: the worst of those that have figures; absent when none has."""
    found = set(states)
    return next((state for state in WORST_FIRST if state in found), LiveState.ABSENT)
