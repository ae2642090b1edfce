"""Whose turn it is: who booked ahead waits from a while before the timeslot on, not from when they asked."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Coalesce

from lcm.models import LabletSession
from scheduling.models import Phase, Pool, Reservation
from scheduling.placement.framework.configuration import Configuration, WrongConfiguration, read_configuration
from scheduling.placement.plugins.timeslot import TimeslotPlugin

# Of a reservation: since when it waits.
WAITS_FROM = Coalesce("turn_at", "created_at")


def in_turn(now: datetime) -> Q:
    """Reservations whose turn has come."""
    return Q(turn_at=None) | Q(turn_at__lte=now)


def is_ahead(reservation: Reservation, now: datetime) -> bool:
    """Of one that has been read: it waits, and its turn has not come."""
    waits = reservation.phase == Phase.PENDING
    return waits and reservation.turn_at is not None and reservation.turn_at > now


def turn_of(session: LabletSession, pool: Pool) -> datetime | None:
    """When the turn of a session comes; None when that is not after it was asked for."""
    turn = session.starts_at - lead_of(pool)
    return turn if turn > session.created_at else None


def lead_of(pool: Pool) -> timedelta:
    """A document that cannot be used places nobody; until it is mended its lead is the usual one."""
    try:
        return lead_in(read_configuration(pool.scheduler))
    except WrongConfiguration:
        return lead_in(read_configuration(""))


def lead_in(configuration: Configuration) -> timedelta:
    """How long before its timeslot someone's turn comes; where nobody asks, it always has."""
    found = (plugin for plugin in configuration.plugins() if isinstance(plugin, TimeslotPlugin))
    return timedelta(minutes=next((plugin.lead_minutes for plugin in found), 10**7))
