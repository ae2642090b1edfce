"""Comparison of allocated and observed ports by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MISSING, EXTRA, CHANGED, CONFLICT = "missing", "extra", "changed", "conflict"
KINDS = (CONFLICT, EXTRA, CHANGED, MISSING)

Ports = Mapping[str, int]


@dataclass(frozen=True)
class DriftItem:
    """A port that differs; `other` is the session that uses the observed port as well."""

    kind: str
    name: str
    allocated: int | None = None
    observed: int | None = None
    other: str = ""

    @property
    def fingerprint(self) -> str:
        """Identify a deviation by name and kind, so that it is the same in every session."""
        return hashlib.sha256(f"{self.kind} {self.name}".encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DriftItem:
        return cls(**stored)


def compare_ports(
    allocated: Ports, observed: Ports, held_by_others: Mapping[int, str] | None = None
) -> list[DriftItem]:
    """Return the differences, worst first. A port that another session uses is always a conflict."""
    sessions = held_by_others or {}
    items = []
    for name in {*allocated, *observed}:
        plan, actual = allocated.get(name), observed.get(name)
        session = sessions.get(actual, "") if actual is not None else ""
        if session:
            items.append(DriftItem(CONFLICT, name, plan, actual, session))
        elif plan != actual:
            items.append(DriftItem(_kind(plan, actual), name, plan, actual))
    return sorted(items, key=worst_first)


def worst_first(item: DriftItem) -> tuple[int, str]:
    return KINDS.index(item.kind), item.name


def _kind(plan: int | None, actual: int | None) -> str:
    if actual is None:
        return MISSING
    return EXTRA if plan is None else CHANGED


def merge_partial(
    items: Sequence[DriftItem], before: Sequence[DriftItem], observed: Ports
) -> tuple[list[DriftItem], list[DriftItem]]:
    """Return the drift of a partial reading, alone and merged with the earlier drift of unread ports."""
    present = [item for item in items if item.kind != MISSING]
    kept = [item for item in before if item.name not in observed]
    return present, sorted([*present, *kept], key=worst_first)


def leaked_ports(items: Sequence[DriftItem]) -> dict[int, str]:
    """Return ports in use that were not planned, with their names."""
    return {item.observed: item.name for item in items if item.observed is not None}


def kinds_text(items: Sequence[DriftItem]) -> str:
    """Return counts by kind, such as `1 conflict, 2 missing`."""
    counts = [(kind, sum(item.kind == kind for item in items)) for kind in KINDS]
    return ", ".join(f"{count} {kind}" for kind, count in counts if count)
