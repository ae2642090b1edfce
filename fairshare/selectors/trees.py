"""Input of a calculation: the tree of a pool with weights and decayed usage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from fairshare.arithmetic.factor import capacity_hours, decayed_days, decayed_hours, weighted
from fairshare.arithmetic.policy import PARENT, Policy, Weight
from fairshare.arithmetic.slices import DAY_MS, HOUR_MS, day_of, to_ms
from fairshare.arithmetic.tree import FairShareResult, Path, Subject, calculate
from fairshare.arithmetic.units import UNITS_AN_HOUR
from fairshare.models import (
    Allocation,
    FairShare,
    FairSharePolicy,
    UsageBatch,
    UsageBucket,
    UsageRecord,
)
from fairshare.models.levels import LEVELS, ROOT, Level
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Domain, Membership
from scheduling.models import Pool

NOTHING = (0.0,) * len(RESOURCE_NAMES)


class SubjectKey(NamedTuple):
    """Key of a tree row: a domain under the root, a project in a domain, a person in a project."""

    level: str
    subject: UUID
    parent: UUID


Weights = Mapping[SubjectKey, Weight]


@dataclass(frozen=True)
class TreeRules:
    """Policy and weights of a calculation."""

    policy: Policy
    weights: Weights


@dataclass(frozen=True)
class TreeInput:
    """All subjects of a pool, its capacity, and usage by subjects that no longer exist."""

    subjects: list[Subject]
    capacity: list[float]
    unattributed: float

    def results(self, policy: Policy) -> list[FairShareResult]:
        return calculate(self.subjects, policy, capacity=self.capacity, unattributed=self.unattributed)


def policy_of(pool: Pool) -> Policy:
    """Return the pool's own policy, or the defaults."""
    return _values(FairSharePolicy.objects.filter(pool=pool).order_by().first())


def policy_read_with(pool: Pool) -> Policy:
    """Return the policy of a pool from `with_policies`, as of the time it was read."""
    return _values(getattr(pool, "fair_share_policy", None))


def with_policies(pools: QuerySet[Pool]) -> QuerySet[Pool]:
    return pools.select_related("fair_share_policy")


def _values(own: FairSharePolicy | None) -> Policy:
    return own.values if own else Policy()


def window(policy: Policy, now: datetime) -> tuple[date, date]:
    """Return the first and last UTC day that count; the last is today."""
    today = now.astimezone(UTC).date()
    return today - timedelta(days=policy.lookback_days - 1), today


def key_of(path: Path) -> SubjectKey:
    subject, parent = path[-1], path[-2] if len(path) > 1 else ROOT
    assert isinstance(subject, UUID)
    assert isinstance(parent, UUID)
    return SubjectKey(LEVELS[len(path) - 1].value, subject, parent)


def weights_of(pool: Pool) -> dict[SubjectKey, Weight]:
    """Return the weights assigned to subjects."""
    rows = FairShare.objects.filter(Q(weight__isnull=False) | Q(uses_parent=True), pool=pool)
    return {
        SubjectKey(level, subject, parent): PARENT if uses_parent else weight
        for level, subject, parent, weight, uses_parent in rows.values_list(
            "level", "subject_id", "parent_id", "weight", "uses_parent"
        )
    }


class Organisation(NamedTuple):
    """All domains, and all projects with their domains."""

    domains: list[UUID]
    domain_of: dict[UUID, UUID]


def organisation() -> Organisation:
    rows = list(Domain.objects.order_by("pk", "projects__pk").values_list("pk", "projects__pk"))
    return Organisation(
        list(dict.fromkeys(pk for pk, _ in rows)), {project: pk for pk, project in rows if project}
    )


def tree_of(pool: Pool, policy: Policy, *, now: datetime) -> TreeInput:
    """Return the current tree."""
    rules = TreeRules(policy, weights_of(pool))
    return tree_from(pool, rules, organisation(), decayed_usage(pool, policy, now=now), now=now)


def trees_of(
    pool: Pool, before: TreeRules, after: TreeRules, *, now: datetime
) -> tuple[TreeInput, TreeInput]:
    """Return the tree under two sets of rules at the same time; common data is read once."""
    tree = organisation()
    usage = list(decayed_usage(pool, before.policy, now=now))
    has_same_decay = before.policy.decay == after.policy.decay
    usage_after = usage if has_same_decay else decayed_usage(pool, after.policy, now=now)
    return (
        tree_from(pool, before, tree, usage, now=now),
        tree_from(pool, after, tree, usage_after, now=now),
    )


def tree_from(
    pool: Pool, rules: TreeRules, tree: Organisation, usage: Iterable[PersonUsage], *, now: datetime
) -> TreeInput:
    policy, weights = rules.policy, rules.weights
    persons, former, unattributed = _persons(usage, tree.domain_of, weights, policy)
    subjects = [
        Subject((pk,), weights.get(SubjectKey(Level.DOMAIN, pk, ROOT)), NOTHING) for pk in tree.domains
    ]
    subjects += [
        Subject((domain, pk), weights.get(SubjectKey(Level.PROJECT, pk, domain)), former.get(pk, NOTHING))
        for pk, domain in tree.domain_of.items()
    ]
    return TreeInput(subjects + persons, _capacity(pool, policy, now), unattributed)


class PersonUsage(NamedTuple):
    """Hours by resource of a person in a project, and whether the person is still a member."""

    project: UUID
    user: UUID
    is_member: int
    amounts: Sequence[float]


def _persons(
    usage: Iterable[PersonUsage], domain_of: Mapping[UUID, UUID], weights: Weights, policy: Policy
) -> tuple[list[Subject], dict[UUID, Sequence[float]], float]:
    """Return the members; usage of former members counts for the project, or else only for the pool."""
    persons: list[Subject] = []
    former: dict[UUID, Sequence[float]] = {}
    unattributed = 0.0
    for project, rows in groupby(usage, key=itemgetter(0)):
        domain = domain_of.get(project)
        for _, user, is_member, amounts in rows:
            if domain is None:
                unattributed += weighted(amounts, policy.weights)
            elif is_member:
                own = weights.get(SubjectKey(Level.USER, user, project)) if weights else None
                persons.append(Subject((domain, project, user), own, amounts))
            else:
                before = former.get(project, NOTHING)
                former[project] = [a + b for a, b in zip(before, amounts, strict=True)]
    return persons, former, unattributed


def decayed_usage(pool: Pool, policy: Policy, *, now: datetime) -> Iterator[PersonUsage]:
    """Yield every member and every user with usage, project by project, in one query."""
    used, parameters = (_used_by_hour if policy.decays_by_hour else _used_by_day)(pool, policy, now)
    sums = ", ".join(f"SUM({name})" for name in RESOURCE_NAMES)
    nothing = ", ".join(f"0.0 AS {name}" for name in RESOURCE_NAMES)
    query = (
        f"{used} SELECT project_id, user_id, MAX(is_member), {sums}"  # noqa: S608
        f" FROM (SELECT project_id, user_id, 1 AS is_member, {nothing} FROM {Membership._meta.db_table}"
        f" UNION ALL SELECT project_id, user_id, 0, {', '.join(RESOURCE_NAMES)} FROM used) AS persons"
        " GROUP BY 1, 2 ORDER BY 1, 2"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        for project, user, is_member, *amounts in cursor.fetchall():
            if isinstance(project, str):
                project, user = UUID(project), UUID(user)
            yield PersonUsage(project, user, is_member, amounts)


def _used_by_day(pool: Pool, policy: Policy, now: datetime) -> tuple[str, list[Any]]:
    """Return the query for buckets, weighted by age in days."""
    first, today = window(policy, now)
    decays = decayed_days(policy.lookback_days, policy.half_life_days)
    postgresql = connection.vendor == "postgresql"
    day = "DATE '{}'" if postgresql else "'{}'"
    rows = ", ".join(
        f"({day.format(today - timedelta(days=age))}, {value!r})" for age, value in enumerate(decays)
    )
    query = (
        f"WITH d (day, factor) AS (VALUES {rows}), used AS"  # noqa: S608
        f" (SELECT b.parent_id AS project_id, b.subject_id AS user_id, {_decayed('b')}"
        f" FROM {UsageBucket._meta.db_table} b JOIN d ON d.day = b.day"
        " WHERE b.pool = %s AND b.level = %s AND b.day >= %s AND b.day <= %s GROUP BY 1, 2)"
    )
    bounds = [first, today] if postgresql else [first.isoformat(), today.isoformat()]
    return query, [pool.name, Level.USER.value, *bounds]


def _used_by_hour(pool: Pool, policy: Policy, now: datetime) -> tuple[str, list[Any]]:
    """Return the query for records, weighted by age in hours, because buckets only have days."""
    decays = decayed_hours(policy.lookback_days, policy.half_life_days)
    newest = to_ms(now) // HOUR_MS
    rows = ", ".join(f"({newest - age}, {value!r})" for age, value in enumerate(decays))
    batches = f"SELECT id FROM {UsageBatch._meta.db_table} WHERE removed_at IS NULL AND last_day >= %s"  # noqa: S608
    query = (
        f"WITH d (hour, factor) AS (VALUES {rows}), used AS"  # noqa: S608
        f" (SELECT a.project_id, a.user_id, {_decayed('r')} FROM {UsageRecord._meta.db_table} r"
        f" JOIN {Allocation._meta.db_table} a ON a.id = r.allocation_id"
        f" JOIN d ON d.hour = r.period_start / {HOUR_MS}"
        f" WHERE a.pool = %s AND r.batch_id IN ({batches}) GROUP BY 1, 2)"
    )
    first = day_of((newest - len(decays)) * HOUR_MS)
    return query, [pool.name, first if connection.vendor == "postgresql" else first.isoformat()]


def _decayed(table: str) -> str:
    """Return SQL that sums each resource in hours, with each row weighted by its age."""
    factor = "d.factor::double precision" if connection.vendor == "postgresql" else "d.factor"
    return ", ".join(
        f"SUM({table}.{name} * {factor}) / {float(UNITS_AN_HOUR)!r} AS {name}" for name in RESOURCE_NAMES
    )


def _capacity(pool: Pool, policy: Policy, now: datetime) -> list[float]:
    """Return the capacity of all slots of the pool in the window."""
    amounts = {name: float(getattr(pool, name)) * pool.max_slots for name in RESOURCE_NAMES}
    if policy.decays_by_hour:
        decays = decayed_hours(policy.lookback_days, policy.half_life_days)
        return capacity_hours(amounts, RESOURCE_NAMES, decays, to_ms(now) % HOUR_MS / HOUR_MS, 1.0)
    decays = decayed_days(policy.lookback_days, policy.half_life_days)
    return capacity_hours(amounts, RESOURCE_NAMES, decays, to_ms(now) % DAY_MS / DAY_MS)
