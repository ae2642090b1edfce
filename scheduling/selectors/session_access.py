"""Access sheet of a session: the address of each node's ports, the worker's console, and warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from lcm.cml.access import NodeAddress, host_of, lab_page_of, node_addresses
from lcm.domain.lifecycle import FINAL, SessionStatus
from lcm.models import Kernel, LabletSession
from lcm.web.wording import clock_text, duration_text
from scheduling.models import Phase, PortAllocation, Reservation, SessionLab, Slot, SlotState
from scheduling.selectors.reservations import parts_of


class AccessState(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    OPEN = "open"
    CLOSING = "closing"
    ENDED = "ended"


_STATES = {
    SessionStatus.PENDING: AccessState.WAITING,
    SessionStatus.SCHEDULED: AccessState.STARTING,
    SessionStatus.INSTANTIATING: AccessState.STARTING,
    SessionStatus.READY: AccessState.OPEN,
    SessionStatus.RUNNING: AccessState.OPEN,
    SessionStatus.COLLECTING: AccessState.CLOSING,
    SessionStatus.STOPPING: AccessState.CLOSING,
} | dict.fromkeys(FINAL, AccessState.ENDED)


@dataclass(frozen=True)
class AccessWorker:
    """A worker that runs nodes of the session, and the lab on it if a survey has found it."""

    slot: Slot
    host: str
    # The page of the lab, if it is known.
    console: str
    lab: SessionLab | None = None

    @classmethod
    def of(cls, slot: Slot, labs: Mapping[UUID, SessionLab]) -> AccessWorker:
        lab = labs.get(slot.pk)
        return cls(slot, host_of(slot.endpoint), lab_page_of(slot.endpoint, lab.lab if lab else ""), lab)


@dataclass(frozen=True)
class NodeAccess:
    """A node with its worker and addresses."""

    kernel: Kernel
    worker: AccessWorker | None
    addresses: Sequence[NodeAddress]

    @property
    def lab_state(self) -> str:
        """Return the node's state on the worker at the last survey; empty if unknown."""
        lab = self.worker.lab if self.worker else None
        return str(lab.node_states.get(self.kernel.node_label, "")) if lab else ""

    @property
    def lab_state_at(self) -> datetime | None:
        return self.worker.lab.observed_at if self.lab_state and self.worker and self.worker.lab else None


@dataclass(frozen=True)
class AccessSheet:
    """How to connect to a session. Nodes are listed while the session has a slot."""

    state: AccessState
    message: str
    warnings: Sequence[str] = ()
    workers: Sequence[AccessWorker] = ()
    nodes: Sequence[NodeAccess] = ()

    @property
    def text(self) -> str:
        """Return one line per address, for copying: `r1 serial telnet://worker:2036`."""
        lines = [
            f"{node.kernel.node_label} {each.protocol} {each.url}"
            for node in self.nodes
            for each in node.addresses
            if each.url
        ]
        consoles = [f"{each.slot.name} console {each.console}" for each in self.workers if each.console]
        return "\n".join([*lines, *consoles])


def session_access(session: LabletSession, kernels: Sequence[Kernel], *, now: datetime) -> AccessSheet:
    """Return the access sheet of a session with these kernels."""
    state = _STATES[SessionStatus(session.status)]
    if state in (AccessState.WAITING, AccessState.ENDED):
        return AccessSheet(state, _message(state))
    workers = _workers_by_node(session, kernels)
    hosts = {label: worker.host for label, worker in workers.items()}
    ports = PortAllocation.objects.filter(session=session, leaked=False).values_list("name", "port")
    addresses = node_addresses(session.revision.port_template, dict(ports), hosts)
    nodes = [
        NodeAccess(each, workers.get(each.node_label), addresses.get(each.node_label, [])) for each in kernels
    ]
    distinct = list({worker.slot.pk: worker for worker in workers.values()}.values())
    warnings = slot_warnings(session, [each.slot for each in distinct], now=now)
    if session.port_drift_open:
        warnings.append(_("The last observation found other ports than allocated. See Ports below."))
    return AccessSheet(state, _message(state), warnings, distinct, nodes)


def _workers_by_node(session: LabletSession, kernels: Sequence[Kernel]) -> Mapping[str, AccessWorker]:
    """Return the worker of each node; nodes of a spread session may have different ones."""
    claims = Reservation.objects.filter(session=session, phase=Phase.READY, slot__isnull=False)
    claim = claims.select_related("slot__pool").first()
    if claim is None or claim.slot is None:
        return {}
    found = SessionLab.objects.filter(session=session, attempt=session.attempt)
    labs = {lab.slot_id: lab for lab in found}
    if not claim.spread:
        return dict.fromkeys((each.node_label for each in kernels), AccessWorker.of(claim.slot, labs))
    parts = parts_of([claim]).get(claim.pk, [])
    return {label: AccessWorker.of(part.slot, labs) for part in parts for label in part.kernels}


def _message(state: AccessState) -> str:
    match state:
        case AccessState.WAITING:
            return _("Addresses appear here when the session has a slot.")
        case AccessState.STARTING:
            return _("The lab is starting. Its nodes can be reached when the session is Ready.")
        case AccessState.CLOSING:
            return _("The lab is being removed. Its nodes may no longer be reachable.")
        case AccessState.ENDED:
            return _("The session has ended and released its ports.")
    return ""


def slot_warnings(session: LabletSession, slots: Sequence[Slot], *, now: datetime) -> list[str]:
    """Return what the states of its slots mean for an active session."""
    return [text for slot in slots if (text := _warning(slot, session, now))]


def _warning(slot: Slot, session: LabletSession, now: datetime) -> str:
    values = {"slot": slot.name}
    if slot.interruption_deadline:
        return _interruption(slot, slot.interruption_deadline, session, now)
    if slot.state == SlotState.DRAINING:
        return _("%(slot)s is draining. The session keeps its slot until it ends.") % values
    if slot.state == SlotState.ERROR:
        return _("%(slot)s is in error. The session may be unreachable.") % values
    return ""


def _interruption(slot: Slot, deadline: datetime, session: LabletSession, now: datetime) -> str:
    values = {"slot": slot.name, "time": clock_text(deadline, seconds=True)}
    if deadline <= now:
        return _("The provider has interrupted %(slot)s: its worker terminated at %(time)s.") % values
    first = _("The provider interrupts %(slot)s: its worker terminates at %(time)s.") % values
    if session.status != SessionStatus.RUNNING:
        return first
    before = duration_text(timedelta(seconds=settings.CONFIG["INTERRUPTION_TEARDOWN"]))
    text = _("LCM observes and ends the session %(time)s before. Save your work.") % {"time": before}
    if session.definition.preemptible:
        text = f"{text} {_('LCM requests it again for the rest of its timeslot.')}"
    return f"{first} {text}"
