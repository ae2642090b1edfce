"""Events about slots, pools, observers and controllers, and the wait target of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from pydantic import Field

from lcm.events.catalog import EventData, EventSubject, EventType, Severity
from lcm.events.event_types import SESSION
from scheduling.models import Pool, Slot
from scheduling.selectors.observers import observer_names


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


def _observers(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Observers have no further fields. They have a page while they are installed."""
    return {key: {} for key in ids if key in observer_names()}


def observer_url(name: str) -> str:
    return reverse("observer_detail", args=[name])


SLOT = EventSubject("slot", SlotData, _slots, "slot_detail")
POOL = EventSubject("pool", PoolData, _pools, "pool_detail")
OBSERVER = EventSubject("observer", EventData, _observers, observer_url)

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
    EventType(
        "pool.backed_off", _("Pool backs off"),
        _("Launches failed or the provider refused them. The pool launches no slots for some minutes."), POOL,
        Severity.WARNING, after={"backoff_until": "2026-03-02T09:05:00Z"},
    ),
    EventType(
        "pool.launches_resumed", _("Launches resumed"),
        _("The pool no longer backs off. Reported at least 15 minutes after the back-off began."), POOL,
    ),
    EventType(
        "pool.at_maximum", _("Pool at its maximum"),
        _("Sessions wait, all slots are in use, and the maximum allows no further slot."), POOL,
        Severity.WARNING, after={"max_slots": 8, "waiting": 3},
    ),
    EventType(
        "pool.below_maximum", _("Pool below its maximum"),
        _("No session waits because of the maximum. Reported at least 15 minutes after it was reached."),
        POOL,
    ),
    EventType(
        "observer.late", _("Observer late"),
        _("An observer or lifecycle handler did not run for two intervals."), OBSERVER, Severity.WARNING,
        after={"since": "2026-03-02T08:00:00Z", "interval_seconds": 300},
    ),
    EventType(
        "observer.failed", _("Observer failed"),
        _("The last run of an observer or lifecycle handler failed, wholly or in part."), OBSERVER,
        Severity.WARNING, after={"since": "2026-03-02T08:00:00Z", "interval_seconds": 300},
    ),
    EventType(
        "observer.recovered", _("Observer recovered"),
        _("It runs as planned again. Reported at least 15 minutes after the failure."), OBSERVER,
    ),
    EventType(
        "session.wait_target_exceeded", _("Wait target exceeded"),
        _("The session has waited for longer than the wait target of its pool. Once for each session."),
        SESSION, Severity.WARNING,
        after={"waiting_since": "2026-03-02T09:00:00Z", "target_wait_seconds": 900},
    ),
)  # fmt: skip
