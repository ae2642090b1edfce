"""What a pool may ask its provider for: in which order, and what was refused a moment ago."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from scheduling.capacity.runtimes.base import Market, Offering, RuntimeAdapter
from scheduling.models import Pool, SpotPolicy

_IN_ORDER = {
    SpotPolicy.NEVER: (Market.ON_DEMAND,),
    SpotPolicy.ONLY: (Market.SPOT,),
    SpotPolicy.FALLBACK: (Market.SPOT, Market.ON_DEMAND),
}


@dataclass(frozen=True)
class OfferingStatus:
    """An offering as its pool sees it now."""

    offering: Offering
    wanted: bool = True  # False: the pool's spot policy leaves its market out
    refused_until: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.wanted and self.refused_until is None


def markets_of(pool: Pool) -> tuple[Market, ...]:
    """Those that the policy allows, the first choice first."""
    return _IN_ORDER[SpotPolicy(pool.spot_policy)]


def offering_statuses(pool: Pool, runtime: RuntimeAdapter, now: datetime) -> list[OfferingStatus]:
    """All that the runtime offers, in the order it is asked for; last what the spot policy leaves out."""
    listed, refused = list(runtime.offerings()), refusals(pool, now)
    markets = markets_of(pool)
    wanted = [each for market in markets for each in listed if each.market == market]
    others = [each for each in listed if each.market not in markets]
    return [OfferingStatus(each, refused_until=refused.get(each.name)) for each in wanted] + [
        OfferingStatus(each, wanted=False) for each in others
    ]


def refusals(pool: Pool, now: datetime) -> dict[str, datetime]:
    """Offerings for which there was no capacity a moment ago, and until when they are left alone."""
    until = {name: datetime.fromisoformat(text) for name, text in pool.refused_offerings.items()}
    return {name: moment for name, moment in until.items() if moment > now}


def open_offerings(
    pool: Pool, runtime: RuntimeAdapter, now: datetime, *, asked: str = "", on_demand_only: bool = False
) -> list[Offering]:
    """What may be asked for now: by the pool's spot policy, without what was refused a moment ago.

    What an attempt asked for before without an answer comes first, refused to others or not: its token
    finds what was begun, and nothing is begun twice.
    """
    known = [
        each
        for each in offering_statuses(pool, runtime, now)
        if each.wanted and not (on_demand_only and each.offering.market == Market.SPOT)
    ]
    found = [each.offering for each in known if each.is_open or each.offering.name == asked]
    return sorted(found, key=lambda each: each.name != asked)


def next_retry_at(pool: Pool, runtime: RuntimeAdapter, market: Market) -> datetime | None:
    """When the first offering of a market that was refused may be asked for again."""
    names = {each.name for each in runtime.offerings() if each.market == market}
    waits = (datetime.fromisoformat(until) for name, until in pool.refused_offerings.items() if name in names)
    return min(waits, default=None)
