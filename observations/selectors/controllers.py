"""Who serves which pools, and when they and the workers were last heard of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Min

from observations.models import Presence, TargetKind
from observations.selectors.discovery import HEARD_WITHIN
from scheduling.models import Pool, Slot, SlotState
from scheduling.selectors.pool_overview import is_silent
from scheduling.services.controller_leases import ON_WORKERS

# Names of pools by the controller that holds their lease.
Served = Mapping[str, Sequence[str]]
# One that has been silent for longer will not come back under its name.
REMEMBERED = timedelta(days=1)
# A controller's clock may differ from LCM's by less than this without a warning.
SKEW_WARNED = timedelta(seconds=5)


@dataclass(frozen=True)
class ControllerStatus:
    """A controller that was heard of. One that has said goodbye is not here any more."""

    name: str
    state: str
    address: str = ""
    seen_at: datetime | None = None
    pools: tuple[str, ...] = ()
    # How far its clock is ahead of LCM's, if that deserves a warning.
    clock_skew: timedelta | None = None


@dataclass(frozen=True)
class PoolHeartbeats:
    """A pool's workers as its controller tells of them."""

    pool: Pool
    state: str
    controller: str
    versions: tuple[str, ...]
    workers: int = 0
    silent: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


def controller_statuses(served: Served, now: datetime) -> list[ControllerStatus]:
    """Those that serve, stand by or have fallen silent within a day, by name."""
    lately = Presence.objects.filter(kind=TargetKind.CONTROLLER, seen_at__gt=now - REMEMBERED)
    heard = {row.name: row for row in lately}
    return [
        ControllerStatus(
            name=name,
            state=_state(name in served, heard.get(name), now),
            address=heard[name].address if name in heard else "",
            seen_at=heard[name].seen_at if name in heard else None,
            pools=tuple(served.get(name, ())),
            clock_skew=_wrong_clock(heard.get(name), now),
        )
        for name in sorted({*served, *heard} - {ON_WORKERS})
    ]


def heartbeats_by_pool(served: Served, now: datetime) -> list[PoolHeartbeats]:
    """Every pool with the controller that serves it and the heartbeats of its READY workers."""
    holders = {pool: name for name, pools in served.items() for pool in pools}
    ready = Slot.objects.filter(state=SlotState.READY).order_by()
    counts = ready.values("pool").annotate(
        workers=Count("pk"),
        silent=Count("pk", filter=is_silent(now)),
        oldest=Min("last_heartbeat"),
        newest=Max("last_heartbeat"),
    )
    heard = {
        pool: rest for pool, *rest in counts.values_list("pool", "workers", "silent", "oldest", "newest")
    }
    versions: dict[object, list[str]] = {}
    for pool, version in ready.exclude(version="").values_list("pool", "version").distinct():
        versions.setdefault(pool, []).append(version)
    return [
        PoolHeartbeats(
            pool,
            "serving" if pool.name in holders else "unserved",
            holders.get(pool.name, ""),
            tuple(sorted(versions.get(pool.pk, ()))),
            *heard.get(pool.pk, ()),
        )
        for pool in Pool.objects.order_by(F("enabled").desc(), "name")
    ]


def _wrong_clock(heard: Presence | None, now: datetime) -> timedelta | None:
    """Return the clock skew that a live controller reported, if it deserves a warning."""
    if heard is None or heard.clock_skew is None or not _is_heard(heard, now):
        return None
    skew = timedelta(seconds=float(heard.clock_skew))
    return skew if abs(skew) >= SKEW_WARNED else None


def _state(serves: bool, heard: Presence | None, now: datetime) -> str:
    if serves:
        return "serving"
    return "standing by" if heard and _is_heard(heard, now) else "silent"


def _is_heard(row: Presence, now: datetime) -> bool:
    return row.seen_at is not None and row.seen_at > now - HEARD_WITHIN
