"""What scheduling adds: reservations, slots and pools on shared pages, the controller API and metrics."""

from django.utils.translation import gettext_lazy as _

from lcm.domain.lifecycle import SessionStatus
from lcm.web.navigation import NavEntry
from lcm.web.object_links import ObjectKind
from lcm.web.overview import LazyPanel, OverviewPanel
from lcm.web.panels import Panel
from lcm.web.search import Finder
from scheduling.coordination.handlers import BUILT_IN
from scheduling.event_types import EVENT_TYPES, observer_url
from scheduling.extensions import SchedulingExtension
from scheduling.metrics import capacity_figures
from scheduling.pages import bulk_reservations, bulk_slots
from scheduling.pages.access import access_panel
from scheduling.pages.first_steps import FIRST_STEPS
from scheduling.pages.lists import SESSION_SLOT
from scheduling.pages.overview import capacity_attention_items, pools_part, queue_part, waiting_clause
from scheduling.pages.queue import wait_reasons_panel
from scheduling.pages.reservations import capacity_panel, location_of_session
from scheduling.pages.search import find_pools, find_slots
from scheduling.pages.session_fit import fit_preview
from scheduling.periodic import specs
from scheduling.selectors import controller_assignments as assignments
from scheduling.selectors.pools import pool_names, suggest_pools
from scheduling.services.pool_choice import requirement_warning
from scheduling.services.reservations import reserve_for_session
from scheduling.services.session_effects import update_priority, update_reservations

NAVIGATION = (
    NavEntry(
        "queue",
        _("Queue"),
        "queue_list",
        ("/queue/", "/ticks/", "/decisions/"),
        "queue-list",
        after="sessions",
        shortcut="q",
    ),
    NavEntry(
        "capacity",
        _("Capacity"),
        "pool_list",
        ("/pools/", "/slots/", "/reservations/"),
        "server-stack",
        group="Plan",
        after="definitions",
        shortcut="c",
    ),
    NavEntry(
        "observers", _("Observers"), "observer_list", "/observers/", "eye", group="System", shortcut="b"
    ),
)
EXTENSION = SchedulingExtension(
    navigation=NAVIGATION,
    panels=(
        Panel(
            "session-first",
            "why",
            _("Wait reasons"),
            "session_wait_reasons",
            when=lambda session: session.status == SessionStatus.PENDING,
            render=wait_reasons_panel,
            is_slow=True,
        ),
        Panel("session-first", "access", _("How to connect"), "session_access", render=access_panel),
        Panel("session", "capacity", _("Capacity"), "session_capacity", render=capacity_panel),
    ),
    overview=(
        OverviewPanel("pools", "wide", "overview/pools.html", pools_part),
        LazyPanel("ticks", "side", _("Tick duration"), "overview_ticks"),
        OverviewPanel("queue", "side", "overview/queue.html", queue_part, waiting_clause),
    ),
    first_steps=FIRST_STEPS,
    attention=(capacity_attention_items,),
    finders=(
        Finder(_("Slots"), find_slots, "slot_list"),
        Finder(_("Pools"), find_pools, "pool_list"),
    ),
    lists=(SESSION_SLOT,),
    bulk_actions=(
        bulk_slots.CORDON,
        bulk_slots.UNCORDON,
        bulk_slots.RETRY,
        bulk_slots.DRAIN,
        bulk_reservations.MOVE_WAITING,
        bulk_reservations.CANCEL_WAITING,
        bulk_reservations.CANCEL_BARE,
    ),
    objects={
        "pool": ObjectKind(_("Pool"), "pool_detail", is_watchable=True),
        "slot": ObjectKind(_("Slot"), "slot_detail", is_watchable=True),
        "reservation": ObjectKind(_("Reservation"), "reservation_detail"),
        "observer": ObjectKind(_("Observer"), observer_url),
    },
    suggestions={"pools": suggest_pools},
    token_pools=(pool_names,),
    requirement_warnings=(requirement_warning,),
    request_previews=(fit_preview,),
    session_location=(location_of_session,),
    events=EVENT_TYPES,
    controller_fields={
        "slot": assignments.slots_of_sessions,
        "allocated_ports": assignments.ports_of_sessions,
    },
    nodes_by_slot=(assignments.nodes_by_slot,),
    sessions_on_slot=(assignments.sessions_on_slot,),
    sessions_ever_on_slot=(assignments.sessions_ever_on_slot,),
    session_created=(reserve_for_session,),
    session_priority_changed=(update_priority,),
    sessions_moved=(update_reservations,),
    handlers=tuple(handler() for handler in BUILT_IN),
    periodic=(specs,),
    metrics=(capacity_figures,),
)
