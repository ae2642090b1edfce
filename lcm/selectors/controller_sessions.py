"""Sessions as controllers receive them, with fields that other apps add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from lcm.cml.topology.partition import partition_topology
from lcm.domain.access import ControllerScope
from lcm.domain.lifecycle import ON_A_SLOT, SessionStatus
from lcm.events.change_feed_reader import FeedChange
from lcm.extensions import Extension
from lcm.models import FeedKind, Kernel, LabletSession
from lcm.models.definitions import Placement

# For each slot of a session: the slot and the labels of its nodes.
Spread = Sequence[tuple[dict[str, Any], list[str]]]
# In later statuses the lab exists and the controller no longer needs the topology.
NEEDS_TOPOLOGY = (SessionStatus.SCHEDULED, SessionStatus.INSTANTIATING)


def sessions_in_scope(rows: QuerySet[LabletSession], scope: ControllerScope) -> QuerySet[LabletSession]:
    """Filter sessions to those a controller may read and change."""
    rows = rows.filter(pool__in=scope.pools)
    if scope.slot_id is None:
        return rows
    readers = Extension.installed().sessions_on_slot
    return rows.filter(pk__in=[key for read in readers for key in read(scope.slot_id)])


def changes_in_scope(changes: list[FeedChange], scope: ControllerScope) -> list[FeedChange]:
    """Filter changes in a controller's pools to those the controller may read.

    A session that has left the slot is included, so that its controller learns that the session left.
    """
    if scope.slot_id is None:
        return changes
    sessions = {change.id for change in changes if change.kind == FeedKind.SESSION}
    readers = Extension.installed().sessions_ever_on_slot if sessions else ()
    visible = {key for read in readers for key in read(scope.slot_id, list(sessions))}
    return [change for change in changes if change.id in visible or change.id == scope.slot_id]


def sessions_on_slots(scope: ControllerScope) -> QuerySet[LabletSession]:
    """Return the sessions on slots in a controller's scope."""
    rows = sessions_in_scope(LabletSession.objects.filter(status__in=ON_A_SLOT), scope)
    return rows.select_related("definition", "revision").defer("definition__nodes", "definition__links")


def session_payloads(sessions: Sequence[LabletSession]) -> list[dict[str, Any]]:
    """Return sessions as controllers receive them; one query per extra field, not per session."""
    ids = [session.pk for session in sessions]
    added = Extension.installed()
    parts = {name: read(ids) for name, read in added.controller_fields.items()} if ids else {}
    open_requests = {name: read(ids) for name, read in added.open_requests.items()} if ids else {}
    kernels, nodes_by_slot = _kernels(ids), _nodes_by_slot(sessions)
    return [
        {
            **_own_fields(session),
            **_lab_parts(session, nodes_by_slot.get(session.pk, ())),
            "kernels": kernels.get(session.pk, {}),
            "requests": {
                name: since[session.pk] for name, since in open_requests.items() if session.pk in since
            },
            **{name: values.get(session.pk) for name, values in parts.items()},
        }
        for session in sessions
    ]


def _own_fields(session: LabletSession) -> dict[str, Any]:
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


def _nodes_by_slot(sessions: Sequence[LabletSession]) -> Mapping[UUID, Spread]:
    ids = [session.pk for session in sessions if session.definition.placement == Placement.SPREAD]
    readers = Extension.installed().nodes_by_slot if ids else ()
    return {key: places for read in readers for key, places in read(ids).items()}


def _lab_parts(session: LabletSession, places: Spread) -> dict[str, Any]:
    """Return one lab per slot, without links between slots; empty if the session is on one slot."""
    if len(places) < 2:
        return {"parts": [], "dropped_links": []}
    parts: list[dict[str, Any]] = [{"slot": slot, "nodes": nodes, "topology": None} for slot, nodes in places]
    if session.status not in NEEDS_TOPOLOGY or not session.definition.topology_yaml:
        return {"parts": parts, "dropped_links": []}
    partition = partition_topology(session.definition.topology_yaml, [nodes for _, nodes in places])
    for part, topology in zip(parts, partition.topologies, strict=True):
        part["topology"] = topology
    return {"parts": parts, "dropped_links": partition.dropped_links}


def _kernels(ids: Sequence[UUID]) -> dict[UUID, dict[str, UUID]]:
    """Return kernel ids by node label, by session id."""
    found: dict[UUID, dict[str, UUID]] = {}
    rows = Kernel.objects.filter(session_id__in=ids).values_list("session_id", "node_label", "pk")
    for session_id, label, key in rows:
        found.setdefault(session_id, {})[label] = key
    return found
