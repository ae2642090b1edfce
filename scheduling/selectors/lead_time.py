"""Whose turn it is: who booked ahead waits from a while before the timeslot on, not from when they asked."""

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

# Of a reservation: since when it waits.
QUEUED_SINCE = Coalesce("turn_at", "created_at")


def is_queued(now: datetime) -> Q:
    """Reservations whose turn has come."""
    return Q(turn_at=None) | Q(turn_at__lte=now)


def is_advance_booking(reservation: Reservation, now: datetime) -> bool:
    """Of one that has been read: it waits, and its turn has not come."""
    waits = reservation.phase == Phase.PENDING
    return waits and reservation.turn_at is not None and reservation.turn_at > now


def queue_entry_time(session: LabletSession, pool: Pool) -> datetime | None:
    """When the turn of a session comes; None when that is not after it was asked for."""
    turn = session.starts_at - pool_lead_time(pool)
    return turn if turn > session.created_at else None


def pool_lead_time(pool: Pool) -> timedelta:
    """A document that cannot be used places nobody; until it is mended its lead is the usual one."""
    try:
        return configured_lead_time(read_configuration(pool.scheduler))
    except InvalidConfiguration:
        return configured_lead_time(read_configuration(""))


def configured_lead_time(configuration: Configuration) -> timedelta:
    """How long before its timeslot someone's turn comes; where nobody asks, it always has."""
    found = (plugin for plugin in configuration.plugins() if isinstance(plugin, TimeslotPlugin))
    return timedelta(minutes=next((plugin.lead_minutes for plugin in found), 10**7))
