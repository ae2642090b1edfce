"""Observed figures of a session compared with its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, Q

from lcm.domain.lifecycle import FINAL
from lcm.models import LabletSession
from observations.arithmetic.drift import DriftItem
from observations.arithmetic.measures import ALLOCATED, MEASURED, USED, hundredths
from observations.models import SessionObservation
from observations.selectors.evidence import NodeFigures, nodes_in, raw_nodes
from observations.services.port_drift import plans_of
from observations.services.samples import column
from scheduling.selectors.controller_assignments import ports_of_sessions


def observation_of(session: LabletSession) -> SessionObservation | None:
    return SessionObservation.objects.filter(session=session).first()


@dataclass(frozen=True)
class ObservedCounts:
    """Of the newest observed sessions: total, counted, and above their requirement."""

    n: int
    counting: int
    above: int


def observed_newest(limit: int) -> ObservedCounts:
    above = Q()
    for name in MEASURED:
        above |= Q(**{f"{column(name, USED)}__gt": F(column(name, ALLOCATED))})
    newest = SessionObservation.objects.order_by("-observed_at", "-session")[:limit]
    found = newest.aggregate(
        n=Count("pk"), counting=Count("pk", filter=Q(is_sample=True)), above=Count("pk", filter=above)
    )
    return ObservedCounts(**found)


def session_evidence(session: LabletSession, row: SessionObservation | None) -> dict[str, Any]:
    """Return a session's evidence for the API; empty if it was never observed."""
    peaks = {
        name: {source: getattr(row, column(name, source)) for source in ("allocated", "used")}
        for name in (MEASURED if row else ())
    }
    return {
        "session_id": session.pk,
        "observation_count": session.observation_count,
        "port_drift_detected": session.port_drift_detected,
        "port_drift_open": session.port_drift_open,
        "drift": row.drift if row else [],
        "observed_at": session.observed_at,
        "observed_resources": row.observed_resources if row else None,
        "observed_ports": row.observed_ports if row else None,
        "peak": peaks,
        "counted": bool(row and row.is_sample),
        "not_counted_reason": row.not_counted_reason if row else "",
    }


def planned_and_observed(session: LabletSession) -> dict[str, Any]:
    """Return the planned and observed ports of a session, and its newest observation."""
    rows = SessionObservation.objects.filter(session=session)
    row = rows.only("observed_ports", "observed_resources", "drift").first()
    allocated: dict[str, int] | None = ports_of_sessions([session.pk])[session.pk]
    if not allocated and session.status in FINAL:
        # An ended session holds no ports; its last observation still has the planned ports.
        allocated = _planned_when_observed(row)
    return {
        "allocated_ports": allocated,
        "observed_ports": row.observed_ports if row else None,
        "observed_resources": row.observed_resources if row else None,
    }


def _planned_when_observed(row: SessionObservation | None) -> dict[str, int] | None:
    if row is None or row.observed_ports is None:
        return None
    planned = row.observed_ports | {item["name"]: item["allocated"] for item in row.drift}
    return {name: port for name, port in planned.items() if port is not None}


@dataclass(frozen=True)
class PlannedResource:
    """Planned, allocated, used and peak amounts of a resource."""

    resource: str
    planned: int
    allocated: int | None
    used: int | None
    peak: int | None

    @property
    def seen(self) -> int | None:
        return self.allocated if self.used is None else self.used

    @property
    def percent(self) -> int | None:
        """Return the deviation of the observed amount from the plan."""
        if self.seen is None or not self.planned:
            return None
        return round((self.seen - self.planned) * 100 / self.planned)


def planned_beside_observed(session: LabletSession, row: SessionObservation | None) -> list[PlannedResource]:
    def of(name: str, source: str, *, peak: bool = False) -> int | None:
        value = getattr(row, column(name, source, peak=peak)) if row else None
        return None if value is None else hundredths(value)

    lines = []
    for name in MEASURED:
        used = of(name, "used")
        peak = of(name, "used" if used is not None else "allocated", peak=True)
        planned = hundredths(getattr(session.revision, name))
        lines.append(PlannedResource(name, planned, of(name, "allocated"), used, peak))
    return lines


@dataclass(frozen=True)
class PortComparison:
    """A port by name, as planned and as observed."""

    name: str
    allocated: int | None
    observed: int | None
    item: DriftItem | None

    @property
    def kind(self) -> str:
        return self.item.kind if self.item else "match"


def port_lines(session: LabletSession, row: SessionObservation | None) -> list[PortComparison]:
    """Return the ports that differ, then the ones that match."""
    observed = (row.observed_ports if row else None) or {}
    items = {item["name"]: DriftItem.from_json(item) for item in (row.drift if row else ())}
    plan = {name: port for each in plans_of(session) for name, port in each.allocated.items()}
    lines = [PortComparison(name, item.allocated, item.observed, item) for name, item in items.items()]
    rest = sorted({*plan, *observed} - set(items))
    return lines + [
        PortComparison(name, plan.get(name, observed.get(name)), observed.get(name), None) for name in rest
    ]


@dataclass(frozen=True)
class ObservedNode:
    """A node of the newest observation."""

    label: str
    kind: str
    state: str
    allocated: NodeFigures
    used: NodeFigures
    interfaces: list[dict[str, Any]] | None


def observed_nodes(row: SessionObservation | None) -> list[ObservedNode]:
    """Return the nodes, most memory first."""
    if row is None:
        return []
    stored = row.observed_resources
    both = zip(
        nodes_in(stored, source="allocated"), nodes_in(stored, source="used"), raw_nodes(stored), strict=True
    )
    nodes = [
        ObservedNode(
            allocated.label, allocated.kind, raw.get("state") or "", allocated, used, raw.get("interfaces")
        )
        for allocated, used, raw in both
    ]
    return sorted(nodes, key=lambda node: (-(node.used.memory or node.allocated.memory or 0), node.label))
