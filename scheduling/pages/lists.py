"""Lists of pools, slots and reservations, and the slot in the list of sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Count, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext, ngettext, ngettext_lazy
from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.web.list_columns import Column
from lcm.web.list_page import BulkAction, ListAddition, ListPage, PageAction
from lcm.web.resources import REQUIRED, amount_columns
from lcm.web.wording import Plural, duration_text
from scheduling import filters
from scheduling.models import Slot, SlotState
from scheduling.pages.pool_board import fullest, resource_meters
from scheduling.pages.supply import supply_of, supply_text
from scheduling.pages.texts import booked_text, ready_text, waiting_text
from scheduling.selectors.lead_time import is_advance_booking
from scheduling.selectors.pools import HALTED_STATES, pool_allocations, pool_state_name, pools
from scheduling.selectors.reservations import last_reservations, reservation_counts, reservations
from scheduling.selectors.slots import slots


def _pools_lead() -> str:
    rows = list(pools(timezone.now()))
    if not rows:
        return gettext("**No pools yet.** Sessions wait until there is a pool for their system.")
    waiting = sum(row.waiting for row in rows)
    halted = sum(row.state in HALTED_STATES for row in rows)
    more = sum(max(row.max_slots - row.occupied, 0) for row in rows if row.state == "enabled")
    slots = ready_text(sum(row.ready for row in rows), more)
    first = f"**{slots} · {waiting_text(waiting)}.**"
    if not halted:
        return first
    text = ngettext(
        "**%(count)s pool stopped or backing off.**", "**%(count)s pools stopped or backing off.**", halted
    )
    return f"{first} {text % {'count': f'{halted:,}'}}"


def _slots_lead() -> str:
    ready = Q(state=SlotState.READY)
    figures = Slot.objects.aggregate(
        troubled=Count("pk", filter=Q(state=SlotState.ERROR)),
        ready=Count("pk", filter=ready),
        leases=Sum("lease_count", filter=ready, default=0),
        most=Sum("max_leases", filter=ready, default=0),
    )
    troubled, used = figures["troubled"], figures["leases"]
    text = ngettext("**%(count)s slot in error.**", "**%(count)s slots in error.**", troubled)
    first = text % {"count": f"{troubled:,}"}
    if not figures["ready"]:
        return first
    leases = ngettext(
        "%(used)s of %(count)s lease in use", "%(used)s of %(count)s leases in use", figures["most"]
    ) % {"used": f"{used:,}", "count": f"{figures['most']:,}"}
    return f"{first} {ready_text(figures['ready'], 0)} · {leases}."


def _reservations_lead() -> str:
    held, waiting, booked = reservation_counts(timezone.now())
    placed = ngettext("%(count)s placed", "%(count)s placed", held) % {"count": f"{held:,}"}
    counts = [placed, waiting_text(waiting), *([booked_text(booked)] if booked else [])]
    return f"**{' · '.join(counts)}.** {gettext('A reservation is a claim on capacity.')}"


def _annotate_queue_entry(rows: Sequence[Any]) -> None:
    now = timezone.now()
    for row in rows:
        row.is_advance_booking = is_advance_booking(row, now)


def _oldest_wait(row: Any) -> str:
    return duration_text(timezone.now() - row.oldest_waiting_since) if row.oldest_waiting_since else ""


def _annotate_allocation_and_supply(rows: Sequence[Any]) -> None:
    """Add the fullest resource and the offerings of each pool."""
    now, uses = timezone.now(), pool_allocations(rows)
    for row in rows:
        row.supply = supply_text(supply_of(row, now=now))
        row.fullest = fullest(resource_meters(*uses[row.pk]))


def _sizes(row: Any) -> str:
    return f"{row.min_slots:,} / {row.warm_slots:,} / {row.max_slots:,}"


def _use(row: Any) -> str:
    return f"{row.fullest.label} {row.fullest.percent} %" if row.fullest else ""


def _annotate_slots(rows: Sequence[Any]) -> None:
    by_session = last_reservations([row.pk for row in rows])
    for row in rows:
        row.reservation = by_session.get(row.pk)


SESSION_SLOT = ListAddition(
    "sessions",
    columns=[
        Column(
            _("Slot"),
            lambda row: row.reservation.slot.name if row.reservation else "",
            cell="capacity/session_cells.html#slot",
        )
    ],
    export_columns=[
        Column(
            _("Slot"),
            lambda row: (
                row.reservation.slot.name if row.reservation and not row.reservation.released_at else ""
            ),
        )
    ],
    enrich_rows=_annotate_slots,
)

_POOL_COLUMNS = [
    Column(_("Pool"), lambda row: row.name, sort="name", cell="pool"),
    Column(_("State"), lambda row: pool_state_name(row.state), cell="state", phone="side"),
    Column(_("System"), lambda row: row.system, sort="system", cell="named"),
    Column(_("Runtime"), lambda row: row.runtime, sort="runtime", cell="named"),
    Column(_("Offerings"), lambda row: row.supply, css="nowrap", phone="below"),
    Column(_("Ready slots"), lambda row: row.ready, numeric=True, cell="ready", phone="end"),
    Column(_("Leases"), lambda row: row.leases, numeric=True, export_label=_("Leases used"), cell="leases"),
    Column(_("Use"), _use, numeric=True, export_label=_("Fullest resource"), cell="use"),
    Column(_("Waiting"), lambda row: row.waiting, numeric=True),
    Column(_("Oldest wait"), _oldest_wait, numeric=True, cell="oldest_wait"),
]
POOLS = ListPage(
    title=_("Capacity"),
    export_name="pools",
    counted=Plural(ngettext_lazy("%(count)s pool", "%(count)s pools")),
    search_label=_("Search pools"),
    no_match_title=_("No pool matches"),
    empty_title=_("No pools yet"),
    rows=lambda: pools(timezone.now()),
    filterset=filters.PoolFilter,
    columns=[*_POOL_COLUMNS, Column(_("Min / warm / max"), _sizes, sort="-max_slots", numeric=True)],
    cells="capacity/pool_cells.html",
    export_columns=[
        *_POOL_COLUMNS,
        Column(_("Min"), lambda row: row.min_slots),
        Column(_("Warm"), lambda row: row.warm_slots),
        Column(_("Max"), lambda row: row.max_slots),
    ],
    enrich_rows=_annotate_allocation_and_supply,
    default_sort="name",
    search_hint=_("Name, description, system, runtime"),
    icon="server-stack",
    empty_hint=_("A pool is a kind of worker with its number of slots, their capacity and their runtime."),
    lead=_pools_lead,
    actions=[
        PageAction(_("Slots"), "slot_list", Role.VIEWER, "squares-2x2"),
        PageAction(_("Reservations"), "reservation_list", Role.VIEWER, "ticket"),
        PageAction(_("New pool"), "pool_create", Role.ADMIN, "plus", primary=True),
    ],
)

_SLOT_COLUMNS = [
    Column(_("Slot"), lambda row: row.name, sort="number", cell="slot"),
    Column(_("State"), lambda row: row.get_state_display(), sort="state", cell="state", phone="side"),
    Column(_("Reason"), lambda row: row.reason, css="wide"),
    Column(_("Instance"), lambda row: row.instance_id, cell="instance"),
    Column(_("Offering"), lambda row: row.offering, cell="offering", empty="", phone="below"),
    Column(
        _("Leases"),
        lambda row: row.lease_count,
        sort="-lease_count",
        numeric=True,
        cell="leases",
        phone="end",
    ),
    Column(_("Since"), lambda row: row.last_state_change, sort="-last_state_change", numeric=True),
]
SLOTS = ListPage(
    title=_("Slots"),
    export_name="slots",
    counted=Plural(ngettext_lazy("%(count)s slot", "%(count)s slots")),
    search_label=_("Search slots"),
    no_match_title=_("No slot matches"),
    empty_title=_("No slots yet"),
    rows=slots,
    filterset=filters.SlotFilter,
    columns=_SLOT_COLUMNS,
    cells="capacity/slot_cells.html",
    export_columns=[
        *_SLOT_COLUMNS,
        Column(_("Cordoned"), lambda row: row.cordoned),
        Column(_("Spot"), lambda row: row.is_spot),
        Column(_("Interruption"), lambda row: row.interruption_deadline),
    ],
    default_sort="-last_state_change",
    search_hint=_("Slot, pool, instance, address"),
    icon="squares-2x2",
    empty_hint=_("A pool creates slots when it launches its first workers."),
    lead=_slots_lead,
    bulk=[
        BulkAction(_("Cordon…"), "slot_bulk_cordon", Role.OPERATOR),
        BulkAction(_("Uncordon…"), "slot_bulk_uncordon", Role.OPERATOR),
        BulkAction(_("Retry…"), "slot_bulk_retry", Role.OPERATOR),
        BulkAction(_("Drain…"), "slot_bulk_drain", Role.OPERATOR, danger=True),
    ],
)

RESERVATIONS = ListPage(
    title=_("Reservations"),
    export_name="reservations",
    counted=Plural(ngettext_lazy("%(count)s reservation", "%(count)s reservations")),
    search_label=_("Search reservations"),
    no_match_title=_("No reservation matches"),
    empty_title=_("No reservations yet"),
    rows=reservations,
    filterset=filters.ReservationFilter,
    columns=[
        Column(_("Reservation"), lambda row: str(row.pk), export_label=_("ID"), cell="id"),
        Column(_("Phase"), lambda row: row.get_phase_display(), sort="phase", cell="phase", phone="side"),
        Column(_("For"), lambda row: str(row.session_id or row.holder), cell="for", phone="below"),
        Column(_("Pool"), lambda row: row.pool.name, cell="pool"),
        Column(_("Slot"), lambda row: row.slot.name if row.slot else "", cell="slot"),
        *amount_columns(REQUIRED, sortable=False),
        Column(_("Priority"), lambda row: row.get_priority_display(), sort="-priority"),
        Column(
            _("Ends"),
            lambda row: row.expires_at,
            numeric=True,
            export_label=_("Expires"),
            cell="ends",
            empty="",
        ),
        Column(
            _("Requested"),
            lambda row: row.created_at,
            sort="-created_at",
            numeric=True,
            cell="requested",
            phone="end",
        ),
    ],
    cells="capacity/reservation_cells.html",
    enrich_rows=_annotate_queue_entry,
    default_sort="-created_at",
    search_hint=_("ID, session, holder"),
    icon="ticket",
    empty_hint=_("Every session has a reservation. API clients can reserve capacity without a session."),
    lead=_reservations_lead,
    bulk=[BulkAction(_("Cancel…"), "reservation_bulk_cancel", Role.OPERATOR, danger=True)],
)
