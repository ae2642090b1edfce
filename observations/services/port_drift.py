"""Drift between planned and observed ports, and reservation of leaked ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from lcm.db.statements import run_statements
from lcm.models import LabletSession
from observations.arithmetic.drift import DriftItem, Ports, leaked_ports
from observations.models import SessionObservation
from observations.services.recording_sql import Claim, Port, read_claims, read_ports
from scheduling.models import Phase, PortAllocation, Reservation, ReservationPart, Slot
from scheduling.selectors.snapshots import ports_by_kernel


@dataclass(frozen=True)
class PortPlan:
    """Ports on a worker: allocated, leaked and held by others. A spread session has one plan per worker."""

    slot_id: UUID | None = None
    kernels: Sequence[str] = ()
    allocated: dict[str, int] = field(default_factory=dict)
    held_by_others: dict[int, str] = field(default_factory=dict)
    leaked: dict[int, UUID] = field(default_factory=dict)


def plans_of(session: LabletSession) -> list[PortPlan]:
    """Return the port plans of the session's workers."""
    return plans_from(session, *run_statements(read_claims(session.pk), read_ports(session.pk)))


def plans_from(session: LabletSession, claims: Sequence[Claim], ports: Sequence[Port]) -> list[PortPlan]:
    if not claims:
        return [PortPlan()]
    if any(spread and holder == session.pk for _, holder, _, spread in claims):
        return _plans_by_worker(session)
    plan = PortPlan(claims[0][0])
    _fill(plan, session, ports, [holder for _, holder, drifts, _ in claims if drifts])
    return [plan]


def _plans_by_worker(session: LabletSession) -> list[PortPlan]:
    """Return one plan per worker of a spread session."""
    parts = ReservationPart.objects.filter(reservation__session=session, reservation__phase=Phase.READY)
    plans = []
    for slot_id, kernels in parts.order_by("slot_id").values_list("slot_id", "kernels"):
        plan = PortPlan(slot_id, kernels)
        rows = PortAllocation.objects.filter(slot_id=slot_id).order_by()
        ports = list(rows.values_list("pk", "port", "name", "session_id", "leaked"))
        _fill(plan, session, ports, _drifting_on(slot_id))
        plans.append(plan)
    return plans


def _fill(plan: PortPlan, session: LabletSession, ports: Sequence[Port], drifting: Sequence[UUID]) -> None:
    for key, port, name, holder, leaked in ports:
        if holder == session.pk and leaked:
            plan.leaked[port] = key
        elif holder == session.pk:
            plan.allocated[name] = port
        elif holder is not None:
            plan.held_by_others[port] = str(holder)
    # Other labs on the same worker may use ports that were never allocated to them.
    for other, shown in _shown_on(plan.slot_id, [each for each in drifting if each != session.pk]):
        for port in shown:
            plan.held_by_others.setdefault(port, str(other))


def _drifting_on(slot_id: UUID) -> list[UUID]:
    """Return sessions on a worker, whole or in part, with open port drift."""
    whole = Reservation.objects.filter(slot_id=slot_id, phase=Phase.READY, spread=False)
    parts = ReservationPart.objects.filter(slot_id=slot_id, reservation__phase=Phase.READY)
    return [
        *whole.filter(session__port_drift_open=True).values_list("session_id", flat=True),
        *parts.filter(reservation__session__port_drift_open=True).values_list(
            "reservation__session_id", flat=True
        ),
    ]


def _shown_on(slot_id: UUID | None, session_ids: Sequence[UUID]) -> list[tuple[UUID, dict[int, str]]]:
    """Return the ports observed for these sessions on a worker, with their names."""
    if not session_ids:
        return []
    parts = ReservationPart.objects.filter(
        reservation__session__in=session_ids, reservation__phase=Phase.READY
    )
    kernels: dict[UUID, dict[str, UUID]] = {}
    for session_id, place, labels in parts.values_list("reservation__session_id", "slot_id", "kernels"):
        kernels.setdefault(session_id, {}).update(dict.fromkeys(labels, place))
    rows = SessionObservation.objects.filter(session_id__in=session_ids).order_by("session_id")
    return [
        (key, {port: name for name, port in _on_slot(slot_id, kernels.get(key, {}), ports or {}).items()})
        for key, ports in rows.values_list("session_id", "observed_ports")
    ]


def _on_slot(slot_id: UUID | None, kernels: Mapping[str, UUID], observed: Ports) -> Ports:
    """Return the ports of nodes on this slot; all ports if the session is not spread."""
    if not kernels:
        return observed
    by_kernel = ports_by_kernel(sorted(kernels), observed)
    on_slot = {name for label, names in by_kernel.items() if kernels[label] == slot_id for name in names}
    return {name: port for name, port in observed.items() if name in on_slot}


def by_worker(plans: Sequence[PortPlan], observed: Ports) -> list[tuple[PortPlan, Ports]]:
    """Return the observed ports with the plan of the worker they were observed on."""
    kernels = {label: plan.slot_id for plan in plans for label in plan.kernels if plan.slot_id}
    return [(plan, _on_slot(plan.slot_id, kernels, observed)) for plan in plans]


def reserve_leaked_ports(
    *, session: LabletSession, plan: PortPlan, drift: Sequence[DriftItem], now: datetime
) -> None:
    """Reserve ports that are in use without a plan, unless another session holds them."""
    known = {*plan.leaked, *plan.allocated.values()}
    new = {port: name for port, name in leaked_ports(drift).items() if port not in known}
    if plan.slot_id is None or not new:
        return
    _lock(plan.slot_id)
    # A port leaked by an ended session is transferred to the session that uses it now.
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


def _lock(slot_id: UUID) -> None:
    """Lock the slot before changing ports, as a placement does, so that no reserved port is allocated."""
    locked = Slot.objects.select_for_update(of=("self",), no_key=True).filter(pk=slot_id)
    list(locked.order_by().values_list("pk"))


def release_free_ports(*, session: LabletSession, plan: PortPlan, observed: Ports) -> None:
    """Release leaked ports observed free, or transfer them to another lab that uses them."""
    free = {key: port for port, key in plan.leaked.items() if port not in observed.values()}
    if plan.slot_id is None or not free:
        return
    _lock(plan.slot_id)
    # Read again under the lock: another lab may have been observed with the port meanwhile.
    others = [each for each in _drifting_on(plan.slot_id) if each != session.pk]
    shown = {port: other for other, ports in _shown_on(plan.slot_id, others) for port in ports}
    transferred = {key: shown[port] for key, port in free.items() if port in shown}
    for key, other in transferred.items():
        PortAllocation.objects.filter(pk=key).update(session=other)
    unused = free.keys() - transferred.keys()
    if unused:
        PortAllocation.objects.filter(pk__in=unused).delete()


def delete_leaked_ports(session_ids: Sequence[UUID]) -> None:
    """Delete leaked ports of removed labs, except ports that another lab uses."""
    leaked = PortAllocation.objects.filter(session_id__in=session_ids, leaked=True)
    _transfer(leaked, removed=session_ids)
    leaked.delete()


def transfer_shown_ports(session_ids: Sequence[UUID]) -> None:
    """Transfer allocated ports that are about to be released to running labs that use them."""
    allocated = PortAllocation.objects.filter(session_id__in=session_ids, leaked=False)
    _transfer(allocated, removed=session_ids)


def _transfer(ports: QuerySet[PortAllocation], *, removed: Sequence[UUID]) -> None:
    drifting = Q(session__port_drift_open=True, phase=Phase.READY)
    whole = Reservation.objects.filter(drifting, slot=OuterRef("slot"))
    parts = ReservationPart.objects.filter(
        slot=OuterRef("slot"), reservation__in=Reservation.objects.filter(drifting)
    )
    contested: dict[UUID, set[int]] = {}
    for slot_id, port in ports.filter(Exists(whole) | Exists(parts)).values_list("slot_id", "port"):
        contested.setdefault(slot_id, set()).add(port)
    for slot_id, numbers in contested.items():
        others = [each for each in _drifting_on(slot_id) if each not in removed]
        for other, shown in _shown_on(slot_id, others):
            for port in numbers & shown.keys():
                ports.filter(slot_id=slot_id, port=port).update(session=other, name=shown[port], leaked=True)
