"""What the demo's sessions of the last weeks used: some labs ask for too much, some for too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from lcm.actors import SYSTEM, Actor
from lcm.cml.observation import NodeObservation, ResourceObservation
from lcm.lifecycle import SessionStatus as S
from lcm.models import LabletDefinition, LabletSession, Project, User
from lcm.services.sessions import create_session, transition_session
from observations.services.recording import record_observation
from scheduling.models import PortAllocation

CONTROLLER = Actor(label="controller demo")
BEFORE_END = (S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING)
# Of what it asks for, a lab uses this share of cores, memory and storage; and how many were observed.
USE: dict[str, tuple[float, float, float, int]] = {
    "ccna-ospf-basics": (0.45, 0.55, 0.70, 26),
    "ccnp-bgp-policy": (0.80, 0.82, 0.80, 14),
    "dc-vxlan-fabric": (0.98, 1.06, 0.85, 8),
    "devnet-netconf-intro": (0.30, 0.78, 0.75, 12),
    "ipv6-transition": (0.60, 0.60, 0.60, 3),
}


def make_evidence(
    *, definitions: Sequence[LabletDefinition], projects: Sequence[Project], chance: Random, now: datetime
) -> None:
    """Sessions of the last three weeks that were observed before their labs were torn down."""
    for definition in definitions:
        *shares, count = USE.get(definition.name, (0, 0, 0, 0))
        for index in range(int(count)):
            project = chance.choice(projects)
            owner = chance.choice(list(project.members.exclude(username="admin")))
            ended = now - timedelta(hours=10) - timedelta(days=21) * (1 - (index + 1) / count)
            noise = [share * chance.lognormvariate(0, 0.07) for share in shares]
            session = run_session(definition, project, owner, ended=ended)
            observe(session, noise, at=ended, now=ended)
            end_session(session, now=ended)


def make_drift(*, now: datetime) -> None:
    """A lab that someone edited by hand: one port moved, one came, one is gone."""
    held = PortAllocation.objects.filter(session__status=S.RUNNING, leaked=False).values_list("session_id")
    session = LabletSession.objects.filter(pk__in=held).order_by("created_at").first()
    if session is None:
        return
    ports = dict(session.port_allocations.order_by("port").values_list("name", "port"))
    _, *rest = ports
    seen = {name: ports[name] for name in rest} | {"extra-host_vnc": 7990}
    if rest:
        seen[rest[0]] = 7991
    observe(session, (0.6, 0.6, 0.7), at=now, now=now, ports=seen)


def run_session(
    definition: LabletDefinition, project: Project, owner: User, *, ended: datetime
) -> LabletSession:
    """A session that ran for an hour and a half and is being collected."""
    begun = ended - timedelta(minutes=90)
    session = create_session(
        definition=definition,
        owner=owner,
        project=project,
        starts_at=begun,
        ends_at=ended,
        actor=SYSTEM,
        now=begun,
    )
    for step in BEFORE_END:
        transition_session(session=session, to=step, actor=SYSTEM, now=begun)
    transition_session(session=session, to=S.COLLECTING, actor=SYSTEM, now=ended)
    return session


def observe(
    session: LabletSession,
    shares: Sequence[float],
    *,
    at: datetime,
    now: datetime,
    ports: Mapping[str, int] | None = None,
) -> None:
    """Record what a controller would have seen when the lab used these shares of what it asks for."""
    body: Any = _seen(session, shares, at=at, ports=ports).to_dict()
    record_observation(session=session, body=body, actor=CONTROLLER, now=now)


def end_session(session: LabletSession, *, now: datetime) -> None:
    for step in (S.STOPPING, S.TERMINATED):
        transition_session(session=session, to=step, actor=SYSTEM, now=now)


def _seen(
    session: LabletSession, shares: Sequence[float], *, at: datetime, ports: Mapping[str, int] | None
) -> ResourceObservation:
    first = session.definition.revisions.get(number=1)
    cpu, memory, storage = (float(share) for share in shares)
    nodes = [_node(node, cpu, memory, storage) for node in session.definition.nodes]
    return ResourceObservation(
        observed_at=at,
        observer="demo",
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
        id=node["id"],
        label=node["label"],
        node_definition=node["node_definition"],
        state="BOOTED",
        cpu_cores=cores,
        memory_mb=megabytes,
        storage_mb=disk,
        used_cpu_cores=_hundredths(float(cores) * cpu),
        used_memory_mb=int(megabytes * memory),
        used_storage_mb=int(disk * storage),
    )


def _hundredths(value: float) -> Decimal:
    return Decimal(value).quantize(Decimal("0.01"))
