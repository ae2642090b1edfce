"""Fair-share factors, read by the functions of the app that computes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from scheduling.extensions import SchedulingExtension
from scheduling.models import Pool
from scheduling.placement.framework.configuration import InvalidConfiguration, read_configuration


class LevelFactors(NamedTuple):
    """Fair-share factors by level, compared from the left; the higher factor is placed first.

    Rules with a single number put it into `user` and leave the other levels equal.
    """

    domain: float = 1.0
    project: float = 1.0
    user: float = 1.0
    # Weights of domain, project and user among their siblings, used by reclaim.
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    # Whether domain and project have no share of their own, so that their children compete one level up.
    joins: tuple[bool, bool] = (False, False)


# (user, project) → factors; a missing user has no usage.
FactorsByMember = Mapping[tuple[UUID, UUID], LevelFactors]
FactorReader = Callable[[Pool], FactorsByMember]
# (pool, user, project)
Subject = tuple[UUID, UUID, UUID]
SubsetReader = Callable[[Collection[Subject]], Mapping[Subject, LevelFactors]]


def factors_in_pool(pool: Pool) -> FactorsByMember:
    """Return the current factors in a pool; empty if no app computes them."""
    readers = SchedulingExtension.installed().pool_factors
    return readers[0](pool) if readers else {}


def factors_for(subjects: Collection[Subject]) -> Mapping[Subject, LevelFactors]:
    """Return the last computed factors of selected users."""
    readers = SchedulingExtension.installed().member_factors
    return readers[0](subjects) if readers and subjects else {}


def is_ordered_by_fair_share(pool: Pool) -> bool:
    """Return whether the pool's scheduler uses the fair-share plugin."""
    try:
        return read_configuration(pool.scheduler).has("fairshare")
    except InvalidConfiguration:
        return False
