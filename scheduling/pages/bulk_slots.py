"""Bulk actions on slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Sum

from lcm.domain.actors import Actor
from lcm.web.bulk_actions import BulkOperation, Work, for_each_row, register_bulk
from lcm.web.wording import count_text
from scheduling.models import DRAINABLE, LIVE, Slot, SlotState
from scheduling.pages.lists import SLOTS
from scheduling.services import slots as services


def _each(service: Callable[..., Slot], **fixed: Any) -> Work:
    def do(slot: Slot, given: Mapping[str, Any], actor: Actor, now: datetime) -> Slot:
        return service(slot=slot, reason=given["reason"], actor=actor, now=now, **fixed)

    return for_each_row(do)


def _in(*states: SlotState, **fields: Any) -> Callable[[QuerySet[Slot]], QuerySet[Slot]]:
    return lambda rows: rows.filter(state__in=states, **fields)


def _leases_on(rows: QuerySet[Slot]) -> str:
    """Format the number of leases on the selected slots."""
    leases: int = rows.order_by().aggregate(sum=Sum("lease_count", default=0))["sum"]
    if not leases:
        return "The slots have no leases."
    return f"{count_text(leases, 'lease')} in use on these slots."


CORDON = BulkOperation(
    name="cordon-slots",
    page=SLOTS,
    list_url="slot_list",
    verb="Cordon",
    past="cordoned",
    can_be="cordoned",
    effect="The slots get no new sessions. Running sessions stay.",
    describe_extent=_leases_on,
    rest="Slots without a worker and cordoned slots are skipped.",
    eligible_rows=_in(*LIVE, cordoned=False),
    run=_each(services.cordon_slot, cordoned=True),
)
UNCORDON = BulkOperation(
    name="uncordon-slots",
    page=SLOTS,
    list_url="slot_list",
    verb="Uncordon",
    past="uncordoned",
    can_be="uncordoned",
    effect="The slots can get sessions again.",
    rest="Slots that are not cordoned are skipped.",
    eligible_rows=_in(*LIVE, cordoned=True),
    run=_each(services.cordon_slot, cordoned=False),
)
RETRY = BulkOperation(
    name="retry-slots",
    page=SLOTS,
    list_url="slot_list",
    verb="Retry",
    past="made available",
    can_be="retried",
    effect="The slots are available at once, and the back-off of their pools ends.",
    rest="Only slots in error that have no session can be.",
    eligible_rows=_in(SlotState.ERROR, lease_count=0),
    run=_each(services.retry_slot),
)
DRAIN = BulkOperation(
    name="drain-slots",
    page=SLOTS,
    list_url="slot_list",
    verb="Drain",
    past="set to drain",
    can_be="drained",
    effect="Running sessions continue to their end. Then the workers terminate.",
    describe_extent=_leases_on,
    rest="Only slots that are booting, binding or ready can be.",
    eligible_rows=_in(*DRAINABLE),
    run=_each(services.drain_slot),
    danger=True,
)


def register_actions() -> None:
    for action in (CORDON, UNCORDON, RETRY, DRAIN):
        register_bulk(action)
