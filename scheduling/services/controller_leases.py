"""One controller a pool at a time: leases that controllers take, renew and give back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from lcm.signals import process_gone, process_seen
from scheduling.leases import release, take_or_renew
from scheduling.models import Lease, Pool

LENGTH = timedelta(seconds=30)
LEASE_PREFIX = "controller:"


@dataclass(frozen=True)
class PoolLease:
    """Who serves a pool, and until when."""

    pool: str
    held: bool
    holder: str
    expires_at: datetime


def hold_pools(
    *,
    pools: Iterable[str],
    holder: str,
    now: datetime,
    metrics_address: str = "",
    clock_skew_seconds: Decimal | None = None,
) -> list[PoolLease]:
    """Take or renew the leases of these pools; those that another controller holds are told as not held.

    `metrics_address`: where the controller can be scraped, whether it has a lease or stands by.
    `clock_skew_seconds`: how far its clock is ahead of LCM's.
    """
    names = sorted(Pool.objects.filter(name__in=list(pools)).values_list("name", flat=True))
    for name in names:
        take_or_renew(_name(name), holder=holder, length=LENGTH, now=now)
    if metrics_address or clock_skew_seconds is not None:
        process_seen.send(
            sender=None,
            kind="controller",
            name=holder,
            address=metrics_address,
            clock_skew=clock_skew_seconds,
            now=now,
        )
    rows = {lease.name: lease for lease in Lease.objects.filter(name__in=[_name(name) for name in names])}
    return [
        PoolLease(name, row.holder == holder, row.holder, row.expires_at)
        for name in names
        if (row := rows.get(_name(name))) is not None
    ]


def release_pools(*, pools: Iterable[str], holder: str) -> None:
    """Give back, so that another need not wait for the end."""
    for name in pools:
        release(_name(name), holder=holder)
    process_gone.send(sender=None, kind="controller", name=holder)


def _name(pool: str) -> str:
    return f"{LEASE_PREFIX}{pool}"
