"""How the scheduler learns of fair share: an app that knows the factors registers where to read them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple
from uuid import UUID

from scheduling.models import Pool
from scheduling.placement.framework.configuration import WrongConfiguration, read_configuration


class Standing(NamedTuple):
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
Standings = Mapping[tuple[UUID, UUID], Standing]
Reader = Callable[[Pool], Standings]
# (pool, user, project)
Subject = tuple[UUID, UUID, UUID]
ReaderOfFew = Callable[[Collection[Subject]], Mapping[Subject, Standing]]

_readers: list[tuple[Reader, ReaderOfFew]] = []


def register_standings(reader: Reader, few: ReaderOfFew) -> None:
    """Called once, when the app that computes factors starts: how to read all of a pool, and some of any."""
    _readers[:] = [(reader, few)]


def standings_of(pool: Pool) -> Standings:
    """The present standings in a pool; empty when nobody computes them."""
    return _readers[0][0](pool) if _readers else {}


def standings_for(subjects: Collection[Subject]) -> Mapping[Subject, Standing]:
    """The present standings of those on a page, as last calculated."""
    return _readers[0][1](subjects) if _readers and subjects else {}


def is_ordered_by_fair_share(pool: Pool) -> bool:
    """Whether the pool's scheduler asks for standings: the plugin is among those it is configured with."""
    try:
        return read_configuration(pool.scheduler).has("fairshare")
    except WrongConfiguration:
        return False
