"""Events about slots, pools, observers and controllers, and the wait target of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _
from pydantic import Field

from lcm.events.catalog import EventData, EventSubject, EventType, Severity
from scheduling.models import Pool, Slot


class SlotData(EventData):
    """Data of an event about a slot. The values are those when the event is delivered first."""

    pool: str | None = Field(default=None, examples=["cml-eu"])
    instance: str | None = Field(default=None, description="Instance id.", examples=["i-0a1b2c3d"])
    offering: str | None = Field(default=None, examples=["m5zn.metal"])


class PoolData(EventData):
    """Data of an event about a pool."""

    pool: str | None = Field(default=None, examples=["cml-eu"])
    max_slots: int | None = Field(default=None, examples=[8])


def _slots(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = Slot.objects.filter(pk__in=ids).select_related("pool").order_by()
    return {
        str(row.pk): {"pool": row.pool.name, "instance": row.instance_id, "offering": row.offering}
        for row in rows
    }


def _pools(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = Pool.objects.filter(pk__in=ids).order_by()
    return {str(row.pk): {"pool": row.name, "max_slots": row.max_slots} for row in rows}


SLOT = EventSubject("slot", SlotData, _slots, "slot_detail")
POOL = EventSubject("pool", PoolData, _pools, "pool_detail")

EVENT_TYPES = (
    EventType(
        "slot.launched", _("Slot launched"),
        _("The provider runs an instance for the slot; it boots."), SLOT, after={"state": "BOOTING"},
    ),
    EventType(
        "slot.ready", _("Slot ready"), _("The worker answers and can run sessions."), SLOT,
        after={"state": "READY"},
    ),
    EventType(
        "slot.interrupted", _("Slot interrupted"),
        _("The provider announced that it takes the instance away."), SLOT, Severity.WARNING,
    ),
    EventType(
        "slot.heartbeat_lost", _("Heartbeats lost"),
        _("No controller has sent a heartbeat for the worker for five minutes."), SLOT, Severity.WARNING,
    ),
    EventType(
        "slot.heartbeat_back", _("Heartbeats back"),
        _("A controller sends heartbeats for the worker again."), SLOT,
    ),
    EventType(
        "slot.failed", _("Slot failed"),
        _("The instance could not be launched or terminated."), SLOT, Severity.CRITICAL,
        after={"state": "ERROR"},
    ),
    EventType(
        "pool.stopped", _("Pool stopped"),
        _("The pool launches no slots until its configuration is corrected."), POOL, Severity.CRITICAL,
    ),
)  # fmt: skip
