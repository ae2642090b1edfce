"""A pool's board: a tile for each slot, a dashed tile for each empty place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.utils.translation import gettext as _

from lcm.web.charts.bars import Share
from lcm.web.wording import amount_text, duration_text
from scheduling.capacity.resources import Resources, resources_of
from scheduling.models import IN_FLIGHT, Pool, Slot, SlotState
from scheduling.pages.texts import countdown, overdue
from scheduling.selectors.slots import SlotAllocation, board_slots, empty_places, slot_allocations

# Rendering a tile takes a third of a millisecond, and more tiles at once are hard to read.
MOST_TILES = 60


@dataclass(frozen=True)
class ResourceMeter:
    """The used share of a resource."""

    label: str
    unit: str
    taken: Decimal
    most: Decimal
    binds: bool = False

    @property
    def share(self) -> Decimal:
        return self.taken / self.most if self.most else Decimal(0)

    @property
    def text(self) -> str:
        return f"{amount_text(self.taken)} / {amount_text(self.most)}"

    @property
    def percent(self) -> int:
        return int(self.share * 100)


@dataclass(frozen=True)
class Tile:
    """One place of the board."""

    name: str
    look: str
    word: str
    pk: UUID | None = None
    slot: Slot | None = None
    mark: str = ""
    title: str = ""
    text: str = ""
    countdown: str = ""
    meters: list[ResourceMeter] = field(default_factory=list)
    stage: ResourceMeter | None = None
    age: str = ""


@dataclass(frozen=True)
class Board:
    """One page of a pool's places."""

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


def board_of(pool: Pool, *, now: datetime, occupied: int, page: int = 1, limit: int = MOST_TILES) -> Board:
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
    title, text, left = _trouble(slot, now)
    state = slot.get_state_display()
    mark = ("bad" if slot.state == SlotState.ERROR else "warn") if title else ""
    return Tile(
        name=slot.name,
        look="CORDONED" if slot.cordoned else slot.state,
        word=_("%(state)s, cordoned") % {"state": state} if slot.cordoned else state,
        pk=slot.pk,
        slot=slot,
        mark=mark,
        title=title,
        text=text,
        countdown=left,
        meters=meters_of(slot, use) if slot.state in (SlotState.READY, SlotState.DRAINING) else [],
        stage=_stage(slot, now) if slot.state in IN_FLIGHT else None,
        age=duration_text(now - slot.last_state_change, units=1),
    )


def meters_of(slot: Slot, use: SlotAllocation) -> list[ResourceMeter]:
    """Return the meters of a worker; the scarcest resource is marked."""
    pool = slot.pool
    ports = Decimal(pool.last_port - pool.first_port + 1)
    return with_binding(
        [
            *resource_meters(use.taken, resources_of(slot)),
            ResourceMeter(_("Ports"), "", Decimal(use.ports), ports),
        ]
    )


def resource_meters(taken: Resources, room: Resources) -> list[ResourceMeter]:
    meters = [
        ResourceMeter("CPU", _("cores"), taken.cpu_cores, room.cpu_cores),
        ResourceMeter(_("Memory"), "GB", taken.memory_gb, room.memory_gb),
        ResourceMeter(_("Storage"), "GB", taken.storage_gb, room.storage_gb),
        ResourceMeter("GPU", "", taken.gpu, room.gpu),
    ]
    return [meter for meter in meters if meter.most]


def with_binding(meters: list[ResourceMeter]) -> list[ResourceMeter]:
    fullest = max((meter.share for meter in meters), default=Decimal(0))
    return [replace(each, binds=each.share == fullest > 0) for each in meters]


def fullest(meters: Sequence[ResourceMeter]) -> ResourceMeter | None:
    return max(meters, key=lambda meter: meter.share, default=None)


def _trouble(slot: Slot, now: datetime) -> tuple[str, str, str]:
    """Return the problem of a slot: a title, a sentence and a countdown; empty if there is none."""
    if slot.interruption_deadline:
        left = slot.interruption_deadline - now
        if left > timedelta(0):
            return _("Interrupted by the provider."), _("Terminates in"), countdown(left)
        return _("Interrupted by the provider."), _("The deadline has passed."), ""
    if slot.state == SlotState.ERROR:
        wait = slot.state_deadline - now if slot.state_deadline else timedelta(0)
        again = _("Retries soon")
        if wait > timedelta(0):
            again = _("Retries in %(time)s") % {"time": duration_text(wait)}
        return f"{slot.reason.rstrip('.')}." if slot.reason else _("Failed."), again, ""
    if overdue(slot, now=now) and slot.state_deadline:
        late = duration_text(now - slot.state_deadline)
        return _("Overdue by %(time)s.") % {"time": late}, _("Ends at the next reconciliation"), ""
    return "", "", ""


def _stage(slot: Slot, now: datetime) -> ResourceMeter | None:
    """Return how much of the time limit of this state has passed."""
    if slot.state_deadline is None:
        return None
    whole = Decimal(round((slot.state_deadline - slot.last_state_change).total_seconds()))
    gone = Decimal(round((now - slot.last_state_change).total_seconds()))
    return ResourceMeter(slot.get_state_display(), "s", max(gone, Decimal(0)), whole)
