"""Queue entry of reservations: an advance booking joins the queue lead_time before its timeslot."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Coalesce

from lcm.models import LabletSession
from scheduling.models import Phase, Pool, Reservation
from scheduling.placement.framework.configuration import (
    Configuration,
    InvalidConfiguration,
    read_configuration,
)
from scheduling.placement.plugins.timeslot import TimeslotPlugin

# Start of the wait of a reservation.
QUEUED_SINCE = Coalesce("joins_queue_at", "created_at")


def is_queued(now: datetime) -> Q:
    """Filter reservations that have joined the queue."""
    return Q(joins_queue_at=None) | Q(joins_queue_at__lte=now)


def is_advance_booking(reservation: Reservation, now: datetime) -> bool:
    """Return whether a loaded reservation is pending and has not joined the queue."""
    is_pending = reservation.phase == Phase.PENDING
    return is_pending and reservation.joins_queue_at is not None and reservation.joins_queue_at > now


def queue_entry_time(session: LabletSession, pool: Pool) -> datetime | None:
    """Return when a session joins the queue; None if that is not after its request."""
    joins_at = session.starts_at - pool_lead_time(pool)
    return joins_at if joins_at > session.created_at else None


def pool_lead_time(pool: Pool) -> timedelta:
    """Return the pool's lead time; the default while its scheduler document is invalid."""
    try:
        return configured_lead_time(read_configuration(pool.scheduler))
    except InvalidConfiguration:
        return configured_lead_time(read_configuration(""))


def configured_lead_time(configuration: Configuration) -> timedelta:
    """Return the configured lead time; practically unlimited without the timeslot plugin."""
    found = (plugin for plugin in configuration.plugins() if isinstance(plugin, TimeslotPlugin))
    return timedelta(minutes=next((plugin.lead_minutes for plugin in found), 10**7))
