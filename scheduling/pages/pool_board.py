"""A pool's board: a tile for each slot, a dashed tile for each empty place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.utils.translation import gettext as _

from lcm.domain.resources import Amounts
from lcm.models.messages import translated
from lcm.web.charts.bars import Share
from lcm.web.wording import age_text, amount_text, duration_text
from scheduling.models import IN_FLIGHT, Pool, Slot, SlotState
from scheduling.pages.texts import countdown, overdue
from scheduling.selectors.slots import SlotAllocation, board_slots, empty_places, slot_allocations

# Rendering a tile takes a third of a millisecond, and more tiles at once are hard to read.
MAX_TILES = 60


@dataclass(frozen=True)
class ResourceMeter:
    """The used share of a resource."""

    label: str
    unit: str
    used: Decimal
    most: Decimal
    binds: bool = False

    @property
    def share(self) -> Decimal:
        return self.used / self.most if self.most else Decimal(0)

    @property
    def text(self) -> str:
        return f"{amount_text(self.used)} / {amount_text(self.most)}"

    @property
    def percent(self) -> int:
        return int(self.share * 100)


@dataclass(frozen=True)
class Tile:
    """One slot, or one free slot number, of the board."""

    name: str
    status: str
    label: str
    pk: UUID | None = None
    slot: Slot | None = None
    mark: str = ""
    title: str = ""
    text: str = ""
    meters: list[ResourceMeter] = field(default_factory=list)
    stage: ResourceMeter | None = None
    age: str = ""


@dataclass(frozen=True)
class Board:
    """One page of a pool's slots and free slot numbers."""

    tiles: list[Tile]
    page: int
    first: int
    total: int
    # Number of places without a worker.
    empty: int

    @property
    def last(self) -> int:
        return self.first + len(self.tiles) - 1

    @property
    def next(self) -> int | None:
        return self.page + 1 if self.last < self.total else None

    @property
    def previous(self) -> int | None:
        return self.page - 1 if self.page > 1 else None


def board_of(pool: Pool, *, now: datetime, occupied: int, page: int = 1, limit: int = MAX_TILES) -> Board:
    """Return a page of a pool's tiles: slots that need attention first, empty places last."""
    total = max(pool.max_slots, occupied)
    page = max(min(page, -(-total // limit)), 1)
    start = (page - 1) * limit
    slots = board_slots(pool, now=now, start=start, limit=limit)
    uses = slot_allocations(pool, slots)
    tiles = [slot_tile(slot, uses[slot.pk], now=now) for slot in slots]
    if len(tiles) < limit:
        places = empty_places(pool, start=max(start - occupied, 0), limit=limit - len(tiles))
        empty = str(SlotState.EMPTY.label)
        tiles += [Tile(f"{pool.name}-{number:02}", SlotState.EMPTY, empty, pk) for number, pk in places]
    return Board(tiles, page, start + 1, total, empty=total - occupied)


def states_of(by_state: Mapping[str, int]) -> list[Share]:
    """Return the number of slots in each state other than EMPTY."""
    return [
        Share(state.label, by_state.get(state, 0), state) for state in SlotState if state != SlotState.EMPTY
    ]


def slot_tile(slot: Slot, use: SlotAllocation, *, now: datetime) -> Tile:
    title, text = _trouble(slot, now)
    state = slot.get_state_display()
    mark = ("bad" if slot.state == SlotState.ERROR else "warn") if title else ""
    return Tile(
        name=slot.name,
        status="CORDONED" if slot.cordoned else slot.state,
        label=_("%(state)s, cordoned") % {"state": state} if slot.cordoned else state,
        pk=slot.pk,
        slot=slot,
        mark=mark,
        title=title,
        text=text,
        meters=meters_of(slot, use) if slot.state in (SlotState.READY, SlotState.DRAINING) else [],
        stage=_stage(slot, now) if slot.state in IN_FLIGHT else None,
        age=age_text(now - slot.last_state_change),
    )


def meters_of(slot: Slot, use: SlotAllocation) -> list[ResourceMeter]:
    """Return the meters of a worker; the scarcest resource is marked."""
    pool = slot.pool
    ports = Decimal(pool.last_port - pool.first_port + 1)
    return with_binding(
        [
            *resource_meters(use.allocated, slot.amounts),
            ResourceMeter(_("Ports"), "", Decimal(use.ports), ports),
        ]
    )


def resource_meters(used: Amounts, capacity: Amounts) -> list[ResourceMeter]:
    return [
        ResourceMeter(
            translated(resource.label),
            "" if resource.is_counted else translated(resource.unit),
            used[resource.name],
            most,
        )
        for resource, most in capacity
        if most
    ]


def with_binding(meters: list[ResourceMeter]) -> list[ResourceMeter]:
    fullest = max((meter.share for meter in meters), default=Decimal(0))
    return [replace(each, binds=each.share == fullest > 0) for each in meters]


def fullest(meters: Sequence[ResourceMeter]) -> ResourceMeter | None:
    return max(meters, key=lambda meter: meter.share, default=None)


def _trouble(slot: Slot, now: datetime) -> tuple[str, str]:
    """Return the problem of a slot as a title and a sentence; empty if there is none."""
    if slot.interruption_deadline:
        left = slot.interruption_deadline - now
        if left > timedelta(0):
            text = _("Terminates in **%(time)s**") % {"time": countdown(left)}
            return _("Interrupted by the provider."), text
        return _("Interrupted by the provider."), _("The deadline has passed.")
    if slot.state == SlotState.ERROR:
        wait = slot.state_deadline - now if slot.state_deadline else timedelta(0)
        retry_text = _("Retries soon")
        if wait > timedelta(0):
            retry_text = _("Retries in %(time)s") % {"time": duration_text(wait)}
        return f"{slot.reason.rstrip('.')}." if slot.reason else _("Failed."), retry_text
    if overdue(slot, now=now) and slot.state_deadline:
        late = duration_text(now - slot.state_deadline)
        return _("Overdue by %(time)s.") % {"time": late}, _("Ends at the next reconciliation")
    return "", ""


def _stage(slot: Slot, now: datetime) -> ResourceMeter | None:
    """Return how much of the time limit of this state has passed."""
    if slot.state_deadline is None:
        return None
    limit = Decimal(round((slot.state_deadline - slot.last_state_change).total_seconds()))
    elapsed = Decimal(round((now - slot.last_state_change).total_seconds()))
    return ResourceMeter(slot.get_state_display(), "s", max(elapsed, Decimal(0)), limit)
