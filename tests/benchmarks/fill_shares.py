"""Fill usage, weights and shares of all people in a pool by bulk inserts."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.db import connection

from fairshare.arithmetic.units import UNITS_AN_HOUR
from fairshare.models import UsageBucket, UsageCheck
from fairshare.models.levels import ROOT, Level
from fairshare.selectors.trees import SubjectKey, organisation
from fairshare.services.calculation import calculate_pool
from fairshare.services.policies import save_policy, set_weights
from lcm.domain.actors import SYSTEM
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Membership, Project
from scheduling.models import Pool

# Days with usage, back from today.
AGES = (0, 1, 2, 3, 5, 8, 13)
AMOUNTS = ", ".join(RESOURCE_NAMES)
_BUCKETS = UsageBucket._meta.db_table
_INTO = f"INSERT INTO {_BUCKETS} (day, pool, level, subject_id, parent_id, {AMOUNTS})"
_SUMS = ", ".join(f"CAST(SUM(b.{name}) AS bigint)" for name in RESOURCE_NAMES)


def fill_shares(pool: Pool, now: datetime) -> None:
    """Create a different usage for each person, and a weight for every second project and domain."""
    days = [now.date() - timedelta(days=age) for age in AGES]
    _use(pool, days)
    _sum_up(pool)
    UsageCheck.objects.create(
        checked_at=now, first_day=days[-1], last_day=days[0], record_count=0, difference_count=0
    )
    save_policy(pool=pool, actor=SYSTEM, reason="filled", resource_weights={"gpu": 12.0})
    where = organisation()
    keys = [SubjectKey(Level.DOMAIN, pk, ROOT) for pk in where.domains]
    keys += [SubjectKey(Level.PROJECT, pk, domain) for pk, domain in where.domain_of.items()]
    set_weights(pool=pool, weights=dict.fromkeys(keys[::2], 2.0), actor=SYSTEM, reason="filled")
    calculate_pool(pool, now=now)


def _use(pool: Pool, days: list[date]) -> None:
    day = "DATE '{}'" if connection.vendor == "postgresql" else "'{}'"
    listed = ", ".join(f"({day.format(each)}, {number})" for number, each in enumerate(days, 1))
    amounts = ", ".join(f"(m.place %% 97 + 1) * d.number * {UNITS_AN_HOUR}" for _ in RESOURCE_NAMES)
    _run(
        f"WITH d (day, number) AS (VALUES {listed}), m AS (SELECT user_id, project_id,"
        f" ROW_NUMBER() OVER (ORDER BY id) AS place FROM {Membership._meta.db_table})"
        f" {_INTO} SELECT d.day, %s, 'user', m.user_id, m.project_id, {amounts} FROM m CROSS JOIN d",
        pool.name,
    )


def _sum_up(pool: Pool) -> None:
    """Sum usage of people by project, and of projects by domain."""
    _run(
        f"{_INTO} SELECT b.day, b.pool, 'project', p.id, p.domain_id, {_SUMS} FROM {_BUCKETS} b"
        f" JOIN {Project._meta.db_table} p ON p.id = b.parent_id"
        " WHERE b.pool = %s AND b.level = 'user' GROUP BY b.day, b.pool, p.id, p.domain_id",
        pool.name,
    )
    root = ROOT if connection.vendor == "postgresql" else ROOT.hex
    _run(
        f"{_INTO} SELECT b.day, b.pool, 'domain', b.parent_id, %s, {_SUMS} FROM {_BUCKETS} b"
        " WHERE b.pool = %s AND b.level = 'project' GROUP BY b.day, b.pool, b.parent_id",
        root,
        pool.name,
    )


def _run(query: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
