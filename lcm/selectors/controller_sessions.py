"""What controllers work on: sessions on their slots, with what other apps know of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from lcm.cml.topology.partition import partition_topology
from lcm.domain.access import ControllerScope
from lcm.domain.lifecycle import ON_A_SLOT, SessionStatus
from lcm.events.change_feed_reader import FeedChange
from lcm.models import FeedKind, Kernel, LabletSession
from lcm.models.definitions import Placement

Part = Callable[[Sequence[UUID]], Mapping[UUID, Any]]
# A slot and the labels of the nodes on it, for each slot of a session.
Spread = Sequence[tuple[dict[str, Any], list[str]]]
OpenRequests = Callable[[Sequence[UUID]], Mapping[UUID, datetime]]

# Apps add theirs when they start: what a session has beside its own fields, by name.
SESSION_FIELDS: dict[str, Part] = {}
# Where the nodes of sessions are that may be on several slots.
NODES_BY_SLOT: list[Callable[[Sequence[UUID]], Mapping[UUID, Spread]]] = []
# The sessions that are on a slot and on no other; which of these sessions are or were on a slot.
SESSIONS_ON_SLOT: list[Callable[[UUID], Collection[UUID]]] = []
SESSIONS_EVER_ON_SLOT: list[Callable[[UUID, Sequence[UUID]], Collection[UUID]]] = []
# What people ask of running sessions, by name: since when it waits to be done.
OPEN_REQUESTS: dict[str, OpenRequests] = {}
# Later the lab is there, and the topology would only be sent for nothing.
NEEDS_TOPOLOGY = (SessionStatus.SCHEDULED, SessionStatus.INSTANTIATING)


def sessions_in_scope(rows: QuerySet[LabletSession], scope: ControllerScope) -> QuerySet[LabletSession]:
    """Return the sessions among these that a controller may see and change."""
    rows = rows.filter(pool__in=scope.pools)
    if scope.slot_id is None:
        return rows
    return rows.filter(pk__in=[key for read in SESSIONS_ON_SLOT for key in read(scope.slot_id)])


def changes_in_scope(changes: list[FeedChange], scope: ControllerScope) -> list[FeedChange]:
    """Return the changes, among these in the pools of a controller, that the controller may see.

    A session that has left the slot is included: its controller has to learn that it left.
    """
    if scope.slot_id is None:
        return changes
    sessions = {change.id for change in changes if change.kind == FeedKind.SESSION}
    known = (
        {key for read in SESSIONS_EVER_ON_SLOT for key in read(scope.slot_id, list(sessions))}
        if sessions
        else set()
    )
    return [change for change in changes if change.id in known or change.id == scope.slot_id]


def sessions_on_slots(scope: ControllerScope) -> QuerySet[LabletSession]:
    """Return the sessions that a controller has work for."""
    rows = sessions_in_scope(LabletSession.objects.filter(status__in=ON_A_SLOT), scope)
    return rows.select_related("definition", "revision").defer("definition__nodes", "definition__links")


def session_payloads(sessions: Sequence[LabletSession]) -> list[dict[str, Any]]:
    """Sessions as controllers get them; one query for each part, however many sessions."""
    ids = [session.pk for session in sessions]
    parts = {name: read(ids) for name, read in SESSION_FIELDS.items()} if ids else {}
    asked = {name: read(ids) for name, read in OPEN_REQUESTS.items()} if ids else {}
    kernels, spread = _kernels(ids), _spread(sessions)
    return [
        {
            **_own(session),
            **_divided(session, spread.get(session.pk, ())),
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


def _spread(sessions: Sequence[LabletSession]) -> Mapping[UUID, Spread]:
    ids = [session.pk for session in sessions if session.definition.placement == Placement.SPREAD]
    return {key: places for read in NODES_BY_SLOT for key, places in read(ids).items()} if ids else {}


def _divided(session: LabletSession, places: Spread) -> dict[str, Any]:
    """A lab for each slot; links between slots are left out. Nothing when all is on one."""
    if len(places) < 2:
        return {"parts": [], "left_out": []}
    parts: list[dict[str, Any]] = [{"slot": slot, "nodes": nodes, "topology": None} for slot, nodes in places]
    if session.status not in NEEDS_TOPOLOGY or not session.definition.topology_yaml:
        return {"parts": parts, "left_out": []}
    parting = partition_topology(session.definition.topology_yaml, [nodes for _, nodes in places])
    for part, topology in zip(parts, parting.topologies, strict=True):
        part["topology"] = topology
    return {"parts": parts, "left_out": parting.left_out}


def _kernels(ids: Sequence[UUID]) -> dict[UUID, dict[str, UUID]]:
    """Kernel ids by the label of their node, by session."""
    found: dict[UUID, dict[str, UUID]] = {}
    rows = Kernel.objects.filter(session_id__in=ids).values_list("session_id", "node_label", "pk")
    for session_id, label, key in rows:
        found.setdefault(session_id, {})[label] = key
    return found
