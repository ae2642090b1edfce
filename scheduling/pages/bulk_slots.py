"""Bulk actions on slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, Sum
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.actors import Actor
from lcm.web.bulk_actions import BulkOperation, BulkTexts, Work, for_each_row
from lcm.web.wording import Plural
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
        return gettext("The slots have no leases.")
    text = ngettext(
        "%(count)s lease in use on these slots.", "%(count)s leases in use on these slots.", leases
    )
    return text % {"count": f"{leases:,}"}


CORDON = BulkOperation(
    name="cordon-slots",
    page=SLOTS,
    list_url="slot_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Cordon %(count)s slot", "Cordon %(count)s slots")),
        question=Plural(ngettext_lazy("Cordon %(count)s slot?", "Cordon %(count)s slots?")),
        result=Plural(ngettext_lazy("%(count)s slot cordoned.", "%(count)s slots cordoned.")),
        effect=_("The slots get no new sessions. Running sessions stay."),
        none_eligible=Plural(
            ngettext_lazy("This slot cannot be cordoned", "None of the %(count)s slots can be cordoned")
        ),
        some_eligible=_("%(count)s of %(selected)s slots can be cordoned."),
        ineligible=_("Slots without a worker and cordoned slots are skipped."),
    ),
    describe_extent=_leases_on,
    eligible_rows=_in(*LIVE, cordoned=False),
    run=_each(services.cordon_slot, cordoned=True),
)
UNCORDON = BulkOperation(
    name="uncordon-slots",
    page=SLOTS,
    list_url="slot_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Uncordon %(count)s slot", "Uncordon %(count)s slots")),
        question=Plural(ngettext_lazy("Uncordon %(count)s slot?", "Uncordon %(count)s slots?")),
        result=Plural(ngettext_lazy("%(count)s slot uncordoned.", "%(count)s slots uncordoned.")),
        effect=_("The slots can get sessions again."),
        none_eligible=Plural(
            ngettext_lazy("This slot cannot be uncordoned", "None of the %(count)s slots can be uncordoned")
        ),
        some_eligible=_("%(count)s of %(selected)s slots can be uncordoned."),
        ineligible=_("Slots that are not cordoned are skipped."),
    ),
    eligible_rows=_in(*LIVE, cordoned=True),
    run=_each(services.cordon_slot, cordoned=False),
)
RETRY = BulkOperation(
    name="retry-slots",
    page=SLOTS,
    list_url="slot_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Retry %(count)s slot", "Retry %(count)s slots")),
        question=Plural(ngettext_lazy("Retry %(count)s slot?", "Retry %(count)s slots?")),
        result=Plural(ngettext_lazy("%(count)s slot made available.", "%(count)s slots made available.")),
        effect=_("The slots are available at once, and the back-off of their pools ends."),
        none_eligible=Plural(
            ngettext_lazy("This slot cannot be retried", "None of the %(count)s slots can be retried")
        ),
        some_eligible=_("%(count)s of %(selected)s slots can be retried."),
        ineligible=_("Only slots in error without sessions can be retried."),
    ),
    eligible_rows=_in(SlotState.ERROR, lease_count=0),
    run=_each(services.retry_slot),
)
DRAIN = BulkOperation(
    name="drain-slots",
    page=SLOTS,
    list_url="slot_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Drain %(count)s slot", "Drain %(count)s slots")),
        question=Plural(ngettext_lazy("Drain %(count)s slot?", "Drain %(count)s slots?")),
        result=Plural(ngettext_lazy("%(count)s slot set to drain.", "%(count)s slots set to drain.")),
        effect=_("Running sessions continue to their end. Then the workers terminate."),
        none_eligible=Plural(
            ngettext_lazy("This slot cannot be drained", "None of the %(count)s slots can be drained")
        ),
        some_eligible=_("%(count)s of %(selected)s slots can be drained."),
        ineligible=_("Only slots that are booting, binding or ready can be drained."),
    ),
    describe_extent=_leases_on,
    eligible_rows=_in(*DRAINABLE),
    run=_each(services.drain_slot),
    danger=True,
)
