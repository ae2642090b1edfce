"""Calculation of a pool's fair share."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from fairshare.arithmetic.policy import Policy
from fairshare.arithmetic.tree import FairShareResult, compared_factors
from fairshare.models import FairShare, FairShareCalculation
from fairshare.models.levels import Level
from fairshare.models.shares import RESULT_FIELDS
from fairshare.selectors.trees import key_of, policy_of, tree_of, window
from lcm.models import Domain, Membership, Project
from scheduling.models import Pool
from scheduling.placement.framework.garbage_collector import garbage_collector_paused

RETENTION = timedelta(days=30)
_KEY = ("pool_id", "level", "subject_id", "parent_id")


@garbage_collector_paused()
def calculate_pool(pool: Pool, *, now: datetime) -> FairShareCalculation:
    """Calculate a pool and write all of its rows together with the calculation."""
    started = time.perf_counter()
    policy = policy_of(pool)
    results = factors_of(pool, policy, now=now)
    first, last = window(policy, now)
    with transaction.atomic():
        write_results(pool, results, policy)
        _delete_removed(pool)
        FairShareCalculation.objects.filter(pool=pool, at__lt=now - RETENTION).delete()
        return FairShareCalculation.objects.create(
            pool=pool,
            at=now,
            first_day=first,
            last_day=last,
            policy=dataclasses.asdict(policy),
            duration_ms=round((time.perf_counter() - started) * 1000),
            subject_count=len(results),
        )


@garbage_collector_paused()
def factors_of(pool: Pool, policy: Policy, *, now: datetime) -> list[FairShareResult]:
    """Return the fair share of all subjects in a pool by the stored rules."""
    return tree_of(pool, policy, now=now).results(policy)


def write_results(pool: Pool, results: Sequence[FairShareResult], policy: Policy) -> None:
    """Write the row of every subject, creating missing ones; weights stay unchanged."""
    rows = (_row(pool, result, policy) for result in results)
    if connection.vendor == "postgresql":
        _copy(rows)
    else:
        _insert_many(rows)


def _row(pool: Pool, result: FairShareResult, policy: Policy) -> tuple[Any, ...]:
    return (
        pool.pk, *key_of(result.path), result.weight, result.share, result.norm_share, *result.usage,
        result.weighted_usage, result.actual, result.effective, result.factor, result.ratio,
        *compared_factors(result, policy), result.rank,
    )  # fmt: skip


_TABLE = FairShare._meta.db_table
_COLUMNS = ", ".join((*_KEY, *RESULT_FIELDS))
_UPSERT = f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in RESULT_FIELDS
)


def _copy(rows: Iterator[tuple[Any, ...]]) -> None:
    """Stream rows into a temporary table, then upsert them in one statement, which is fastest."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.new_shares")
        cursor.execute(
            f"CREATE TEMPORARY TABLE new_shares ON COMMIT DROP AS SELECT {_COLUMNS} FROM {_TABLE} LIMIT 0"  # noqa: S608
        )
        with cursor.copy(f"COPY new_shares ({_COLUMNS}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute(
            f"INSERT INTO {_TABLE} ({_COLUMNS}) SELECT {_COLUMNS} FROM new_shares {_UPSERT}"  # noqa: S608
        )


def _insert_many(rows: Iterator[tuple[Any, ...]]) -> None:
    places = ", ".join(["%s"] * (len(_KEY) + len(RESULT_FIELDS)))
    query = f"INSERT INTO {_TABLE} ({_COLUMNS}) VALUES ({places}) {_UPSERT}"  # noqa: S608
    plain = [
        tuple(getattr(value, "hex", None) if index in (0, 2, 3) else value for index, value in enumerate(row))
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.executemany(query, plain)


def _delete_removed(pool: Pool) -> None:
    """Delete rows of removed domains, projects and members."""
    rows = FairShare.objects.filter(pool=pool)
    for level, existing in _existing_subjects():
        rows.filter(~Exists(existing), level=level).delete()


def _existing_subjects() -> Iterator[tuple[Level, QuerySet[Any]]]:
    subject, parent = OuterRef("subject_id"), OuterRef("parent_id")
    yield Level.USER, Membership.objects.filter(user_id=subject, project_id=parent)
    yield Level.PROJECT, Project.objects.filter(pk=subject, domain_id=parent)
    yield Level.DOMAIN, Domain.objects.filter(pk=subject)
