"""Steps 4 and 5: slots for what did not fit, and the minimum and warm ones. Only intent is written here."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduling.capacity import resources_of
from scheduling.framework.demand import slots_needed
from scheduling.launching import may_launch, redrive_wait
from scheduling.models import IN_FLIGHT, OCCUPIED, LaunchAttempt, Pool, Slot, SlotState
from scheduling.selectors.capacity import serving_slots
from scheduling.selectors.snapshots import template_of
from scheduling.services.slots import move_slots
from scheduling.steps.context import TickContext

# Launches that are begun in one transaction.
COMMIT = 500


def launch_for_demand(tick: TickContext) -> None:
    """As many slots as the unmet reservations would fill, less those already on their way."""
    if not tick.unmet:
        return
    in_flight = Slot.objects.filter(pool=tick.pool, state__in=IN_FLIGHT, interruption_deadline=None).count()
    most = in_flight + tick.pool.max_slots - _occupied(tick.pool)
    needed = slots_needed(tick.unmet, template_of(tick.pool), limit=most)
    begin_launches(tick, needed - in_flight, "launched_for_demand")


def keep_minimum(tick: TickContext) -> None:
    """The minimum of slots altogether, and the warm ones that nobody is on."""
    pool = tick.pool
    serving = serving_slots(pool)
    on_their_way = serving.in_flight
    claimed = slots_needed(tick.unmet, template_of(pool), limit=on_their_way) if tick.unmet else 0
    lacking = max(
        pool.min_slots - serving.ready - on_their_way,
        pool.warm_slots - serving.idle - (on_their_way - claimed),
    )
    begin_launches(tick, lacking, "launched_to_keep")


def begin_launches(tick: TickContext, wanted: int, name: str) -> None:
    """Write the intent for up to this many launches: a slot each, an open attempt each."""
    if wanted <= 0 or not may_launch(tick.pool, tick.now):
        return
    places = _free_places(tick.pool, wanted)
    for start in range(0, len(places), COMMIT):
        if not tick.still_mine():
            return
        begun = begin_launch_of(places[start : start + COMMIT], now=tick.now)
        tick.attempts.extend(attempt.pk for attempt in begun)
        tick.count(name, len(begun))


def begin_launch(slot: Slot, *, now: datetime) -> LaunchAttempt | None:
    """EMPTY → LAUNCHING together with the attempt that will fill it; None when someone else was first."""
    return next(iter(begin_launch_of([slot], now=now)), None)


def begin_launch_of(slots: Sequence[Slot], *, now: datetime) -> list[LaunchAttempt]:
    """The same for many slots of a pool; those that are not EMPTY any more stay out of it."""
    with transaction.atomic():
        won = move_slots(
            slots=slots, old=SlotState.EMPTY, to=SlotState.LAUNCHING, now=now, **_size(slots[0].pool)
        )
        due = now + redrive_wait(0)
        attempts = [
            LaunchAttempt(slot=slot, token=uuid.uuid4().hex, requested_at=now, due_at=due) for slot in won
        ]
        return LaunchAttempt.objects.bulk_create(attempts)


def _free_places(pool: Pool, wanted: int) -> list[Slot]:
    """EMPTY slots within the maximum, made when there are too few of them."""
    wanted = min(wanted, pool.max_slots - _occupied(pool))
    if wanted <= 0:
        return []
    numbers = set(Slot.objects.filter(pool=pool).values_list("number", flat=True))
    free = Slot.objects.filter(pool=pool, state=SlotState.EMPTY, number__lte=pool.max_slots)
    missing = wanted - free.count()
    new = [number for number in range(1, pool.max_slots + 1) if number not in numbers][: max(missing, 0)]
    Slot.objects.bulk_create([_new_slot(pool, number) for number in new], ignore_conflicts=True)
    return list(free.select_related("pool").order_by("number")[:wanted])


def _new_slot(pool: Pool, number: int) -> Slot:
    return Slot(pool=pool, number=number, **_size(pool))


def _occupied(pool: Pool) -> int:
    """What counts against the maximum."""
    return Slot.objects.filter(pool=pool, state__in=OCCUPIED).count()


def _size(pool: Pool) -> dict[str, Any]:
    """What a slot of this pool holds, as the pool is now."""
    return {"max_leases": pool.max_leases, **vars(resources_of(pool))}
