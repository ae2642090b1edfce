"""Offerings that a pool may request from its provider: their order, and recent refusals."""

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
    """An offering with its current state in the pool."""

    offering: Offering
    is_allowed: bool = True  # False: the pool's spot policy excludes its market
    refused_until: datetime | None = None

    @property
    def is_open(self) -> bool:
        return self.is_allowed and self.refused_until is None


def markets_of(pool: Pool) -> tuple[Market, ...]:
    """Return the markets that the spot policy allows, in order of preference."""
    return _IN_ORDER[SpotPolicy(pool.spot_policy)]


def offering_statuses(pool: Pool, runtime: RuntimeAdapter, now: datetime) -> list[OfferingStatus]:
    """Return all offerings of the runtime in request order; those the spot policy excludes come last."""
    listed, refused = list(runtime.offerings()), refusals(pool, now)
    markets = markets_of(pool)
    usable = [offering for market in markets for offering in listed if offering.market == market]
    others = [offering for offering in listed if offering.market not in markets]
    return [OfferingStatus(offering, refused_until=refused.get(offering.name)) for offering in usable] + [
        OfferingStatus(offering, is_allowed=False) for offering in others
    ]


def refusals(pool: Pool, now: datetime) -> dict[str, datetime]:
    """Return recently refused offerings and the time until which they are not requested."""
    until = {name: datetime.fromisoformat(text) for name, text in pool.refused_offerings.items()}
    return {name: moment for name, moment in until.items() if moment > now}


def open_offerings(
    pool: Pool, runtime: RuntimeAdapter, now: datetime, *, requested: str = "", on_demand_only: bool = False
) -> list[Offering]:
    """Return offerings that may be requested now: allowed by the spot policy and not recently refused.

    An offering that the attempt requested without a response comes first, even if it was refused to others:
    the token finds an instance that was started, so that none is started twice.
    """
    offerings = [
        status.offering
        for status in offering_statuses(pool, runtime, now)
        if status.is_allowed and (status.refused_until is None or status.offering.name == requested)
    ]
    if on_demand_only:
        offerings = [offering for offering in offerings if offering.market != Market.SPOT]
    return sorted(offerings, key=lambda offering: offering.name != requested)


def next_retry_at(pool: Pool, runtime: RuntimeAdapter, market: Market) -> datetime | None:
    """Return when the first refused offering of a market may be requested again."""
    names = {offering.name for offering in runtime.offerings() if offering.market == market}
    retry_times = (
        datetime.fromisoformat(until) for name, until in pool.refused_offerings.items() if name in names
    )
    return min(retry_times, default=None)
