"""One controller per pool at a time: leases that controllers take, renew and release.

A controller on a worker has a key for that slot alone and holds the slot instead of the pool. The
controllers on workers share the lease of the pool under one name, so that a pool is served either by a
controller of the pool or by the controllers on its workers, never by both. A controller of the pool has
priority: otherwise the key of one worker could keep it from serving the other workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.utils.translation import gettext as _

from lcm.domain.errors import InvalidInput
from lcm.extensions import Extension
from lcm.models import ApiToken
from scheduling.coordination.leases import release, take_or_renew
from scheduling.models import Pool, ProcessLease

LENGTH = timedelta(seconds=30)
LEASE_PREFIX = "controller:"
SLOT_LEASE_PREFIX = "controller-of-slot:"
# Held by a controller of the pool that waits for the lease of the pool.
CLAIM_PREFIX = "controller-waits:"
# Holds the lease of a pool for all controllers on its workers. No controller may take this name.
ON_WORKERS = "controllers on workers"


@dataclass(frozen=True)
class PoolLease:
    """Which controller serves a pool, and until when."""

    pool: str
    held: bool
    holder: str
    expires_at: datetime


def acquire_leases(
    *,
    token: ApiToken,
    holder: str,
    now: datetime,
    metrics_address: str = "",
    clock_skew_seconds: Decimal | None = None,
) -> list[PoolLease]:
    """Take or renew the leases of the token's pools or slot; leases of other holders are returned as not
    held.

    `metrics_address`: where Prometheus can scrape the controller, whether it has a lease or stands by.
    `clock_skew_seconds`: how far its clock is ahead of LCM's. Raises StateConflict if the name belongs to the
    token of another controller.
    """
    _reject_reserved_name(holder)
    names = sorted(Pool.objects.filter(name__in=token.pools).values_list("name", flat=True))
    if not names:
        return []
    for effect in Extension.installed().process_heartbeat:
        effect(
            kind="controller",
            name=holder,
            address=metrics_address,
            token=token,
            clock_skew=clock_skew_seconds,
            now=now,
        )
    if (slot_id := token.scope.slot_id) is not None:
        return _hold_slot(names[0], slot_id, holder, now)
    for name in names:
        if not take_or_renew(_name(name), holder=holder, length=LENGTH, now=now):
            take_or_renew(_claim_name(name), holder=holder, length=LENGTH, now=now)
    rows = {
        lease.name: lease for lease in ProcessLease.objects.filter(name__in=[_name(name) for name in names])
    }
    return [
        PoolLease(name, row.holder == holder, row.holder, row.expires_at)
        for name in names
        if (row := rows.get(_name(name))) is not None
    ]


def release_leases(*, token: ApiToken, holder: str, now: datetime) -> None:
    """Release the leases of this holder, so that another need not wait until they expire."""
    _reject_reserved_name(holder)
    for effect in Extension.installed().process_stopped:
        effect(kind="controller", name=holder, token=token, now=now)
    scope = token.scope
    if scope.slot_id is None:
        names = [name_of(pool) for pool in scope.pools for name_of in (_name, _claim_name)]
    else:
        names = [_slot_name(scope.slot_id)]
    for name in names:
        release(name, holder=holder)


def _hold_slot(pool: str, slot_id: UUID, holder: str, now: datetime) -> list[PoolLease]:
    """Serve one slot, unless a controller of the pool or another controller of the slot holds the lease."""
    is_claimed = ProcessLease.objects.filter(name=_claim_name(pool), expires_at__gt=now).exists()
    if is_claimed or not take_or_renew(_name(pool), holder=ON_WORKERS, length=LENGTH, now=now):
        pool_leases = ProcessLease.objects.filter(name=_name(pool))
        return [PoolLease(pool, False, row.holder, row.expires_at) for row in pool_leases]
    take_or_renew(_slot_name(slot_id), holder=holder, length=LENGTH, now=now)
    slot_leases = ProcessLease.objects.filter(name=_slot_name(slot_id))
    return [PoolLease(pool, row.holder == holder, row.holder, row.expires_at) for row in slot_leases]


def _reject_reserved_name(holder: str) -> None:
    if holder == ON_WORKERS:
        text = _("“%(name)s” is reserved. Give the controller another name.") % {"name": ON_WORKERS}
        raise InvalidInput({"holder": text})


def _name(pool: str) -> str:
    return f"{LEASE_PREFIX}{pool}"


def _claim_name(pool: str) -> str:
    return f"{CLAIM_PREFIX}{pool}"


def _slot_name(slot_id: UUID) -> str:
    return f"{SLOT_LEASE_PREFIX}{slot_id}"
