"""The ports of a session against those its lab has, and what must not be given out meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet, Subquery, UUIDField

from lcm.compiled import Given, Reading, Statement, run
from lcm.models import LabletSession
from observations.arithmetic.drift import DriftItem, Ports, compare_ports, leaked_ports
from observations.models import SessionObservation
from scheduling.models import Phase, PortAllocation, Reservation, Slot


@dataclass(frozen=True)
class Plan:
    """What the worker's port map says: ours, and whose the others are."""

    slot_id: UUID | None = None
    allocated: dict[str, int] = field(default_factory=dict)
    held_by_others: dict[int, str] = field(default_factory=dict)
    leaked: dict[int, UUID] = field(default_factory=dict)


def _place() -> Subquery:
    mine = Reservation.objects.filter(session=Given("session", UUIDField()), phase=Phase.READY)
    return Subquery(mine.values("slot_id")[:1])


# Asked with every observation.
_CLAIMS = Reading(
    lambda: (
        Reservation.objects.filter(slot_id=_place(), phase=Phase.READY)
        .order_by()
        .values_list("slot_id", "session_id", "session__port_drift_detected")
    )
)
_PORTS = Reading(
    lambda: (
        PortAllocation.objects.filter(slot_id=_place())
        .order_by()
        .values_list("pk", "port", "name", "session_id", "leaked")
    )
)


def asking_for_plan(session_id: UUID) -> tuple[Statement[Any], Statement[Any]]:
    """What `plan_from` needs to be read."""
    return _CLAIMS.of(session=session_id), _PORTS.of(session=session_id)


def plan_of(session: LabletSession) -> Plan:
    """Where the session is and what is taken there."""
    return plan_from(session, *run(*asking_for_plan(session.pk)))


def plan_from(session: LabletSession, claims: Sequence[Any], ports: Sequence[Any]) -> Plan:
    if not claims:
        return Plan()
    slot_id = claims[0][0]
    assert slot_id is not None
    plan = Plan(slot_id)
    for key, port, name, holder, leaked in ports:
        if holder == session.pk and leaked:
            plan.leaked[port] = key
        elif holder == session.pk:
            plan.allocated[name] = port
        elif holder is not None:
            plan.held_by_others[port] = str(holder)
    _add_what_others_show(plan, [other for _, other, drifts in claims if drifts and other != session.pk])
    return plan


def _add_what_others_show(plan: Plan, drifting: Sequence[UUID]) -> None:
    """Labs that run on the same worker now may use ports that were never given to them."""
    if not drifting:
        return
    for other, ports in _ports_shown(SessionObservation.objects.filter(session_id__in=drifting)):
        for port in ports:
            plan.held_by_others.setdefault(port, str(other))


def _ports_shown(rows: QuerySet[SessionObservation]) -> list[tuple[UUID, set[int]]]:
    shown = rows.order_by("session_id").values_list("session_id", "observed_ports")
    return [(session_id, set((ports or {}).values())) for session_id, ports in shown]


def compare(plan: Plan, observed: Ports) -> list[DriftItem]:
    return compare_ports(plan.allocated, observed, plan.held_by_others)


def hold_leaked(*, session: LabletSession, plan: Plan, drift: Sequence[DriftItem], now: datetime) -> None:
    """Keep ports that are in use unplanned off the free list."""
    new = {port: name for port, name in leaked_ports(drift).items() if port not in plan.leaked}
    if plan.slot_id is None or not new:
        return
    # Locked as a placement does, so that no port is given out while it is being held back.
    list(Slot.objects.select_for_update().filter(pk=plan.slot_id).values_list("pk"))
    # A port that someone's lab leaked before it ended is taken over by the one that shows it now.
    PortAllocation.objects.filter(slot_id=plan.slot_id, port__in=new, leaked=True, session=None).update(
        session=session
    )
    PortAllocation.objects.bulk_create(
        [
            PortAllocation(
                slot_id=plan.slot_id, port=port, name=name, session=session, leaked=True, created_at=now
            )
            for port, name in new.items()
        ],
        ignore_conflicts=True,
    )


def give_back_free(*, plan: Plan, observed: Ports) -> None:
    """Leaked ports that are seen free. Another lab may show one still; then it is that one's to hold."""
    free = {key: port for port, key in plan.leaked.items() if port not in observed.values()}
    heirs = {key: plan.held_by_others[port] for key, port in free.items() if port in plan.held_by_others}
    for key, other in heirs.items():
        PortAllocation.objects.filter(pk=key).update(session=other)
    gone = free.keys() - heirs.keys()
    if gone:
        PortAllocation.objects.filter(pk__in=gone).delete()


def forget_leaked(session_ids: Sequence[UUID]) -> None:
    """Their labs were removed from the workers, and the ports with them unless another lab shows them too."""
    for row in PortAllocation.objects.filter(session_id__in=session_ids, leaked=True):
        claims = Reservation.objects.filter(slot_id=row.slot_id, phase=Phase.READY)
        shown = SessionObservation.objects.filter(
            session__in=claims.values("session_id"), session__port_drift_detected=True
        ).exclude(session__in=session_ids)
        heirs = (other for other, ports in _ports_shown(shown) if row.port in ports)
        row.session_id = next(heirs, None)
        if row.session_id is None:
            row.delete()
        else:
            row.save(update_fields=["session"])
