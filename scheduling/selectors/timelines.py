"""Timelines of slots, pools and sessions: the entries of the change log that concern them.

The sessions of a slot or pool come from the reservations that overlap a window of time, so the cost
does not grow with the log. A window in the past also reads the reservations that ended since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from lcm.models import ChangeLog, LabletSession
from lcm.selectors.organisation import changes_of
from scheduling.models import ACTIVE_PHASES, EndedPart, Phase, Pool, Reservation, ReservationPart, Slot

# A timeline shows the sessions of at most this many reservations.
MOST_RESERVATIONS = 5_000
# SQLite allows a depth of 1,000 in an expression, and each alternative adds one.
MOST_ALTERNATIVES = 400
# What happened to a session before it was on a slot.
BEFORE_A_SLOT = ("session.requested", "session.moved", "session.wait_target_exceeded")


@dataclass
class Timeline:
    """Entries from `start` up to, and without, `end`; `is_cut` if the window has too many sessions."""

    start: datetime
    end: datetime
    # Objects whose entries all belong to the timeline.
    ids: list[str] = field(default_factory=list)
    # Other objects, each for a part of its life.
    parts: Q = field(default_factory=Q)
    without_events: Sequence[str] = ()
    is_cut: bool = False

    @property
    def rows(self) -> QuerySet[ChangeLog]:
        found = Q(object_id__in=self.ids) | self.parts
        rows = ChangeLog.objects.filter(found, at__gte=self.start, at__lt=self.end)
        return rows.exclude(event__in=self.without_events) if self.without_events else rows


def slot_timeline(slot: Slot, *, start: datetime, end: datetime) -> Timeline:
    """Return the entries of a slot, and of the sessions and other reservations while they are on it."""
    timeline = Timeline(start, end, [str(slot.pk)], without_events=BEFORE_A_SLOT)
    stays = []
    parts = ReservationPart.objects.filter(slot=slot).values_list("reservation_id", flat=True)
    current = Reservation.objects.filter(Q(slot=slot) | Q(pk__in=list(parts)), phase=Phase.READY)
    ended = Reservation.objects.filter(pool=slot.pool_id, slot=slot)
    spread = EndedPart.objects.filter(slot=slot).values("reservation_id")
    ended_parts = Reservation.objects.filter(pk__in=spread).exclude(slot=slot)
    names = ("pk", "session_id", "session__attempt", "assigned_at", "released_at")
    for key, session_id, attempt, since, until in _overlapping(
        timeline, current, [ended, ended_parts], *names
    ):
        if session_id is None or attempt == 1:
            timeline.ids.append(str(session_id or key))
        else:
            # Another attempt may have been on another slot.
            stays.append(_during(session_id, since, until))
    for first in range(0, len(stays), MOST_ALTERNATIVES):
        group = reduce(or_, stays[first : first + MOST_ALTERNATIVES])
        # Django nests a group in the others only if it is part of another condition.
        timeline.parts |= group & Q(at__lt=end)
    return timeline


def pool_timeline(pool: Pool, *, start: datetime, end: datetime) -> Timeline:
    """Return the entries of a pool, its slots and its reservations with their sessions."""
    slots = list(Slot.objects.filter(pool=pool).order_by().values_list("pk", flat=True))
    timeline = Timeline(start, end, [str(pool.pk), *map(str, slots)])
    current = Reservation.objects.filter(
        Q(pool=pool, phase=Phase.PENDING) | Q(slot__in=slots, phase=Phase.READY), phase__in=ACTIVE_PHASES
    )
    rows = _overlapping(timeline, current, [Reservation.objects.filter(pool=pool)], "pk", "session_id")
    timeline.ids += {str(session_id or key) for key, session_id in rows}
    return timeline


def session_timeline(session: LabletSession, *, start: datetime, end: datetime) -> Timeline:
    """Return the entries of a session, and of its slots while it was on them, without others' ports."""
    timeline = Timeline(start, end, [str(session.pk)])
    for slot_id, since, until in _stays_of(session):
        own = ~Q(event__startswith="slot.ports_") | Q(message__contains=str(session))
        timeline.parts |= _during(slot_id, since, until) & own
    return timeline


def _stays_of(session: LabletSession) -> set[tuple[Any, ...]]:
    """Return each slot of a session with the time on it; a spread session has several slots at once."""
    names = ("assigned_at", "released_at")
    stays = Reservation.objects.filter(session=session, slot__isnull=False)
    found = set(stays.values_list("slot_id", *names))
    if stays.filter(spread=True).exists():
        for part in (ReservationPart, EndedPart):
            rows = part.objects.filter(reservation__in=stays)
            found |= set(rows.values_list("slot_id", *(f"reservation__{name}" for name in names)))
    return found


def recent_entries(slot: Slot, *, start: datetime, end: datetime, limit: int) -> list[ChangeLog]:
    """Return the newest entries of a slot and of its sessions in the window."""
    found = {entry.pk: entry for entry in changes_of(slot, limit)}
    rows = slot_timeline(slot, start=start, end=end).rows.order_by("-at", "-pk")
    found |= {entry.pk: entry for entry in rows[:limit]}
    return sorted(found.values(), key=lambda entry: (entry.at, entry.pk), reverse=True)[:limit]


def _overlapping(
    timeline: Timeline, current: QuerySet[Reservation], ended: Sequence[QuerySet[Reservation]], *names: str
) -> list[tuple[Any, ...]]:
    """Return values of the reservations that overlap the window, of the newest ones if there are too many."""
    begun = Coalesce("assigned_at", "created_at")
    rows: list[tuple[Any, ...]] = []
    newest = [each.filter(released_at__gte=timeline.start).order_by("-released_at") for each in ended]
    for part in (current, *newest):
        chosen = part.alias(begun=begun).filter(begun__lt=timeline.end)
        rows += chosen.values_list(*names)[: MOST_RESERVATIONS + 1 - len(rows)]
    timeline.is_cut = len(rows) > MOST_RESERVATIONS
    return rows[:MOST_RESERVATIONS]


def _during(key: UUID | None, since: datetime | None, until: datetime | None) -> Q:
    """Match the entries of an object in this time; without an end, until now."""
    found = Q(object_id=str(key))
    if since is not None:
        found &= Q(at__gte=since)
    return found & Q(at__lte=until) if until is not None else found
