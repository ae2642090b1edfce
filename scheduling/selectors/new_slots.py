"""Properties of a pool's new slots: launchable and incoming ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

from django.db.models import BooleanField, Case, Count, F, FilteredRelation, Q, QuerySet, Value, When

from scheduling.capacity.offerings import markets_of
from scheduling.capacity.runtimes.base import ListedWorker, Market, RuntimeFailure
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.models import LIVE, OCCUPIED, AttemptOutcome, Pool, Slot, SlotState
from scheduling.models.slots import readable_labels
from scheduling.placement.framework.demand import SlotSupply
from scheduling.placement.framework.model import Node
from scheduling.selectors.allocated_resources import whole_units
from scheduling.selectors.slots import is_in_flight, is_slot_in_flight

Labels = Mapping[str, str]
AnyPool = TypeVar("AnyPool", bound=Pool)


@dataclass(frozen=True)
class NewSlots:
    """New slots by the pool's settings."""

    pool: Pool
    # Every set of labels that a new slot can have.
    labels: Sequence[Labels]
    # Markets that are offered and allowed, in order of preference.
    markets: Sequence[Market]
    # Listed workers; empty where instances are started.
    workers: Sequence[ListedWorker] = ()

    @property
    def spot_only(self) -> bool:
        return Market.ON_DEMAND not in self.markets

    @cached_property
    def templates(self) -> list[Node]:
        """Return an empty slot of each kind; on-demand if there is a choice."""
        new = Node(
            name=f"{self.pool.name}-new",
            capacity=self.pool.amounts.to_hundredths(),
            system=self.pool.system,
            spot=self.spot_only,
            max_leases=self.pool.max_leases,
            ports=self.pool.port_count,
        )
        return [
            replace(new, name=f"{new.name}-{number}" if number > 1 else new.name, labels=labels)
            for number, labels in enumerate(self.labels, 1)
        ]

    def node_for_launch(self, *, on_demand_only: bool, worker: str) -> Node:
        """Return the slot of a launch with this intent; assumed to be spot as long as it may be."""
        labels = self._by_worker.get(worker, self.labels[0])
        return replace(
            self.templates[0], labels=labels, spot=Market.SPOT in self.markets and not on_demand_only
        )

    @cached_property
    def _by_worker(self) -> dict[str, Labels]:
        return {worker.name: worker.labels for worker in self.workers}


def new_slots_of(pool: Pool) -> NewSlots:
    """Return the new slots by the pool's current settings, even if these are invalid."""
    markets = markets_of(pool)
    try:
        runtime = runtime_for(pool)
        offered_markets = {offering.market for offering in runtime.offerings()}
        workers = list(runtime.workers())
    except RuntimeFailure:
        return NewSlots(pool, [_labels_in(pool.runtime_settings)], markets)
    if len(markets) > 1:
        markets = tuple(market for market in markets if market in offered_markets) or markets
    labels = _distinct(worker.labels for worker in workers) or [runtime.labels_of("")]
    return NewSlots(pool, labels, markets, workers)


def _labels_in(settings: object) -> Labels:
    labels = settings.get("labels") if isinstance(settings, dict) else None
    return labels if isinstance(labels, dict) else {}


def _distinct(labels: Iterable[Labels]) -> list[Labels]:
    return list({tuple(sorted(each.items())): each for each in labels}.values())


def is_spot_only(pool: Pool) -> bool:
    """Return whether all launches are spot, by policy or because nothing else is offered."""
    markets = markets_of(pool)
    return markets == (Market.SPOT,) or (len(markets) > 1 and new_slots_of(pool).spot_only)


def pools_with_labels(pools: Sequence[AnyPool], labels: Labels) -> list[AnyPool]:
    """Return the pools that launch slots with all the labels, or have such a slot."""
    if not labels:
        return list(pools)
    sets = {pool.pk: list(new_slots_of(pool).labels) for pool in pools}
    slots = Slot.objects.filter(pool__in=pools, state__in=LIVE).order_by()
    for pool_id, own in slots.values_list("pool_id", "labels").distinct():
        sets[pool_id].append(readable_labels(own))
    return [pool for pool in pools if any(labels.items() <= own.items() for own in sets[pool.pk])]


def incoming_supplies(new_slots: NewSlots, *, now: datetime) -> list[SlotSupply]:
    """Return the incoming slots as empty slots, grouped by kind."""
    slots = with_intent(Slot.objects.filter(is_in_flight(now), pool=new_slots.pool)).annotate(
        launching=_is_launching(), **whole_units()
    )
    columns = ("launching", "on_demand_only", "for_worker", "labels", "is_spot", "max_leases", *whole_units())
    rows: Any = slots.order_by().values_list(*columns).annotate(Count("pk"))
    return [
        SlotSupply(
            replace(_incoming_node(new_slots, *row[:5]), max_leases=row[5], capacity=row[6:-1]), row[-1]
        )
        for row in rows
    ]


def slots_in_transition(pool: Pool) -> list[Any]:
    """Return slots that are neither READY nor EMPTY, with their intent, earliest deadline first."""
    moving = Slot.objects.filter(pool=pool, state__in=OCCUPIED).exclude(state=SlotState.READY)
    return list(with_intent(moving).order_by("state_deadline", "number"))


def incoming_nodes(new_slots: NewSlots, slots: Iterable[Any], *, now: datetime) -> list[tuple[Slot, Node]]:
    """Return the slots (from `with_intent`) that will become READY, as empty nodes."""
    return [(slot, _node(new_slots, slot)) for slot in slots if is_slot_in_flight(slot, now)]


def _node(new_slots: NewSlots, slot: Any) -> Node:
    launching = slot.state == SlotState.LAUNCHING
    return replace(
        _incoming_node(new_slots, launching, slot.on_demand_only, slot.for_worker, slot.labels, slot.is_spot),
        name=f"{new_slots.pool.name}-{slot.number:02}",
        id=slot.pk.hex,
        capacity=slot.amounts.to_hundredths(),
        max_leases=slot.max_leases,
    )


def _incoming_node(
    new_slots: NewSlots,
    launching: bool,
    on_demand_only: bool | None,
    worker: str | None,
    labels: Labels,
    spot: bool,
) -> Node:
    # A slot that is still being requested has neither labels nor a market yet: use its intent.
    if launching:
        return new_slots.node_for_launch(on_demand_only=bool(on_demand_only), worker=worker or "")
    return replace(new_slots.templates[0], labels=readable_labels(labels), spot=spot)


def with_intent(slots: QuerySet[Slot]) -> QuerySet[Any]:
    """Add the intent of the open attempt to slots that are launching."""
    attempt = FilteredRelation("attempts", condition=Q(attempts__outcome=AttemptOutcome.OPEN))
    return slots.annotate(
        attempt=attempt, on_demand_only=F("attempt__on_demand_only"), for_worker=F("attempt__worker")
    )


def _is_launching() -> Case:
    launching = When(state=SlotState.LAUNCHING, then=Value(True))
    return Case(launching, default=Value(False), output_field=BooleanField())


def free_workers(new_slots: NewSlots) -> list[tuple[int, ListedWorker]]:
    """Return listed workers that no slot has and no launch intends, with their position in the list.

    Workers that did not respond come last, the least recently tried first.
    """
    if not new_slots.workers:
        return []
    slots = with_intent(Slot.objects.filter(pool=new_slots.pool).exclude(state=SlotState.EMPTY))
    in_use = {name for names in slots.values_list("instance_id", "for_worker") for name in names}
    free = [pair for pair in enumerate(new_slots.workers, 1) if pair[1].name not in in_use]
    failed = new_slots.pool.failed_workers
    return sorted(free, key=lambda pair: failed.get(pair[1].name, ""))
