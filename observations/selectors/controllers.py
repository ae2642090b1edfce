"""Controllers with the pools they serve, and the last heartbeats of controllers and workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Min
from django.utils.translation import gettext_lazy as _

from observations.models import Presence, TargetKind
from observations.selectors.discovery import HEARTBEAT_WITHIN
from scheduling.models import Pool, Slot, SlotState
from scheduling.selectors.pool_overview import is_silent
from scheduling.services.controller_leases import ON_WORKERS

# Pool names by the controller that holds their lease.
Served = Mapping[str, Sequence[str]]
# A controller silent for longer is not expected to return under the same name.
REMEMBERED = timedelta(days=1)
# Clock skew below this limit causes no warning.
SKEW_WARNED = timedelta(seconds=5)


STATE_LABELS = {
    "serving": _("Serving"),
    "standing by": _("On standby"),
    "silent": _("Silent"),
    "unserved": _("Unserved"),
}


@dataclass(frozen=True)
class ControllerStatus:
    """A controller that has reported itself and not signed off."""

    name: str
    state: str
    address: str = ""
    seen_at: datetime | None = None
    pools: tuple[str, ...] = ()
    # How far its clock is ahead of LCM's, if that requires a warning.
    clock_skew: timedelta | None = None

    @property
    def state_label(self) -> str:
        return str(STATE_LABELS[self.state])


@dataclass(frozen=True)
class PoolHeartbeats:
    """Heartbeats of a pool's workers as reported by its controller."""

    pool: Pool
    state: str
    controller: str
    versions: tuple[str, ...]
    workers: int = 0
    silent: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None

    @property
    def state_label(self) -> str:
        return str(STATE_LABELS[self.state])


def controller_statuses(served: Served, now: datetime) -> list[ControllerStatus]:
    """Return the active, standby and recently silent (within a day) controllers by name."""
    recent = Presence.objects.filter(kind=TargetKind.CONTROLLER, seen_at__gt=now - REMEMBERED)
    presences = {row.name: row for row in recent}
    return [
        ControllerStatus(
            name=name,
            state=_state(name in served, presences.get(name), now),
            address=presences[name].address if name in presences else "",
            seen_at=presences[name].seen_at if name in presences else None,
            pools=tuple(served.get(name, ())),
            clock_skew=_wrong_clock(presences.get(name), now),
        )
        for name in sorted({*served, *presences} - {ON_WORKERS})
    ]


def heartbeats_by_pool(served: Served, now: datetime) -> list[PoolHeartbeats]:
    """Return every pool with its controller and the heartbeats of its READY workers."""
    holders = {pool: name for name, pools in served.items() for pool in pools}
    ready = Slot.objects.filter(state=SlotState.READY).order_by()
    counts = ready.values("pool").annotate(
        workers=Count("pk"),
        silent=Count("pk", filter=is_silent(now)),
        oldest=Min("last_heartbeat"),
        newest=Max("last_heartbeat"),
    )
    heartbeats = {
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
            *heartbeats.get(pool.pk, ()),
        )
        for pool in Pool.objects.order_by(F("enabled").desc(), "name")
    ]


def _wrong_clock(presence: Presence | None, now: datetime) -> timedelta | None:
    """Return the clock skew of a live controller if it requires a warning."""
    if presence is None or presence.clock_skew is None or not _is_alive(presence, now):
        return None
    skew = timedelta(seconds=float(presence.clock_skew))
    return skew if abs(skew) >= SKEW_WARNED else None


def _state(serves: bool, presence: Presence | None, now: datetime) -> str:
    if serves:
        return "serving"
    return "standing by" if presence and _is_alive(presence, now) else "silent"


def _is_alive(row: Presence, now: datetime) -> bool:
    return row.seen_at is not None and row.seen_at > now - HEARTBEAT_WITHIN
