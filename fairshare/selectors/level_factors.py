"""Level factors of a pool for the scheduler."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import Q

from fairshare.models import FairShare, FairShareCalculation
from fairshare.models.levels import ROOT, Level
from fairshare.selectors.trees import policy_of
from lcm.models import Membership
from scheduling.models import Pool
from scheduling.selectors.fair_share import FactorsByMember, LevelFactors, Subject


def pool_level_factors(pool: Pool) -> FactorsByMember:
    """Return the latest level factors by (user, project); unknown members rank first, with weight 1."""
    parents = _Parents(pool)
    if not parents.weight:
        return {}
    rows = FairShare.objects.filter(pool=pool, level=Level.USER)
    if parents.all_alike:
        rows = rows.exclude(
            domain_level_factor=1.0, project_level_factor=1.0, user_level_factor=1.0, effective_weight=1.0
        )
    factors = {
        (user, project): LevelFactors(
            in_domain, in_project, in_person, (*parents.weights(project), weight), parents.joins(project)
        )
        for user, project, weight, in_domain, in_project, in_person in rows.values_list(
            "subject_id",
            "parent_id",
            "effective_weight",
            "domain_level_factor",
            "project_level_factor",
            "user_level_factor",
        )
    }
    return factors | _newcomers(pool, parents, factors)


def level_factors_of(subjects: Collection[Subject]) -> dict[Subject, LevelFactors]:
    """Return the level factors of people in any pools in one query, without weights."""
    pools, users, projects = (set(values) for values in zip(*subjects, strict=True))
    people = Q(level=Level.USER, subject_id__in=users, parent_id__in=projects)
    rows = FairShare.objects.filter(
        people | Q(level=Level.PROJECT, subject_id__in=projects), pool_id__in=pools
    )
    known = {
        (level, pool, subject, parent): factors
        for level, pool, subject, parent, *factors in rows.values_list(
            "level", "pool_id", "subject_id", "parent_id",
            "domain_level_factor", "project_level_factor", "user_level_factor",
        )
    }  # fmt: skip
    of_projects = {
        (pool, subject): factors
        for (level, pool, subject, _), factors in known.items()
        if level == Level.PROJECT
    }
    by_subject = {}
    for pool, user, project in subjects:
        # A member added since the calculation ranks by the usage of the project.
        factors = known.get((Level.USER, pool, user, project)) or of_projects.get((pool, project))
        if factors:
            by_subject[(pool, user, project)] = LevelFactors(*factors)
    return by_subject


class _Parents:
    """Projects and domains above people, with their weights and factors."""

    def __init__(self, pool: Pool) -> None:
        rows = FairShare.objects.filter(pool=pool).exclude(level=Level.USER)
        self.weight: dict[UUID, float] = {}
        self.domain: dict[UUID, UUID] = {}
        self.level_factors: dict[UUID, tuple[float, float]] = {}
        joining: set[UUID] = set()
        for level, key, parent, weight, domain, project, uses_parent in rows.values_list(
            "level",
            "subject_id",
            "parent_id",
            "effective_weight",
            "domain_level_factor",
            "project_level_factor",
            "uses_parent",
        ):
            self.weight[key] = weight
            if uses_parent:
                joining.add(key)
            if level == Level.PROJECT:
                self.domain[key], self.level_factors[key] = parent, (domain, project)
        # The classic order uses the person's factor alone, wherever its share comes from.
        self._joining = joining if joining and policy_of(pool).order == "tree" else set()
        self.all_alike = not joining and all(weight == 1.0 for weight in self.weight.values())

    def joins(self, project: UUID) -> tuple[bool, bool]:
        return self.domain.get(project, ROOT) in self._joining, project in self._joining

    def weights(self, project: UUID) -> tuple[float, float]:
        return self.weight.get(self.domain.get(project, ROOT), 1.0), self.weight.get(project, 1.0)


def _newcomers(
    pool: Pool, parents: _Parents, known: Mapping[tuple[UUID, UUID], LevelFactors]
) -> dict[tuple[UUID, UUID], LevelFactors]:
    """Return factors of members added since the calculation: no usage, but ranked by their project."""
    at = FairShareCalculation.objects.filter(pool=pool).order_by("-at").values_list("at", flat=True).first()
    if at is None:
        return {}
    joined = Membership.objects.filter(joined_at__gte=at).values_list("user_id", "project_id")
    return {
        (user, project): LevelFactors(
            *parents.level_factors[project], 1.0, (*parents.weights(project), 1.0), parents.joins(project)
        )
        for user, project in joined
        if (user, project) not in known
        and project in parents.level_factors
        and not (parents.all_alike and parents.level_factors[project] == (1.0, 1.0))
    }
