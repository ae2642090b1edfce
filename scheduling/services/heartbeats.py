"""Heartbeats of controllers: worker state, capacity, labs and leaked ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q

from lcm.domain.actors import Actor
from lcm.services.changelog import log_change
from scheduling.capacity.port_ranges import ranges
from scheduling.capacity.tick_trigger import trigger_tick
from scheduling.models import PortAllocation, Slot
from scheduling.services.session_labs import save_labs
from scheduling.services.slots import PROBE_RESET

# The assumed age of a port observation if the controller does not send one.
DEFAULT_SCAN_AGE = timedelta(minutes=5)


def record_heartbeat(
    *,
    slot: Slot,
    actor: Actor,
    now: datetime,
    version: str = "",
    capacity: Mapping[str, Decimal] | None = None,
    leaked_ports: Sequence[Mapping[str, Any]] | None = None,
    labs: Sequence[Mapping[str, Any]] | None = None,
    ports_observed_seconds_ago: float | None = None,
) -> None:
    """Record a heartbeat. `leaked_ports`: all taken ports without a session; None: not observed.

    `labs` are the labs of sessions. `ports_observed_seconds_ago` is the age of both observations, since
    clocks of two machines differ.
    """
    seconds = ports_observed_seconds_ago
    observed_at = now - (DEFAULT_SCAN_AGE if seconds is None else timedelta(seconds=seconds))
    fields: dict[str, Any] = {"last_heartbeat": now, **PROBE_RESET}
    if version:
        fields["version"] = version[:60]
    if capacity is not None:
        fields["reported_capacity"] = {name: str(amount) for name, amount in capacity.items()}
    with transaction.atomic():
        Slot.objects.filter(pk=slot.pk).update(**fields)
        if slot.heartbeat_lost_at is not None:
            _record_heartbeat_back(slot, actor, now)
        if leaked_ports is not None:
            seen = {port["port"]: port["name"] for port in leaked_ports}
            _update_leaked_ports(slot, seen, observed_at=observed_at, actor=actor, now=now)
        if labs is not None:
            save_labs(slot=slot, labs=labs, observed_at=observed_at)
        trigger_tick(slot.pool)


def _record_heartbeat_back(slot: Slot, actor: Actor, now: datetime) -> None:
    if Slot.objects.filter(pk=slot.pk, heartbeat_lost_at__isnull=False).update(heartbeat_lost_at=None):
        message = f"{slot}: heartbeats are back"
        log_change(slot, actor=actor, event="slot.heartbeat_back", message=message, now=now)


def _update_leaked_ports(
    slot: Slot, seen: Mapping[int, str], *, observed_at: datetime, actor: Actor, now: datetime
) -> None:
    """Record leaked ports, and release leaked ports that were observed free afterwards."""
    known = dict(PortAllocation.objects.filter(slot=slot, port__in=[*seen]).values_list("port", "leaked"))
    may_be_free = Q(held_until=None) | Q(held_until__lte=observed_at)
    leaked = PortAllocation.objects.filter(may_be_free, slot=slot, leaked=True, session=None)
    clean = leaked.exclude(port__in=[*seen])
    released = list(clean.values_list("port", flat=True))
    new = [port for port in sorted(seen) if port not in known]
    if released:
        clean.delete()
    PortAllocation.objects.bulk_create(
        [
            PortAllocation(slot=slot, port=port, name=seen[port][:200], leaked=True, created_at=now)
            for port in new
        ],
        ignore_conflicts=True,
    )
    if new or released:
        message = _leak_message(new, sorted(released))
        log_change(slot, actor=actor, event="slot.ports_leaked", message=message, now=now)


def _leak_message(new: Sequence[int], released: Sequence[int]) -> str:
    parts = [
        f"{label} {ranges(ports, most=20)}"
        for label, ports in (("found:", new), ("released:", released))
        if ports
    ]
    return f"leaked ports {'; '.join(parts)}"
