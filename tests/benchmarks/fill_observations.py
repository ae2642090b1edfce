"""Fill sessions to observe, a definition with 100,000 sessions, and a long list of definitions."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from django.db import connection

from lcm.cml.observation.model import InterfaceObservation, NodeObservation, ResourceObservation
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import DefinitionRevision, LabletDefinition, LabletSession, SessionTransition
from observations.models import DefinitionAssessment, SessionObservation
from observations.services.aggregates import rebuild_definition
from scheduling.models import Phase, PortAllocation, Reservation, Slot, SlotState
from scheduling.services.pools import create_pool
from tests.benchmarks.fill_capacity import insert
from tests.support.factories import make_definition, make_person, make_project

NODES = 50
DEFINITIONS = 200
SLOTS = 400
WAY = (SessionStatus.SCHEDULED, SessionStatus.READY, SessionStatus.COLLECTING)


class ObservationFiller:
    """Fills one pool with workers, definitions and sessions of one owner."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.chance = random.Random(5)
        self.pool = create_pool(name="bench", actor=SYSTEM, cpu_cores=64, memory_gb=256, max_leases=50)
        self.owner = make_person("student")
        self.project = make_project("academy", "bench", self.owner)
        self.labs = [make_definition(f"lab-{n:04}", pool="bench", now=now) for n in range(DEFINITIONS)]
        self.slots = [self._slot(number) for number in range(1, SLOTS + 1)]
        insert(self.slots)

    def collecting(self, count: int) -> list[LabletSession]:
        """Create sessions in COLLECTING on workers, of all definitions."""
        sessions = [self._session(self.labs[n % DEFINITIONS], n) for n in range(count)]
        insert(sessions)
        insert([step for session in sessions for step in self._steps(session)])
        places = [self.slots[n % SLOTS] for n in range(count)]
        insert([self._claim(*pair) for pair in zip(sessions, places, strict=True)])
        insert(
            [
                port
                for n, pair in enumerate(zip(sessions, places, strict=True))
                for port in self._ports(n, *pair)
            ]
        )
        analyse()
        return sessions

    def popular(self, count: int) -> LabletDefinition:
        """Create a definition with this many observed sessions over half a year."""
        lab = make_definition("popular", pool="bench", now=self.now - timedelta(days=180))
        sessions = [self._session(lab, n, spread=180) for n in range(count)]
        insert(sessions)
        insert([self._observed(session) for session in sessions])
        analyse()
        rebuild_definition(definition=lab, now=self.now)
        return lab

    def many(self, count: int) -> None:
        """Create a long list of definitions."""
        lab = self.labs[0]
        labs, revisions, assessments = [], [], []
        for n in range(count):
            key, revision = uuid4(), uuid4()
            labs.append(
                LabletDefinition(
                    id=key,
                    name=f"many-{n:05}",
                    status="active",
                    topology_yaml="",
                    topology_hash=lab.topology_hash,
                    nodes=lab.nodes,
                    node_count=3,
                    pool="bench",
                )
            )
            revisions.append(self._revision(key, revision))
            assessments.append(self._assessment(key))
        insert(labs)
        insert(revisions)
        insert(assessments)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE lcm_labletdefinition SET current_revision_id = (SELECT r.id "
                "FROM lcm_definitionrevision r WHERE r.definition_id = lcm_labletdefinition.id) "
                "WHERE current_revision_id IS NULL"
            )
        analyse()

    def _slot(self, number: int) -> Slot:
        return Slot(
            pool=self.pool,
            number=number,
            state=SlotState.READY,
            lease_count=5,
            max_leases=50,
            cpu_cores=64,
            memory_gb=256,
            storage_gb=2000,
        )

    def _session(self, lab: LabletDefinition, number: int, spread: int = 0) -> LabletSession:
        ended = self.now - timedelta(seconds=self.chance.randint(0, spread * 86_400) if spread else number)
        begun = ended - timedelta(hours=1)
        return LabletSession(
            id=UUID(int=self.chance.getrandbits(128), version=4),
            definition=lab,
            revision=lab.current_revision,
            owner=self.owner,
            project=self.project,
            starts_at=begun,
            ends_at=begun + timedelta(hours=2),
            status=SessionStatus.TERMINATED if spread else SessionStatus.COLLECTING,
            status_since=ended,
            pool="bench",
            created_at=begun,
            observation_count=1 if spread else 0,
            observed_at=ended if spread else None,
        )

    def _steps(self, session: LabletSession) -> list[SessionTransition]:
        return [
            SessionTransition(session=session, to_status=step, at=session.created_at, actor="LCM", attempt=1)
            for step in WAY
        ]

    def _claim(self, session: LabletSession, slot: Slot) -> Reservation:
        amounts: dict[str, Any] = session.revision.requirements
        return Reservation(
            pool=self.pool,
            session=session,
            slot=slot,
            phase=Phase.READY,
            created_at=session.created_at,
            **amounts,
        )

    def _ports(self, number: int, session: LabletSession, slot: Slot) -> list[PortAllocation]:
        first = 2000 + 2 * (number // SLOTS)
        return [
            PortAllocation(slot=slot, session=session, name=f"r{index}_serial", port=first + index)
            for index in (0, 1)
        ]

    def _observed(self, session: LabletSession) -> SessionObservation:
        def some(middle: float) -> Decimal:
            return Decimal(self.chance.lognormvariate(0, 0.15) * middle).quantize(Decimal("0.01"))

        used = {"peak_cpu_used": some(2), "peak_memory_used": some(2.4), "peak_storage_used": some(5)}
        held = {"peak_cpu_allocated": Decimal(4), "peak_memory_allocated": Decimal("3.5")}
        return SessionObservation(
            session=session,
            definition=session.definition,
            revision=session.revision,
            epoch=session.definition.topology_hash,
            observed_at=session.status_since,
            recorded_at=session.status_since,
            observed_resources={"nodes": []},
            observed_ports={},
            is_sample=True,
            reached_collecting=True,
            booted_seconds=3600,
            held_seconds=3600,
            peak_storage_allocated=Decimal(7),
            **used,
            **held,
        )

    def _revision(self, definition: UUID, key: UUID) -> DefinitionRevision:
        return DefinitionRevision(
            id=key,
            definition_id=definition,
            number=1,
            cpu_cores=4,
            memory_gb=Decimal("3.5"),
            storage_gb=7,
            basis="imported",
            outcome=None,
            actor="LCM",
            created_at=self.now,
        )

    def _assessment(self, definition: UUID) -> DefinitionAssessment:
        chance = self.chance
        over = chance.random() < 0.3
        return DefinitionAssessment(
            definition_id=definition,
            provisioning="over_provisioned" if over else "right_sized",
            n=chance.randint(5, 500),
            last_observed_at=self.now,
            recommended_cpu_cores=Decimal("2.5"),
            recommended_memory_gb=Decimal("2.5"),
            recommended_storage_gb=6,
            flags={"cpu_cores": "over"} if over else {},
            sources=dict.fromkeys(("cpu_cores", "memory_gb", "storage_gb"), "used"),
            waste_cpu=Decimal(chance.randint(1, 9000)),
            waste_memory=Decimal(chance.randint(1, 9000)),
            priority=Decimal(chance.randint(1, 9000)) if over else Decimal(0),
        )


def body_of(at: datetime, ports: dict[str, int], chance: random.Random) -> dict[str, Any]:
    """Return the observation of a lab of 50 nodes with two interfaces each."""
    nodes = tuple(
        NodeObservation(
            node_id=f"n{n}",
            label=f"node-{n}",
            node_definition="iosv",
            state="BOOTED",
            cpus=1,
            cpu_cores=Decimal("0.50"),
            ram_mb=768,
            storage_mb=2048,
            cpu_usage_percent=Decimal("41.50"),
            used_cpu_cores=Decimal("0.21"),
            used_memory_mb=512,
            used_storage_mb=900,
            tags=("serial:5041",),
            interfaces=tuple(
                InterfaceObservation(
                    interface_id=f"i{n}-{i}",
                    label=f"GigabitEthernet0/{i}",
                    slot=i,
                    state="STARTED",
                    is_connected=True,
                    mac_address="52:54:00:00:00:01",
                    ip4=("10.0.0.1",),
                    ip6=(),
                )
                for i in (0, 1)
            ),
        )
        for n in range(NODES)
    )
    made = ResourceObservation(
        observed_at=at,
        observer="lablet-controller",
        controller="bench",
        lab_id="lab",
        cml_version="2.10.0",
        total_cpu_cores=Decimal(25),
        total_memory_mb=38_400,
        total_storage_mb=102_400,
        used_cpu_cores=Decimal(chance.randint(150, 300)) / 100,
        used_memory_mb=chance.randint(1_500, 3_500),
        used_storage_mb=chance.randint(3_000, 7_000),
        nodes=nodes,
        actual_node_count=NODES,
        node_definitions_used=("iosv",),
        observed_ports=ports,
    )
    return made.to_dict()  # type: ignore[return-value]


def analyse() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "postgresql" else "PRAGMA optimize=0x10002")
