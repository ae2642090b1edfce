"""Observed demo sessions of recent weeks: some labs are over-provisioned, some under-provisioned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from fairshare.services.allocations import close_allocations, open_allocations
from lcm.cml.observation.model import LABLET_CONTROLLER, NodeObservation, ResourceObservation
from lcm.domain.actors import Actor
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import (
    Kernel,
    KernelStatus,
    LabletDefinition,
    LabletSession,
    Project,
    SessionTransition,
    User,
)
from lcm.services.kernels import build_kernels
from observations.services.observation_recorder import record_observation
from scheduling.models import PortAllocation

CONTROLLER = Actor(label="controller demo")
BEFORE_END = (S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING)
# Share of the required cores, memory and storage that a lab uses, and the number of observed sessions.
USE: dict[str, tuple[float, float, float, int]] = {
    "ccna-ospf-basics": (0.45, 0.55, 0.70, 26),
    "ccnp-bgp-policy": (0.80, 0.82, 0.80, 14),
    "dc-vxlan-fabric": (0.98, 1.06, 0.85, 8),
    "devnet-netconf-intro": (0.30, 0.78, 0.75, 12),
    "ipv6-transition": (0.60, 0.60, 0.60, 3),
}


def create_observed_sessions(
    *, definitions: Sequence[LabletDefinition], projects: Sequence[Project], rng: Random, now: datetime
) -> None:
    """Create sessions of the last three weeks that were observed before teardown."""
    people = {project: list(project.members.exclude(username="admin")) for project in projects}
    for definition in definitions:
        *shares, count = USE.get(definition.name, (0, 0, 0, 0))
        endings = [
            now - timedelta(hours=10) - timedelta(days=21) * (1 - (index + 1) / count)
            for index in range(int(count))
        ]
        sessions = past_sessions(definition, people, endings, rng)
        record_usage(sessions)
        for session in sessions:
            noise = [share * rng.lognormvariate(0, 0.07) for share in shares]
            observe(session, noise, at=session.ends_at, now=session.ends_at)
        end_sessions(sessions)


def make_drift(*, now: datetime) -> None:
    """Create port drift: a lab in which one port was moved, one added and one removed by hand."""
    held = PortAllocation.objects.filter(session__status=S.RUNNING, leaked=False).values_list("session_id")
    session = LabletSession.objects.filter(pk__in=held).order_by("created_at").first()
    if session is None:
        return
    ports = dict(session.port_allocations.order_by("port").values_list("name", "port"))
    _, *rest = ports
    observed = {name: ports[name] for name in rest} | {"extra-host_vnc": 7990}
    if rest:
        observed[rest[0]] = 7991
    observe(session, (0.6, 0.6, 0.7), at=now, now=now, ports=observed)


def past_sessions(
    definition: LabletDefinition,
    people: Mapping[Project, Sequence[User]],
    endings: Sequence[datetime],
    rng: Random,
) -> list[LabletSession]:
    """Create sessions of 90 minutes each in status COLLECTING, in bulk."""
    sessions = []
    for ended in endings:
        project = rng.choice(list(people))
        begun = ended - timedelta(minutes=90)
        session = LabletSession(
            definition=definition,
            revision=definition.current_revision,
            owner=rng.choice(people[project]),
            project=project,
            starts_at=begun,
            ends_at=ended,
            status=S.COLLECTING,
            status_since=ended,
            pool=definition.pool,
            created_at=begun,
        )
        sessions.append(session)
    LabletSession.objects.bulk_create(sessions)
    Kernel.objects.bulk_create([kernel for session in sessions for kernel in _kernels(session)])
    SessionTransition.objects.bulk_create([step for session in sessions for step in _steps(session)])
    return sessions


def _kernels(session: LabletSession) -> list[Kernel]:
    kernels = build_kernels(session)
    for kernel in kernels:
        kernel.status, kernel.started_at = KernelStatus.TERMINATED, session.starts_at
        kernel.terminated_at = session.ends_at
    return kernels


def _steps(session: LabletSession) -> list[SessionTransition]:
    at = {S.PENDING: session.starts_at, **dict.fromkeys(BEFORE_END, session.starts_at)}
    at |= dict.fromkeys((S.COLLECTING, S.STOPPING, S.TERMINATED), session.ends_at)
    before = ["", *at]
    return [
        SessionTransition(session=session, from_status=old, to_status=to, at=moment, actor="LCM", attempt=1)
        for old, (to, moment) in zip(before, at.items(), strict=False)
    ]


def observe(
    session: LabletSession,
    shares: Sequence[float],
    *,
    at: datetime,
    now: datetime,
    ports: Mapping[str, int] | None = None,
) -> None:
    """Record an observation in which the lab uses these shares of its requirements."""
    body: Any = _observation(session, shares, at=at, ports=ports).to_dict()
    record_observation(session_id=session.pk, body=body, actor=CONTROLLER, now=now)


def record_usage(sessions: Sequence[LabletSession]) -> None:
    """Record usage of the required resources while the sessions ran."""
    for session in sessions:
        open_allocations([session.pk], now=session.starts_at)
        close_allocations([session.pk], now=session.ends_at)


def end_sessions(sessions: Sequence[LabletSession]) -> None:
    keys = [session.pk for session in sessions]
    LabletSession.objects.filter(pk__in=keys).update(status=S.TERMINATED)


def _observation(
    session: LabletSession, shares: Sequence[float], *, at: datetime, ports: Mapping[str, int] | None
) -> ResourceObservation:
    first = session.definition.revisions.get(number=1)
    cpu, memory, storage = (float(share) for share in shares)
    nodes = [_node(node, cpu, memory, storage) for node in session.definition.nodes]
    return ResourceObservation(
        observed_at=at,
        observer=LABLET_CONTROLLER,
        controller="demo",
        lab_id=session.short_id,
        cml_version="2.10.0",
        total_cpu_cores=first.cpu_cores,
        total_memory_mb=int(first.memory_gb * 1024),
        total_storage_mb=int(first.storage_gb * 1024),
        used_cpu_cores=_hundredths(float(first.cpu_cores) * cpu),
        used_memory_mb=int(float(first.memory_gb) * 1024 * memory),
        used_storage_mb=int(float(first.storage_gb) * 1024 * storage),
        nodes=tuple(nodes),
        actual_node_count=len(nodes),
        observed_ports=None if ports is None else dict(ports),
    )


def _node(node: Mapping[str, Any], cpu: float, memory: float, storage: float) -> NodeObservation:
    cores, megabytes = Decimal(node["cpu_cores"]), int(node["memory_mb"])
    disk = int(Decimal(node["storage_gb"]) * 1024)
    return NodeObservation(
        node_id=node["id"],
        label=node["label"],
        node_definition=node["node_definition"],
        state="BOOTED",
        cpu_cores=cores,
        ram_mb=megabytes,
        storage_mb=disk,
        used_cpu_cores=_hundredths(float(cores) * cpu),
        used_memory_mb=int(megabytes * memory),
        used_storage_mb=int(disk * storage),
    )


def _hundredths(value: float) -> Decimal:
    return Decimal(value).quantize(Decimal("0.01"))
