"""Scrape candidates: processes and slots with a recent heartbeat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import Exists, OuterRef, Q

from lcm.models import Kernel
from lcm.models.sessions import KernelStatus
from observations.models import Presence, ScrapeTarget, TargetKind
from scheduling.models import Phase, Pool, ProcessLease, Reservation, Slot, SlotState
from scheduling.services.controller_leases import LEASE_PREFIX, SLOT_LEASE_PREFIX

# Processes report at least every 15 s, controllers report their workers every 10 s.
HEARTBEAT_WITHIN = timedelta(seconds=60)
SLOT_HEARTBEAT_WITHIN = timedelta(minutes=3)
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class ScrapeCandidate:
    """A process or slot that Prometheus can scrape."""

    name: str
    address: str
    labels: dict[str, str] = field(default_factory=dict)


def candidates(kind: TargetKind, now: datetime) -> list[ScrapeCandidate]:
    """Return all current candidates of a kind."""
    return list(_slots(now) if kind == TargetKind.SLOT else _processes(kind, now))


def http_sd_targets() -> list[dict[str, object]]:
    """Return the targets in the format of Prometheus HTTP service discovery."""
    return [
        {
            "targets": [row.address],
            "labels": {"__meta_lcm_kind": row.kind, "__meta_lcm_name": row.name, **row.labels},
        }
        for row in ScrapeTarget.objects.order_by("kind", "name")
    ]


def _processes(kind: TargetKind, now: datetime) -> Iterator[ScrapeCandidate]:
    valid = Q(token=None) | Q(token__revoked_at=None, token__expires_at__gt=now)
    reported = Presence.objects.filter(valid, kind=kind, seen_at__gt=now - HEARTBEAT_WITHIN)
    recent = reported.exclude(address="").order_by("name")
    served = served_pools(now) if kind == TargetKind.CONTROLLER else {}
    for row in recent:
        yield ScrapeCandidate(row.name, row.address, _labels(served.get(row.name, ())))


def served_pools(now: datetime) -> dict[str, list[str]]:
    """Return the pools of each controller by its leases; the holder of the pool's own lease comes last."""
    found: dict[str, list[str]] = {}
    holders = dict(_leases(SLOT_LEASE_PREFIX, now))
    slots = Slot.objects.filter(pk__in=list(holders)) if holders else Slot.objects.none()
    for key, pool in slots.order_by("pool__name").values_list("pk", "pool__name"):
        found.setdefault(holders[str(key)], []).append(pool)
    for name, holder in _leases(LEASE_PREFIX, now):
        found.setdefault(holder, []).append(name)
    return found


def _leases(prefix: str, now: datetime) -> list[tuple[str, str]]:
    rows = ProcessLease.objects.filter(name__startswith=prefix, expires_at__gt=now).order_by("name")
    return [(name.removeprefix(prefix), holder) for name, holder in rows.values_list("name", "holder")]


def _labels(pools: Iterable[str]) -> dict[str, str]:
    """Return pool labels; several pools are joined, because a label has one value."""
    names = list(pools)
    if not names:
        return {}
    systems = sorted(set(Pool.objects.filter(name__in=names).values_list("system", flat=True)))
    return {"pool": ",".join(names), "system": ",".join(systems)}


def _slots(now: datetime) -> Iterator[ScrapeCandidate]:
    """Yield READY slots with a recent heartbeat or with running kernels."""
    kernels = Kernel.objects.filter(session=OuterRef("session"), status=KernelStatus.RUNNING)
    busy = Reservation.objects.filter(Exists(kernels), slot=OuterRef("pk"), phase=Phase.READY)
    alive = Q(last_heartbeat__gt=now - SLOT_HEARTBEAT_WITHIN) | Exists(busy)
    rows = Slot.objects.filter(alive, state=SlotState.READY).exclude(endpoint="").select_related("pool")
    for slot in rows.order_by("pk"):
        if address := _address_of(slot.endpoint):
            yield ScrapeCandidate(slot.name, address, {"pool": slot.pool.name, "system": slot.pool.system})


def _address_of(endpoint: str) -> str:
    """Return `host:port` of a URL; empty if it is invalid."""
    try:
        parts = urlsplit(endpoint)
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return ""
    if not parts.hostname or port is None:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{port}"
