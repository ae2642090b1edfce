"""How the scheduler learns of fair share: an app that knows the factors registers where to read them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from scheduling.models import Pool
from scheduling.placement.framework.configuration import InvalidConfiguration, read_configuration


class LevelFactors(NamedTuple):
    """Where someone stands: a factor a level, compared from the left; the higher goes first.

    Rules that know one number only put it into `user` and leave the others equal.
    """

    domain: float = 1.0
    project: float = 1.0
    user: float = 1.0
    # The weights of domain, project and person among their siblings, by which room may be reclaimed.
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    # Whether domain and project have no share of their own, so that those below them compete further up.
    joins: tuple[bool, bool] = (False, False)


# (user, project) → standing; who is not in it has used nothing.
FactorsByMember = Mapping[tuple[UUID, UUID], LevelFactors]
FactorReader = Callable[[Pool], FactorsByMember]
# (pool, user, project)
Subject = tuple[UUID, UUID, UUID]
SubsetReader = Callable[[Collection[Subject]], Mapping[Subject, LevelFactors]]

_readers: list[tuple[FactorReader, SubsetReader]] = []


def register_factor_readers(reader: FactorReader, few: SubsetReader) -> None:
    """Called once, when the app that computes factors starts: how to read all of a pool, and some of any."""
    _readers[:] = [(reader, few)]


def factors_in_pool(pool: Pool) -> FactorsByMember:
    """The present standings in a pool; empty when nobody computes them."""
    return _readers[0][0](pool) if _readers else {}


def factors_for(subjects: Collection[Subject]) -> Mapping[Subject, LevelFactors]:
    """The present standings of those on a page, as last calculated."""
    return _readers[0][1](subjects) if _readers and subjects else {}


def is_ordered_by_fair_share(pool: Pool) -> bool:
    """Whether the pool's scheduler asks for standings: the plugin is among those it is configured with."""
    try:
        return read_configuration(pool.scheduler).has("fairshare")
    except InvalidConfiguration:
        return False
