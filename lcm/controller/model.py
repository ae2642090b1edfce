"""Sessions and slots as LCM's internal API returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasPath, Field, SkipValidation, TypeAdapter

SCHEDULED = "SCHEDULED"
INSTANTIATING = "INSTANTIATING"
READY = "READY"
RUNNING = "RUNNING"
COLLECTING = "COLLECTING"
STOPPING = "STOPPING"
TERMINATED = "TERMINATED"
CANCELLED = "CANCELLED"

ON_A_SLOT = frozenset({SCHEDULED, INSTANTIATING, READY, RUNNING, COLLECTING, STOPPING})
# Statuses in which the lab should exist and be started.
HAS_A_LAB = frozenset({READY, RUNNING, COLLECTING})
# States of slots whose worker is expected to respond.
SERVING = frozenset({"READY", "DRAINING"})


@dataclass(frozen=True)
class SlotInfo:
    id: str
    name: str
    pool: str
    endpoint: str
    state: str = "READY"

    @staticmethod
    def read(values: Mapping[str, Any]) -> SlotInfo:
        return _SLOT.validate_python(values)


@dataclass(frozen=True)
class SessionPart:
    """The part of a session on one slot: its whole lab, or the lab of some of its nodes if it is spread."""

    slot_id: str
    topology: str | None
    title: str
    nodes: frozenset[str] | None = None

    def has(self, label: str) -> bool:
        return self.nodes is None or label in self.nodes


@dataclass(frozen=True)
class Session:
    id: str
    attempt: int
    status: str
    status_since: datetime
    starts_at: datetime
    ends_at: datetime
    pool: str
    slot_id: Annotated[str | None, Field(validation_alias=AliasPath("slot", "id"))] = None
    parts: tuple[SessionPart, ...] = ()
    dropped_links: tuple[str, ...] = ()
    awaits_arrival: bool = False
    arrived_at: datetime | None = None
    observed_at: datetime | None = None
    port_template: tuple[SkipValidation[Mapping[str, Any]], ...] = ()
    allocated_ports: SkipValidation[Mapping[str, int]] = field(default_factory=dict)
    kernels: SkipValidation[Mapping[str, str]] = field(default_factory=dict)
    requests: SkipValidation[Mapping[str, str]] = field(default_factory=dict)

    @staticmethod
    def read(values: Mapping[str, Any]) -> Session:
        present = {name: value for name, value in values.items() if value is not None}
        return _SESSION.validate_python({**present, "parts": _parts(values)})

    @property
    def short_id(self) -> str:
        return self.id[:8]

    def is_on(self, slot_id: str) -> bool:
        return any(part.slot_id == slot_id for part in self.parts)


def _parts(values: Mapping[str, Any]) -> tuple[SessionPart, ...]:
    """Return one part per slot. Titles of a spread session carry “part/total”."""
    slot, name = values.get("slot"), values.get("definition_name") or ""
    spread = values.get("parts") or ()
    if spread:
        return tuple(
            SessionPart(
                part["slot"]["id"],
                part["topology"],
                f"{number}/{len(spread)} {name}",
                frozenset(part["nodes"]),
            )
            for number, part in enumerate(spread, 1)
        )
    return (SessionPart(slot["id"], values.get("topology"), name),) if slot else ()


_SLOT = TypeAdapter(SlotInfo)
_SESSION = TypeAdapter(Session)
