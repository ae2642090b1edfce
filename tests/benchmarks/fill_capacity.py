"""Fill a pool with many slots and waiting sessions, by bulk inserts."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, models
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import ChangeLog, Kernel, LabletSession, Priority, SessionTransition
from lcm.models.sessions import KernelStatus
from lcm.services.kernels import build_kernels
from scheduling.models import (
    LaunchAttempt,
    Phase,
    Pool,
    PortAllocation,
    Reservation,
    Slot,
    SlotState,
    TickRun,
)
from scheduling.services.pools import create_pool
from tests.support.factories import make_definition, make_person, make_project

# Initial state of the slots, in rotation: (state, has a session).
EMPTY, READY, FULL = (SlotState.EMPTY, False), (SlotState.READY, False), (SlotState.READY, True)
CASES: dict[str, tuple[tuple[SlotState, bool], ...]] = {
    "EMPTY": (EMPTY,),
    "READY": (READY,),
    "READY but full": (FULL,),
    "mixed": (EMPTY, READY, FULL, FULL),
}
OLD = (
    TickRun, LaunchAttempt, PortAllocation, Reservation, SessionTransition, Kernel, LabletSession, Slot,
    ChangeLog,
)  # fmt: skip


class CapacityFiller:
    """Fills one pool repeatedly; each slot has capacity for one lab of three nodes and two ports."""

    def __init__(self, name: str = "bench") -> None:
        self.chance = random.Random(7)
        self.now = timezone.now()
        self.pool = create_pool(name=name, actor=SYSTEM, cpu_cores=4)
        self.owner = make_person(f"{name}-student")
        self.project = make_project("academy", name, self.owner)
        self.lab = make_definition(name, pool=name, now=self.now)
        self.revision = self.lab.current_revision
        assert self.revision is not None
        one = self._session(SessionStatus.PENDING)
        amounts = ("node_label", "node_definition", *RESOURCE_NAMES)
        self.parts = [{name: getattr(each, name) for name in amounts} for each in build_kernels(one)]
        self.port_names = [port["name"] for port in self.revision.port_template]

    def fill(self, case: str, *, pending: int, slots: int, room_for: int = 1) -> Pool:
        """Create slots with capacity for this many labs each, and waiting labs."""
        self._empty()
        Pool.objects.filter(pk=self.pool.pk).update(max_slots=slots)
        kinds = CASES[case]
        held = [self._slot(number, *kinds[number % len(kinds)]) for number in range(slots)]
        for slot in held:
            slot.cpu_cores *= room_for
        insert(held)
        sessions = [self._session(SessionStatus.PENDING) for _ in range(pending)]
        busy = [slot for slot in held if slot.lease_count]
        running = [self._session(SessionStatus.RUNNING) for _ in busy]
        insert([*sessions, *running])
        insert([kernel for session in (*sessions, *running) for kernel in self._kernels(session)])
        claims = [self._claim(session) for session in sessions]
        claims += [self._claim(session, slot) for session, slot in zip(running, busy, strict=True)]
        insert(claims)
        insert(
            [
                PortAllocation(slot=slot, session=session, port=2000 + index, name=name)
                for session, slot in zip(running, busy, strict=True)
                for index, name in enumerate(self.port_names)
            ]
        )
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE" if connection.vendor == "postgresql" else "PRAGMA optimize=0x10002")
        return Pool.objects.get(pk=self.pool.pk)

    def _empty(self) -> None:
        tables = [model._meta.db_table for model in OLD]
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute(f"TRUNCATE {', '.join(tables)} CASCADE")
            else:
                for table in tables:
                    cursor.execute(f"DELETE FROM {table}")

    def _slot(self, number: int, state: SlotState, busy: bool) -> Slot:
        ready = state == SlotState.READY
        return Slot(
            id=self._id(),
            pool=self.pool,
            number=number + 1,
            state=state,
            instance_id=f"i-{number}" if ready else "",
            idle_since=self.now if ready else None,
            lease_count=int(busy),
            max_leases=10,
            cpu_cores=4,
            memory_gb=64,
            storage_gb=500,
        )

    def _session(self, status: SessionStatus) -> LabletSession:
        at = self.now - timedelta(seconds=self.chance.randint(0, 86_400))
        return LabletSession(
            id=self._id(),
            definition=self.lab,
            revision=self.revision,
            owner=self.owner,
            project=self.project,
            priority=self.chance.choice(Priority.values),
            starts_at=self.now,
            ends_at=self.now + timedelta(hours=2),
            status=status,
            status_since=at,
            pool="bench",
            created_at=at,
        )

    def _kernels(self, session: LabletSession) -> list[Kernel]:
        running = session.status == SessionStatus.RUNNING
        status = KernelStatus.RUNNING if running else KernelStatus.PENDING
        started_at = self.now if running else None
        return [
            Kernel(id=self._id(), session=session, status=status, started_at=started_at, **part)
            for part in self.parts
        ]

    def _claim(self, session: LabletSession, slot: Slot | None = None) -> Reservation:
        amounts: dict[str, Any] = session.revision.requirements
        return Reservation(
            id=self._id(),
            pool=self.pool,
            session=session,
            slot=slot,
            phase=Phase.READY if slot else Phase.PENDING,
            port_names=self.port_names,
            priority=session.priority,
            created_at=session.created_at,
            assigned_at=self.now if slot else None,
            **amounts,
        )

    def _id(self) -> UUID:
        return UUID(int=self.chance.getrandbits(128), version=4)


def insert(rows: Sequence[models.Model]) -> None:
    """Insert many rows of one model."""
    if not rows:
        return
    model = type(rows[0])
    if connection.vendor != "postgresql":
        model._default_manager.bulk_create(rows, batch_size=2_000)
        return
    fields = list(model._meta.concrete_fields)
    columns = ", ".join(f'"{field.column}"' for field in fields)
    with (
        connection.cursor() as cursor,
        cursor.copy(f'COPY "{model._meta.db_table}" ({columns}) FROM STDIN') as copy,
    ):
        for row in rows:
            values = [field.pre_save(row, True) for field in fields]
            copy.write_row(
                [
                    field.get_db_prep_save(value, connection)
                    if isinstance(field, models.JSONField)
                    else value
                    for field, value in zip(fields, values, strict=True)
                ]
            )
