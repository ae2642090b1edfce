"""Fill a full-size fleet by bulk inserts: people, shares, definitions, slots, sessions and queue."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Model

from lcm.db.bulk import insert_rows, update_rows
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import Job, JobState, LabletDefinition, LabletSession, TokenKind
from lcm.services import import_job
from lcm.services.tokens import create_token
from observations.models import DriftReview
from observations.models.aggregates import DefinitionAssessment, ProvisioningClass
from scheduling.models import Phase, Pool, QueueOrder, Reservation, Slot, SlotState, TickRun
from scheduling.services.pools import create_pool
from tests.benchmarks.fill_sessions import Filler
from tests.benchmarks.fill_shares import fill_shares

POOLS = 5
STATES = [SlotState.READY] * 90 + [SlotState.BOOTING] * 5 + [SlotState.ERROR] + [SlotState.EMPTY] * 4
TICKS = 5_000
# Pool of the filler's sessions.
SHARED = ("cml-eu", "cml-us")


@dataclass(frozen=True)
class Size:
    sessions: int
    users: int
    slots: int
    definitions: int

    def scaled(self, share: float) -> Size:
        everything = (self.sessions, self.users, self.slots, self.definitions)
        return Size(*(max(round(each * share), 20) for each in everything))


def fill_fleet(size: Size) -> None:
    chance = random.Random(5)
    filler = Filler(users=size.users)
    now = filler.now
    filler.definitions += _definitions(size.definitions, chance, now)
    pools = [create_pool(name=f"pool-{number}", actor=SYSTEM, max_slots=2_000) for number in range(POOLS)]
    _slots(pools, size.slots, chance, now)
    filler.fill(size.sessions)
    _queue(pools, chance, now)
    _ticks(pools, chance, now)
    _drift(filler.definitions, now)
    _jobs_and_tokens(now)
    for pool in Pool.objects.filter(name__in=SHARED):
        fill_shares(pool, now)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "postgresql" else "PRAGMA optimize=0x10002")


def _definitions(count: int, chance: random.Random, now: datetime) -> list[tuple[UUID, UUID]]:
    """Copy a demo definition many times, with a revision and an assessment each."""
    first = LabletDefinition.objects.select_related("current_revision").first()
    assert first is not None
    assert first.current_revision is not None
    keys = [(_uuid(chance), _uuid(chance)) for _ in range(count)]
    _copies(
        first,
        [
            {
                "id": key,
                "name": f"lab-{number:05}",
                "current_revision_id": None,
                "needs_review": number % 50 == 0,
                "review_since": None if number % 50 else now - timedelta(hours=number % 99),
            }
            for number, (key, _) in enumerate(keys)
        ],
    )
    _copies(first.current_revision, [{"id": revision, "definition_id": key} for key, revision in keys])
    update_rows(LabletDefinition, ["current_revision"], keys)
    DefinitionAssessment.objects.bulk_create(
        [
            DefinitionAssessment(
                definition_id=key,
                provisioning=chance.choice(ProvisioningClass.values),
                priority=Decimal(chance.randint(0, 9999)),
                n=9,
            )
            for key, _ in keys
        ],
        batch_size=2_000,
    )
    return keys


def _copies(row: Model, changes: list[dict[str, Any]]) -> None:
    fields = [field.attname for field in row._meta.concrete_fields]
    values = {name: getattr(row, name) for name in fields}
    names = [field.name for field in row._meta.concrete_fields]
    rows = [[{**values, **change}[name] for name in fields] for change in changes]
    insert_rows(type(row), names, rows)


def _slots(pools: list[Pool], count: int, chance: random.Random, now: datetime) -> None:
    Slot.objects.bulk_create(
        [
            Slot(
                pool=pools[number % POOLS],
                number=number // POOLS + 1,
                state=chance.choice(STATES),
                instance_id=f"i-{number:08x}",
                max_leases=10,
                cpu_cores=48,
                memory_gb=192,
                storage_gb=2000,
                last_state_change=now - timedelta(hours=chance.randint(1, 99)),
                last_heartbeat=now,
            )
            for number in range(count)
        ],
        batch_size=1_000,
    )


def _queue(pools: list[Pool], chance: random.Random, now: datetime) -> None:
    """Create a reservation for each waiting or running session, and the queue order of a cycle."""
    ready = list(Slot.objects.filter(state=SlotState.READY).values_list("pk", "pool_id"))
    claims = []
    rows = LabletSession.objects.filter(status__in=(SessionStatus.PENDING, SessionStatus.RUNNING))
    for key, status, created in rows.values_list("pk", "status", "created_at"):
        slot, pool = chance.choice(ready)
        running = status == SessionStatus.RUNNING
        claims.append(
            Reservation(
                id=_uuid(chance), session_id=key, pool_id=pool if running else chance.choice(pools).pk,
                slot_id=slot if running else None, phase=Phase.READY if running else Phase.PENDING,
                cpu_cores=4, memory_gb=8, storage_gb=20, created_at=created,
            )
        )  # fmt: skip
    Reservation.objects.bulk_create(claims, batch_size=2_000)
    waiting = [claim for claim in claims if claim.phase == Phase.PENDING]
    chance.shuffle(waiting)
    for pool in pools:
        ids = b"".join(claim.pk.bytes for claim in waiting if claim.pool_id == pool.pk)
        QueueOrder.objects.create(pool=pool, at=now, ids=ids)


def _ticks(pools: list[Pool], chance: random.Random, now: datetime) -> None:
    TickRun.objects.bulk_create(
        [
            TickRun(
                pool=pools[number % POOLS],
                started_at=now - timedelta(seconds=2 * number),
                duration_ms=chance.randint(20, 400),
                counts={"placed": 3},
            )
            for number in range(TICKS)
        ],
        batch_size=1_000,
    )


def _uuid(chance: random.Random) -> UUID:
    return UUID(int=chance.getrandbits(128), version=4)


def _drift(definitions: list[tuple[UUID, UUID]], now: datetime) -> None:
    """Create a leaked port in every tenth definition."""
    DriftReview.objects.bulk_create(
        [
            DriftReview(
                definition_id=key, fingerprint="r1_serial", kind="extra", name="r1_serial", first_seen=now,
                last_seen=now,
            )
            for key, _ in definitions[::10]
        ],
        batch_size=2_000,
    )  # fmt: skip


def _jobs_and_tokens(now: datetime) -> None:
    for number in range(100):
        Job.objects.create(
            kind=import_job.JOB_KIND,
            title=f"Import {number}",
            state=JobState.DONE,
            actor="admin",
            created_at=now,
            last_progress_at=now,
            finished_at=now,
        )
        create_token(
            name=f"controller-{number}", kind=TokenKind.CONTROLLER, scopes=["pool:pool-0"],
            expires_at=now + timedelta(days=90), actor=SYSTEM, now=now,
        )  # fmt: skip
