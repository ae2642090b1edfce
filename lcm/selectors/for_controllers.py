"""What controllers work on: sessions on their slots, with what other apps know of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from lcm.lifecycle import ON_A_SLOT, SessionStatus
from lcm.models import Kernel, LabletSession

Part = Callable[[Sequence[UUID]], Mapping[UUID, Any]]
OpenRequests = Callable[[Sequence[UUID]], Mapping[UUID, datetime]]

# Apps add theirs when they start: what a session has beside its own fields, by name.
PARTS: dict[str, Part] = {}
# What people ask of running sessions, by name: since when it waits to be done.
REQUESTS: dict[str, OpenRequests] = {}
# Later the lab is there, and the topology would only be sent for nothing.
NEEDS_TOPOLOGY = (SessionStatus.SCHEDULED, SessionStatus.INSTANTIATING)


def sessions_on_slots(pools: Iterable[str]) -> QuerySet[LabletSession]:
    """The sessions of these pools that a controller has something to do for."""
    rows = LabletSession.objects.filter(pool__in=list(pools), status__in=ON_A_SLOT)
    return rows.select_related("definition", "revision").defer("definition__nodes", "definition__links")


def described(sessions: Sequence[LabletSession]) -> list[dict[str, Any]]:
    """Sessions as controllers get them; one query for each part, however many sessions."""
    ids = [session.pk for session in sessions]
    parts = {name: read(ids) for name, read in PARTS.items()} if ids else {}
    asked = {name: read(ids) for name, read in REQUESTS.items()} if ids else {}
    kernels = _kernels(ids)
    return [
        {
            **_own(session),
            "kernels": kernels.get(session.pk, {}),
            "requests": {name: since[session.pk] for name, since in asked.items() if session.pk in since},
            **{name: values.get(session.pk) for name, values in parts.items()},
        }
        for session in sessions
    ]


def _own(session: LabletSession) -> dict[str, Any]:
    definition = session.definition
    return {
        "id": session.pk,
        "attempt": session.attempt,
        "status": session.status,
        "status_since": session.status_since,
        "starts_at": session.starts_at,
        "ends_at": session.ends_at,
        "arrived_at": session.arrived_at,
        "observed_at": session.observed_at,
        "pool": session.pool,
        "definition": definition.pk,
        "definition_name": str(definition),
        "awaits_arrival": definition.awaits_arrival,
        "revision": session.revision.number,
        "port_template": session.revision.port_template,
        "topology": definition.topology_yaml if session.status in NEEDS_TOPOLOGY else None,
    }


def _kernels(ids: Sequence[UUID]) -> dict[UUID, dict[str, UUID]]:
    """Kernel ids by the label of their node, by session."""
    found: dict[UUID, dict[str, UUID]] = {}
    rows = Kernel.objects.filter(session_id__in=ids).values_list("session_id", "node_label", "pk")
    for session_id, label, key in rows:
        found.setdefault(session_id, {})[label] = key
    return found
