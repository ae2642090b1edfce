"""Sessions and slots as LCM's internal API returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

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

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> SlotInfo:
        return cls(values["id"], values["name"], values["pool"], values["endpoint"], values["state"])


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
    slot_id: str | None
    parts: tuple[SessionPart, ...] = ()
    dropped_links: tuple[str, ...] = ()
    awaits_arrival: bool = False
    arrived_at: datetime | None = None
    observed_at: datetime | None = None
    port_template: tuple[Mapping[str, Any], ...] = ()
    allocated_ports: Mapping[str, int] = field(default_factory=dict)
    kernels: Mapping[str, str] = field(default_factory=dict)
    requests: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Session:
        slot = values.get("slot")
        return cls(
            id=values["id"],
            attempt=values["attempt"],
            status=values["status"],
            status_since=datetime.fromisoformat(values["status_since"]),
            starts_at=datetime.fromisoformat(values["starts_at"]),
            ends_at=datetime.fromisoformat(values["ends_at"]),
            pool=values["pool"],
            slot_id=slot["id"] if slot else None,
            parts=_parts(values),
            dropped_links=tuple(values.get("dropped_links") or ()),
            awaits_arrival=bool(values.get("awaits_arrival")),
            arrived_at=_moment(values.get("arrived_at")),
            observed_at=_moment(values.get("observed_at")),
            port_template=tuple(values.get("port_template") or ()),
            allocated_ports=values.get("allocated_ports") or {},
            kernels=values.get("kernels") or {},
            requests=values.get("requests") or {},
        )

    @property
    def short(self) -> str:
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


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
