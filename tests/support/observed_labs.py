"""Observations of the small lab, as a controller posts them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from lcm.cml.observation.model import InterfaceObservation, NodeObservation, ResourceObservation
from lcm.domain.actors import SYSTEM, Actor
from lcm.domain.lifecycle import SessionStatus
from lcm.models import DefinitionRevision, LabletDefinition, LabletSession, Project, SessionTransition, User
from lcm.services.session_transitions import transition_session
from observations.services.observation_recorder import RecordingResult, record_observation
from observations.services.requirement_preview import RequirementChoice, RequirementPreview, preview_change
from observations.services.requirement_revision import apply_requirements
from scheduling.models import Phase, Pool, PortAllocation, Reservation, Slot, SlotState

CONTROLLER = Actor("controller eu-1")
HOUR = timedelta(hours=1)
STATUSES = (
    SessionStatus.SCHEDULED,
    SessionStatus.INSTANTIATING,
    SessionStatus.READY,
    SessionStatus.RUNNING,
    SessionStatus.COLLECTING,
)


def seen(
    at: datetime,
    *,
    cpu: str | None = "2.00",
    memory: int | None = 2048,
    storage: int | None = 4096,
    ports: Mapping[str, int] | None = None,
    nodes: int = 3,
    **fields: Any,
) -> dict[str, Any]:
    """Return the JSON of an observation; the small lab holds 4 cores, 3.5 GB and 7 GB."""
    observation = ResourceObservation(
        observed_at=at,
        observer="lablet-controller",
        controller="eu-1",
        lab_id="lab-1",
        cml_version="2.10.0",
        total_cpu_cores=Decimal("4.00"),
        total_memory_mb=3584,
        total_storage_mb=7168,
        used_cpu_cores=None if cpu is None else Decimal(cpu),
        used_memory_mb=memory,
        used_storage_mb=storage,
        nodes=tuple(node(index, cpu, memory, nodes) for index in range(nodes)),
        actual_node_count=nodes,
        node_definitions_used=("iosv",),
        observed_ports=None if ports is None else dict(ports),
        **fields,
    )
    return observation.to_dict()  # type: ignore[return-value]


def node(index: int, cpu: str | None, memory: int | None, node_count: int) -> NodeObservation:
    return NodeObservation(
        node_id=f"n{index}",
        label=f"r{index + 1}",
        node_definition="iosv",
        state="BOOTED",
        cpus=1,
        cpu_cores=Decimal(1),
        ram_mb=1024,
        storage_mb=2048,
        used_cpu_cores=None if cpu is None else (Decimal(cpu) / node_count).quantize(Decimal("0.01")),
        used_memory_mb=None if memory is None else memory // node_count,
        interfaces=(
            InterfaceObservation(interface_id="i0", label="Gi0/0", state="STARTED", ip4=("10.0.0.1",)),
        ),
    )


def on_slot(session: LabletSession, *, number: int = 1, ports: Mapping[str, int] | None = None) -> Slot:
    """Place a session on a READY slot of its pool with these ports, as a tick does."""
    pool = Pool.objects.get(name=session.pool)
    slot, _ = Slot.objects.get_or_create(
        pool=pool,
        number=number,
        defaults={
            "state": SlotState.READY,
            "max_leases": 10,
            "cpu_cores": 16,
            "memory_gb": 64,
            "storage_gb": 500,
        },
    )
    assignment = {"phase": Phase.READY, "slot": slot}
    if not Reservation.objects.filter(session=session).update(**assignment):
        amounts = session.revision.amounts.as_dict()
        Reservation.objects.create(
            session=session, pool=pool, created_at=session.created_at, **amounts, **assignment
        )
    Slot.objects.filter(pk=slot.pk).update(lease_count=slot.lease_count + 1)
    slot.refresh_from_db()
    PortAllocation.objects.bulk_create(
        [
            PortAllocation(slot=slot, session=session, name=name, port=port)
            for name, port in (ports or {}).items()
        ]
    )
    return slot


def make_past_session(
    definition: LabletDefinition,
    project: Project,
    owner: User,
    *,
    ended: datetime,
    length: timedelta = HOUR,
    until: SessionStatus = SessionStatus.COLLECTING,
) -> LabletSession:
    """Create a session that ran for a while and has this status; written without the services."""
    started_at = ended - length
    session = LabletSession.objects.create(
        definition=definition,
        revision=definition.current_revision,
        owner=owner,
        project=project,
        starts_at=started_at,
        ends_at=started_at + 2 * HOUR,
        status=until,
        status_since=ended,
        pool=definition.pool,
        created_at=started_at,
    )
    steps = STATUSES[: STATUSES.index(until) + 1]
    SessionTransition.objects.bulk_create(
        [
            SessionTransition(
                session=session,
                to_status=step,
                at=ended if step == SessionStatus.COLLECTING else started_at,
                actor="LCM",
                attempt=1,
            )
            for step in steps
        ]
    )
    return session


def post(session: LabletSession, body: dict[str, Any], now: datetime) -> RecordingResult:
    recorded = record_observation(session_id=session.pk, body=body, actor=CONTROLLER, now=now)
    session.refresh_from_db()
    return recorded


def finish(session: LabletSession, now: datetime) -> None:
    """Move a session to STOPPING and TERMINATED."""
    for step in (SessionStatus.STOPPING, SessionStatus.TERMINATED):
        transition_session(session=session, to=step, actor=SYSTEM, now=now)


def preview(
    definition: LabletDefinition, choices: Mapping[str, RequirementChoice], now: datetime
) -> RequirementPreview:
    return preview_change(definition=definition, choices=choices, now=now)


def apply(
    definition: LabletDefinition,
    choices: Mapping[str, RequirementChoice],
    actor: Actor,
    now: datetime,
    *,
    token: str | None = None,
    reason: str = "ten sessions say so",
) -> DefinitionRevision:
    """Apply choices with a fresh preview, unless a token is given."""
    token = preview(definition, choices, now).token if token is None else token
    return apply_requirements(
        definition=definition, choices=choices, token=token, reason=reason, actor=actor, now=now
    )
