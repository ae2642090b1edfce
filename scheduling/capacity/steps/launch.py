"""Steps 4 and 5: launch slots for unmet demand, for the minimum and the warm slots. Only writes intent."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduling.capacity.launcher import may_launch, redrive_wait
from scheduling.capacity.steps.context import TickContext
from scheduling.models import LaunchAttempt, Pool, Slot, SlotState
from scheduling.placement.framework.demand import slots_needed
from scheduling.selectors.launchable_slots import LaunchableSlots, LaunchIntent
from scheduling.selectors.new_slots import incoming_supplies
from scheduling.selectors.slots import emptying_slots, occupied_slots, serving_slots
from scheduling.services.pool_announcements import announce_maximum, end_maximum
from scheduling.services.slots import move_slots

# Launches per transaction.
BATCH_SIZE = 500


def launch_for_demand(tick: TickContext) -> None:
    """Launch the slots that unmet reservations need beyond the incoming ones."""
    if not tick.unmet:
        # If the placement failed, the demand is unknown.
        if not tick.errors:
            end_maximum(tick.pool, now=tick.now)
        return
    if not may_launch(tick.pool, tick.now):
        return
    most = tick.pool.max_slots - occupied_slots(tick.pool)
    if most <= 0:
        _note_maximum(tick)
        return
    end_maximum(tick.pool, now=tick.now)
    stock = LaunchableSlots(tick.new_slots, tick.runtime, most=most, now=tick.now)
    incoming = incoming_supplies(tick.new_slots, now=tick.now)
    needed = slots_needed(tick.unmet, incoming, stock.supplies(), limit=most)
    begin_launches(tick, [stock.take_for_node(node) for node in needed.new], "launched_for_demand")


def _note_maximum(tick: TickContext) -> None:
    """Announce once that the maximum is why sessions wait: no slot is starting or becoming free."""
    pool = tick.pool
    if pool.maximum_announced_at is None and not (
        serving_slots(pool, now=tick.now).in_flight or emptying_slots(pool)
    ):
        announce_maximum(pool, waiting=len(tick.unmet), now=tick.now)


def keep_minimum(tick: TickContext) -> None:
    """Launch slots up to the pool's minimum and its number of idle warm slots."""
    pool = tick.pool
    serving = serving_slots(pool, now=tick.now)
    lacking = pool.min_slots - serving.ready - serving.in_flight
    if pool.warm_slots:
        lacking = max(lacking, pool.warm_slots - serving.idle - serving.in_flight + _claimed_slots(tick))
    if lacking <= 0 or not may_launch(pool, tick.now):
        return
    free = pool.max_slots - occupied_slots(pool)
    if free > 0:
        stock = LaunchableSlots(tick.new_slots, tick.runtime, most=free, now=tick.now)
        count = max(min(lacking, free - _reserved_for_on_demand(tick, stock, free)), 0)
        begin_launches(tick, stock.of_any_kind(count), "launched_for_minimum")


def _reserved_for_on_demand(tick: TickContext, stock: LaunchableSlots, free: int) -> int:
    """Return how many slots stay EMPTY for non-preemptible work while on-demand capacity is refused.

    A spot slot launched instead would have to be drained as soon as on-demand may be requested again.
    """
    if not tick.unmet or not stock.lacks_on_demand:
        return 0
    incoming = incoming_supplies(tick.new_slots, now=tick.now)
    needed = slots_needed(tick.unmet, incoming, stock.supplies(refused=True), limit=free)
    return int(any(not node.spot for node in needed.new))


def _claimed_slots(tick: TickContext) -> int:
    """Return how many incoming slots the waiting jobs will use."""
    return (
        slots_needed(tick.unmet, incoming_supplies(tick.new_slots, now=tick.now)).claimed if tick.unmet else 0
    )


def begin_launches(tick: TickContext, intents: Sequence[LaunchIntent], name: str) -> None:
    """Record the launches of a tick: a slot and an open attempt each."""
    pairs = _slots_for_intents(tick.pool, intents)
    for start in range(0, len(pairs), BATCH_SIZE):
        if not tick.is_lease_held():
            return
        attempts = begin_launches_on(pairs[start : start + BATCH_SIZE], now=tick.now)
        tick.attempts.extend(attempt.pk for attempt in attempts)
        tick.count(name, len(attempts))


def begin_launches_on(pairs: Sequence[tuple[Slot, LaunchIntent]], *, now: datetime) -> list[LaunchAttempt]:
    """Record launches on slots of one pool; slots that are no longer EMPTY are skipped."""
    slots = [slot for slot, _ in pairs]
    intent_of = {slot.pk: intent for slot, intent in pairs}
    with transaction.atomic():
        launching = move_slots(
            slots=slots, old=SlotState.EMPTY, to=SlotState.LAUNCHING, now=now, **_size(slots[0].pool)
        )
        due = now + redrive_wait(0)
        attempts = [
            LaunchAttempt(
                slot=slot,
                token=uuid.uuid4().hex,
                on_demand_only=intent_of[slot.pk].on_demand_only,
                worker=intent_of[slot.pk].worker,
                requested_at=now,
                due_at=due,
            )
            for slot in launching
        ]
        return LaunchAttempt.objects.bulk_create(attempts)


def _slots_for_intents(pool: Pool, intents: Sequence[LaunchIntent]) -> list[tuple[Slot, LaunchIntent]]:
    """Return EMPTY slots within the pool's maximum, and create missing ones.

    A listed worker goes to the slot of its number, which keeps the worker's history.
    """
    intents = intents[: max(pool.max_slots - occupied_slots(pool), 0)]
    if not intents:
        return []
    known = dict(Slot.objects.filter(pool=pool).values_list("number", "state"))
    free = [n for n in range(1, pool.max_slots + 1) if known.get(n, SlotState.EMPTY) == SlotState.EMPTY]
    numbers = _slot_numbers(intents, free)
    new = [Slot(pool=pool, number=number, **_size(pool)) for number in numbers if number not in known]
    Slot.objects.bulk_create(new, ignore_conflicts=True)
    empty = Slot.objects.select_related("pool").filter(pool=pool, state=SlotState.EMPTY)
    between = empty.filter(number__gte=min(numbers), number__lte=max(numbers)) if numbers else empty.none()
    return [(slot, numbers[slot.number]) for slot in between.order_by("number") if slot.number in numbers]


def _slot_numbers(intents: Sequence[LaunchIntent], free: Sequence[int]) -> dict[int, LaunchIntent]:
    """Return the number an intent names if it is free, and the lowest free numbers for the others."""
    free_numbers = dict.fromkeys(free)
    numbers = {intent.number: intent for intent in intents if intent.number in free_numbers}
    other_numbers = (number for number in free if number not in numbers)
    other_intents = (intent for intent in intents if intent.number not in free_numbers)
    return numbers | dict(zip(other_numbers, other_intents, strict=False))


def _size(pool: Pool) -> dict[str, Any]:
    """Return the capacity of a new slot by the pool's current settings."""
    return {"max_leases": pool.max_leases, **pool.amounts.as_dict()}
