"""What a calculation is made of: the tree of a pool with weights and decayed usage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from fairshare.factor import capacity_hours, decayed_days, weighted
from fairshare.levels import LEVELS, ROOT, Level
from fairshare.models import FairShare, FairSharePolicy, UsageBucket
from fairshare.policy import Policy
from fairshare.slices import DAY_MS, to_ms
from fairshare.tree import Path, Result, Subject, calculate
from fairshare.units import RESOURCES, UNITS_AN_HOUR
from lcm.models import Domain, Membership
from scheduling.models import Pool

NOTHING = (0.0,) * len(RESOURCES)


class SubjectKey(NamedTuple):
    """A row of the tree: a domain under the root, a project in a domain, a person in a project."""

    level: str
    subject: UUID
    parent: UUID


Weights = Mapping[SubjectKey, float | None]


@dataclass(frozen=True)
class Rules:
    """What a pool is calculated by."""

    policy: Policy
    weights: Weights


@dataclass(frozen=True)
class TreeInput:
    """Everybody in a pool, what could have been used, and what was used by nobody who is still there."""

    subjects: list[Subject]
    capacity: list[float]
    elsewhere: float

    def results(self, policy: Policy) -> list[Result]:
        return calculate(self.subjects, policy, capacity=self.capacity, elsewhere=self.elsewhere)


def policy_of(pool: Pool) -> Policy:
    """The pool's own policy, or the defaults."""
    return _values(FairSharePolicy.objects.filter(pool=pool).order_by().first())


def policy_read_with(pool: Pool) -> Policy:
    """The same for a pool of `with_policies`; what was saved since it was read is not seen."""
    return _values(getattr(pool, "fair_share_policy", None))


def with_policies(pools: QuerySet[Pool]) -> QuerySet[Pool]:
    return pools.select_related("fair_share_policy")


def _values(own: FairSharePolicy | None) -> Policy:
    return own.values if own else Policy()


def window(policy: Policy, now: datetime) -> tuple[date, date]:
    """The UTC days that count: the last so many, today among them."""
    today = now.astimezone(UTC).date()
    return today - timedelta(days=policy.lookback_days - 1), today


def key_of(path: Path) -> SubjectKey:
    subject, parent = path[-1], path[-2] if len(path) > 1 else ROOT
    assert isinstance(subject, UUID)
    assert isinstance(parent, UUID)
    return SubjectKey(LEVELS[len(path) - 1].value, subject, parent)


def weights_of(pool: Pool) -> dict[SubjectKey, float | None]:
    rows = FairShare.objects.filter(pool=pool, weight__isnull=False)
    return {
        SubjectKey(level, subject, parent): weight
        for level, subject, parent, weight in rows.values_list("level", "subject_id", "parent_id", "weight")
    }


class Places(NamedTuple):
    """Where people can be: every domain, and every project with its domain."""

    domains: list[UUID]
    domain_of: dict[UUID, UUID]


def places() -> Places:
    rows = list(Domain.objects.order_by("pk", "projects__pk").values_list("pk", "projects__pk"))
    return Places(list(dict.fromkeys(pk for pk, _ in rows)), {project: pk for pk, project in rows if project})


def tree_of(pool: Pool, policy: Policy, *, now: datetime) -> TreeInput:
    """The tree as it is now."""
    rules = Rules(policy, weights_of(pool))
    return tree_from(pool, rules, places(), decayed_usage(pool, policy, now=now), now=now)


def trees_of(pool: Pool, before: Rules, after: Rules, *, now: datetime) -> tuple[TreeInput, TreeInput]:
    """The tree by two rules at the same moment; what they have in common is read once."""
    where = places()
    usage = list(decayed_usage(pool, before.policy, now=now))
    alike = before.policy.decay == after.policy.decay
    later = usage if alike else decayed_usage(pool, after.policy, now=now)
    return (
        tree_from(pool, before, where, usage, now=now),
        tree_from(pool, after, where, later, now=now),
    )


def tree_from(
    pool: Pool, rules: Rules, where: Places, usage: Iterable[PersonUsage], *, now: datetime
) -> TreeInput:
    policy, given = rules.policy, rules.weights
    persons, left, elsewhere = _persons(usage, where.domain_of, given, policy)
    subjects = [
        Subject((pk,), given.get(SubjectKey(Level.DOMAIN, pk, ROOT)), NOTHING) for pk in where.domains
    ]
    subjects += [
        Subject((domain, pk), given.get(SubjectKey(Level.PROJECT, pk, domain)), left.get(pk, NOTHING))
        for pk, domain in where.domain_of.items()
    ]
    return TreeInput(subjects + persons, _capacity(pool, policy, now), elsewhere)


class PersonUsage(NamedTuple):
    """Hours by resource of a person in a project, and whether they are still a member."""

    project: UUID
    user: UUID
    is_member: int
    amounts: Sequence[float]


def _persons(
    usage: Iterable[PersonUsage], domain_of: Mapping[UUID, UUID], given: Weights, policy: Policy
) -> tuple[list[Subject], dict[UUID, Sequence[float]], float]:
    """The members; who has left leaves their usage with the project, and without one with the pool alone."""
    persons: list[Subject] = []
    left: dict[UUID, Sequence[float]] = {}
    elsewhere = 0.0
    for project, those in groupby(usage, key=itemgetter(0)):
        domain = domain_of.get(project)
        for _, user, is_member, amounts in those:
            if domain is None:
                elsewhere += weighted(amounts, policy.weights)
            elif is_member:
                own = given.get(SubjectKey(Level.USER, user, project)) if given else None
                persons.append(Subject((domain, project, user), own, amounts))
            else:
                before = left.get(project, NOTHING)
                left[project] = [a + b for a, b in zip(before, amounts, strict=True)]
    return persons, left, elsewhere


def decayed_usage(pool: Pool, policy: Policy, *, now: datetime) -> Iterator[PersonUsage]:
    """Every member and everyone who used anything, project by project, every day by its age; one query."""
    first, today = window(policy, now)
    decays = decayed_days(policy.lookback_days, policy.half_life_days)
    postgresql = connection.vendor == "postgresql"
    day = "DATE '{}'" if postgresql else "'{}'"
    rows = ", ".join(
        f"({day.format(today - timedelta(days=age))}, {value!r})" for age, value in enumerate(decays)
    )
    factor = "d.factor::double precision" if postgresql else "d.factor"
    used = ", ".join(f"SUM(b.{name} * {factor}) / {float(UNITS_AN_HOUR)!r} AS {name}" for name in RESOURCES)
    sums, nothing = (", ".join(form.format(name) for name in RESOURCES) for form in ("SUM({})", "0.0 AS {}"))
    query = (
        f"WITH d (day, factor) AS (VALUES {rows}), used AS (SELECT b.parent_id, b.subject_id, {used}"  # noqa: S608
        f" FROM {UsageBucket._meta.db_table} b JOIN d ON d.day = b.day"
        " WHERE b.pool = %s AND b.level = %s AND b.day >= %s AND b.day <= %s GROUP BY 1, 2)"
        f" SELECT project_id, user_id, MAX(is_member), {sums}"
        f" FROM (SELECT project_id, user_id, 1 AS is_member, {nothing} FROM {Membership._meta.db_table}"
        f" UNION ALL SELECT parent_id, subject_id, 0, {', '.join(RESOURCES)} FROM used) AS persons"
        " GROUP BY 1, 2 ORDER BY 1, 2"
    )
    bounds = [first, today] if postgresql else [first.isoformat(), today.isoformat()]
    with connection.cursor() as cursor:
        cursor.execute(query, [pool.name, Level.USER.value, *bounds])
        for project, user, is_member, *amounts in cursor.fetchall():
            if not postgresql:
                project, user = UUID(project), UUID(user)
            yield PersonUsage(project, user, is_member, amounts)


def _capacity(pool: Pool, policy: Policy, now: datetime) -> list[float]:
    """What all slots of the pool together could have given in the window."""
    amounts = {name: float(getattr(pool, name)) * pool.max_slots for name in RESOURCES}
    today = to_ms(now) % DAY_MS / DAY_MS
    return capacity_hours(
        amounts, RESOURCES, decayed_days(policy.lookback_days, policy.half_life_days), today
    )
