"""Fill hundreds of thousands of allocations, usage records and people by bulk inserts."""

from __future__ import annotations

import gc
import time
import uuid
from datetime import datetime, timedelta
from random import Random
from typing import Any

from django.db import connection

from fairshare.arithmetic.slices import DAY_MS, SLICE_MS, floor_slice, to_ms
from fairshare.models import Allocation, UsageBatch, UsageBucket
from lcm.domain.actors import SYSTEM
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Domain, Membership, Project, User
from scheduling.services.pools import create_pool
from tests.benchmarks.fill_capacity import insert

PROJECTS, DOMAINS = 500, 20
AMOUNTS = ", ".join(["100", "200", "400", *["0"] * (len(RESOURCE_NAMES) - 3)])
COLUMNS = ", ".join(RESOURCE_NAMES)


class UsageFiller:
    """Fills one pool, domains, projects and people; kernels belong to people in rotation."""

    def __init__(self, now: datetime, *, kernels: int, people: int) -> None:
        self.now, self.kernels, self.people = now, kernels, people
        self.chance = Random(5)
        self.old = 0
        self._postgresql = connection.vendor == "postgresql"
        self.pool = create_pool(name="bench", actor=SYSTEM)
        self.domains = [Domain(id=self._id(), name=f"domain-{n}") for n in range(DOMAINS)]
        self.projects = [
            Project(id=self._id(), name=f"project-{n}", domain=self.domains[n % DOMAINS])
            for n in range(PROJECTS)
        ]
        self.users = [User(id=self._id(), username=f"user-{n}", password="!") for n in range(people)]
        for rows in (self.domains, self.projects, self.users):
            insert(rows)

    def allocate(self, count: int = 0) -> None:
        """Create running kernels whose last slice is not recorded."""
        start = floor_slice(to_ms(self.now)) - SLICE_MS
        Allocation.objects.filter(settled=False).update(
            settled=True, ended_ms=start + SLICE_MS, cursor_ms=start + SLICE_MS
        )
        last = Allocation.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        rows = [self._allocation(last + 1 + n, n, start) for n in range(count or self.kernels)]
        insert(rows)
        self._follow_keys("fairshare_allocation")
        self._analyze()

    def records(self, count: int) -> None:
        """Create records of the last two days in batches of 100,000 that are not aggregated."""
        self._records(count, aggregated=False)

    def history(self, count: int) -> None:
        """Create old records that are aggregated."""
        if count > self.old:
            self._records(count - self.old, aggregated=True)
            self.old = count
        self._analyze()

    def bare_records(self) -> float:
        """Return the floor of recording in seconds: the same rows from a SELECT that only multiplies."""
        self._run("DROP TABLE IF EXISTS bare_record")
        self._like("bare_record", "fairshare_usagerecord")
        self._refer("bare_record", allocation_id="fairshare_allocation", batch_id="fairshare_usagebatch")
        batch = UsageBatch.objects.create(recorded_at=self.now).pk
        products = ", ".join(f"{name} * 300000" for name in COLUMNS.split(", "))
        begun = time.perf_counter()
        self._run(
            f"INSERT INTO bare_record (id, allocation_id, batch_id, period_start, period_ms, {COLUMNS})"
            f" SELECT id, id, {batch}, cursor_ms, 300000, {products}"
            " FROM fairshare_allocation WHERE NOT settled"
        )
        seconds = time.perf_counter() - begun
        self._run("DROP TABLE bare_record")
        UsageBatch.objects.filter(pk=batch).delete()
        return seconds

    def bare_buckets(self) -> None:
        """Return the floor of aggregation: one GROUP BY over the same records, upserted at one level."""
        self._run("DROP TABLE IF EXISTS bare_bucket")
        self._like("bare_bucket", "fairshare_usagebucket")
        names = COLUMNS.split(", ")
        sums = ", ".join(f"CAST(SUM(r.{name}) AS bigint)" for name in names)
        added = ", ".join(f"{name} = bare_bucket.{name} + excluded.{name}" for name in names)
        day = (
            "DATE '1970-01-01' + CAST(r.period_start / 86400000 AS integer)"
            if self._postgresql
            else "date(r.period_start / 1000, 'unixepoch')"
        )
        key = "" if self._postgresql else "NULL, "
        columns = "day, pool, level, subject_id, parent_id"
        self._run(
            f"INSERT INTO bare_bucket ({'' if self._postgresql else 'id, '}{columns}, {COLUMNS})"
            f" SELECT {key}{day}, a.pool, 'user', a.user_id, a.project_id, {sums}"
            " FROM fairshare_usagerecord r JOIN fairshare_allocation a ON a.id = r.allocation_id"
            " JOIN fairshare_usagebatch b ON b.id = r.batch_id WHERE b.aggregated_at IS NULL"
            f" GROUP BY {'1, 2, 4, 5' if self._postgresql else '2, 3, 5, 6'}"
            f" ON CONFLICT (pool, level, day, subject_id, parent_id) DO UPDATE SET {added}"
        )

    def people_with_usage(self) -> None:
        insert(
            [
                Membership(id=self._id(), user=user, project=self.projects[n % PROJECTS], joined_at=self.now)
                for n, user in enumerate(self.users)
            ]
        )
        UsageBucket.objects.all().delete() if not self._postgresql else self._run(
            "TRUNCATE fairshare_usagebucket"
        )
        rows = [
            UsageBucket(
                id=n * 3 + age + 1,
                day=self.now.date() - timedelta(days=age * 5),
                pool="bench",
                level="user",
                subject_id=user.pk,
                parent_id=self.projects[n % PROJECTS].pk,
                cpu_cores=self.chance.randrange(10**12),
                memory_gb=self.chance.randrange(10**12),
                storage_gb=0,
                gpu=0,
            )
            for n, user in enumerate(self.users)
            for age in range(3)
        ]
        insert(rows)
        self._follow_keys("fairshare_usagebucket")
        self._analyze()
        # Exempt the objects created here from the garbage collector; a worker would not have them.
        gc.freeze()

    def _records(self, count: int, *, aggregated: bool) -> None:
        size = 100_000 if self._postgresql else 10_000
        days = (2, 0) if not aggregated else (60, 30)
        first = floor_slice(to_ms(self.now)) - days[0] * DAY_MS
        dates = [(self.now - timedelta(days=each)).date() for each in days]
        for start in range(0, count, size):
            at = self.now - timedelta(days=days[1])
            batch = UsageBatch.objects.create(
                recorded_at=at,
                record_count=size,
                first_day=dates[0],
                last_day=dates[1],
                aggregated_at=at if aggregated else None,
            )
            # Allocations in rotation, one slice later with every batch.
            offset = first + (start + (self.old if aggregated else 0)) // size * SLICE_MS
            limit = min(size, count - start)
            self._run(
                "INSERT INTO fairshare_usagerecord"
                f" (allocation_id, batch_id, period_start, period_ms, {COLUMNS})"
                f" SELECT id, {batch.pk}, {offset}, 300000, 30000000, 60000000, 120000000, 0"
                f" FROM fairshare_allocation ORDER BY id LIMIT {limit}"
            )
        self._analyze()

    def _allocation(self, key: int, number: int, start: int) -> Any:
        project = self.projects[number % PROJECTS]
        return Allocation(
            id=key,
            kernel_id=self._id(),
            attempt=1,
            session_id=self._id(),
            user_id=self.users[number % self.people].pk,
            project_id=project.pk,
            domain_id=project.domain_id,
            pool="bench",
            started_ms=start,
            cursor_ms=start,
            cpu_cores=100,
            memory_gb=200,
            storage_gb=400,
            gpu=0,
        )

    def _refer(self, table: str, **columns: str) -> None:
        """Add deferred foreign keys, as Django creates them."""
        if self._postgresql:
            for column, other in columns.items():
                self._run(
                    f"ALTER TABLE {table} ADD FOREIGN KEY ({column}) REFERENCES {other} (id)"
                    " DEFERRABLE INITIALLY DEFERRED"
                )

    def _like(self, new: str, old: str) -> None:
        """Create an empty table with the same columns and indexes."""
        if self._postgresql:
            self._run(f"CREATE TABLE {new} (LIKE {old} INCLUDING ALL)")
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT sql FROM sqlite_master WHERE tbl_name = %s AND sql IS NOT NULL", [old])
            for (sql,) in cursor.fetchall():
                cursor.execute(sql.replace(f'"{old}"', f'"{new}"').replace('INDEX "', 'INDEX "bare_'))

    def _follow_keys(self, table: str) -> None:
        """Set the sequence behind explicitly inserted keys."""
        if self._postgresql:
            self._run(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"
            )

    def _analyze(self) -> None:
        self._run("ANALYZE")

    def _run(self, query: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(query)

    def _id(self) -> uuid.UUID:
        return uuid.UUID(int=self.chance.getrandbits(128), version=4)
