"""What a calculation is made of: the tree of a pool with weights and decayed usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from fairshare.factor import capacity_hours, decayed_days, weighted
from fairshare.levels import ROOT, Level
from fairshare.models import FairShare, FairSharePolicy, UsageBucket
from fairshare.policy import Policy
from fairshare.slices import DAY_MS, to_ms
from fairshare.tree import Path, Result, Subject, calculate
from fairshare.units import RESOURCES, UNITS_AN_HOUR
from lcm.models import Domain, Membership, Project
from scheduling.models import Pool

NOTHING = (0.0,) * len(RESOURCES)


class SubjectKey(NamedTuple):
    """A row of the tree: a domain under the root, a project in a domain, a person in a project."""

    level: str
    subject: UUID
    parent: UUID


Weights = Mapping[SubjectKey, float | None]


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
    own = FairSharePolicy.objects.filter(pool=pool).first()
    return own.values if own else Policy()


def window(policy: Policy, now: datetime) -> tuple[date, date]:
    """The UTC days that count: the last so many, today among them."""
    today = now.astimezone(UTC).date()
    return today - timedelta(days=policy.lookback_days - 1), today


def key_of(path: Path) -> SubjectKey:
    subject, parent = path[-1], path[-2] if len(path) > 1 else ROOT
    assert isinstance(subject, UUID)
    assert isinstance(parent, UUID)
    return SubjectKey(list(Level)[len(path) - 1], subject, parent)


def weights_of(pool: Pool) -> dict[SubjectKey, float | None]:
    rows = FairShare.objects.filter(pool=pool, weight__isnull=False)
    return {
        SubjectKey(level, subject, parent): weight
        for level, subject, parent, weight in rows.values_list("level", "subject_id", "parent_id", "weight")
    }


def tree_of(pool: Pool, policy: Policy, *, now: datetime, weights: Weights | None = None) -> TreeInput:
    """The tree as it is now; `weights` instead of the stored ones for a preview."""
    given = weights_of(pool) if weights is None else weights
    usage = decayed_usage(pool, policy, now=now)
    domains = list(Domain.objects.order_by("pk").values_list("pk", flat=True))
    domain_of = dict(Project.objects.order_by("pk").values_list("pk", "domain_id"))
    people = list(Membership.objects.order_by("project_id", "user_id").values_list("user_id", "project_id"))
    subjects = [Subject((pk,), given.get(SubjectKey(Level.DOMAIN, pk, ROOT)), NOTHING) for pk in domains]
    persons = []
    for user, project in people:
        own = given.get(SubjectKey(Level.USER, user, project)) if given else None
        persons.append(Subject((domain_of[project], project, user), own, usage.pop((user, project), NOTHING)))
    left, elsewhere = _left_over(usage, domain_of, policy.weights)
    subjects += [
        Subject((domain, pk), given.get(SubjectKey(Level.PROJECT, pk, domain)), left.get(pk, NOTHING))
        for pk, domain in domain_of.items()
    ]
    return TreeInput(subjects + persons, _capacity(pool, policy, now), elsewhere)


Usage = dict[tuple[UUID, UUID], Sequence[float]]


def decayed_usage(pool: Pool, policy: Policy, *, now: datetime) -> Usage:
    """Hours by resource of each person in each project, every day by its age; one query."""
    first, today = window(policy, now)
    decays = decayed_days(policy.lookback_days, policy.half_life_days)
    postgresql = connection.vendor == "postgresql"
    day = "DATE '{}'" if postgresql else "'{}'"
    rows = ", ".join(
        f"({day.format(today - timedelta(days=age))}, {value!r})" for age, value in enumerate(decays)
    )
    factor = "d.factor::double precision" if postgresql else "d.factor"
    sums = ", ".join(f"SUM(b.{name} * {factor}) / {float(UNITS_AN_HOUR)!r}" for name in RESOURCES)
    query = (
        f"WITH d (day, factor) AS (VALUES {rows}) SELECT b.subject_id, b.parent_id, {sums}"  # noqa: S608
        f" FROM {UsageBucket._meta.db_table} b JOIN d ON d.day = b.day"
        " WHERE b.pool = %s AND b.level = %s AND b.day >= %s AND b.day <= %s GROUP BY 1, 2"
    )
    bounds = [first, today] if postgresql else [first.isoformat(), today.isoformat()]
    with connection.cursor() as cursor:
        cursor.execute(query, [pool.name, Level.USER.value, *bounds])
        return {
            (user, project) if postgresql else (UUID(user), UUID(project)): amounts
            for user, project, *amounts in cursor.fetchall()
        }


def _left_over(
    usage: Usage, domain_of: Mapping[UUID, UUID], weights: Sequence[float]
) -> tuple[dict[UUID, list[float]], float]:
    """Who has left a project leaves their usage with it; what has no project any more is the pool's alone."""
    left: dict[UUID, list[float]] = {}
    elsewhere = 0.0
    for (_, project), amounts in usage.items():
        if project in domain_of:
            before = left.get(project, [0.0] * len(RESOURCES))
            left[project] = [a + b for a, b in zip(before, amounts, strict=True)]
        else:
            elsewhere += weighted(amounts, weights)
    return left, elsewhere


def _capacity(pool: Pool, policy: Policy, now: datetime) -> list[float]:
    """What all slots of the pool together could have given in the window."""
    amounts = {name: float(getattr(pool, name)) * pool.max_slots for name in RESOURCES}
    today = to_ms(now) % DAY_MS / DAY_MS
    return capacity_hours(
        amounts, RESOURCES, decayed_days(policy.lookback_days, policy.half_life_days), today
    )
