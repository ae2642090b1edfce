from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class SchedulingConfig(AppConfig):
    name = "scheduling"
    verbose_name = _("Capacity")

    def ready(self) -> None:
        from lcm.monitoring import metrics
        from scheduling import checks, receivers  # noqa: F401  (warnings at start; sessions get reservations)
        from scheduling.coordination.coordinator import coordinator, register_handler
        from scheduling.coordination.handlers import BUILT_IN
        from scheduling.metrics import capacity_figures
        from scheduling.placement.framework.plugin import plugins

        metrics.FLEET_COLLECTORS.append(capacity_figures)
        for handler in BUILT_IN:
            register_handler(handler())
        # Load plugins and observers of other packages at start, so that a broken package is reported at once.
        plugins()
        coordinator.load_observers()
        _add_controller_fields()
        _show_on_pages()


def _add_controller_fields() -> None:
    """Add slots and allocated ports to the sessions that the controller API returns."""
    from lcm.selectors import controller_sessions
    from scheduling.selectors import controller_assignments as capacity

    controller_sessions.SESSION_FIELDS |= {
        "slot": capacity.slots_of_sessions,
        "allocated_ports": capacity.ports_of_sessions,
    }
    controller_sessions.NODES_BY_SLOT.append(capacity.nodes_by_slot)
    controller_sessions.SESSIONS_ON_SLOT.append(capacity.sessions_on_slot)
    controller_sessions.SESSIONS_EVER_ON_SLOT.append(capacity.sessions_ever_on_slot)


def _show_on_pages() -> None:
    """Register navigation entries, session columns and panels, and change log filters."""
    from lcm.domain.lifecycle import SessionStatus
    from lcm.pages.account import SUGGESTERS
    from lcm.pages.lists import SESSIONS
    from lcm.web import (
        attention,
        filters,
        forms,
        navigation,
        object_links,
        overview,
        panels,
        search,
        session_location,
    )
    from lcm.web.list_page import replace_list
    from scheduling.pages import bulk_reservations, bulk_slots, lists
    from scheduling.pages.overview import capacity_attention_items, pools_part, queue_part, waiting_clause
    from scheduling.pages.reservations import place_of_session
    from scheduling.pages.search import find_pools, find_slots
    from scheduling.selectors.pools import pool_names, suggest_pools

    forms.register_names("pools", pool_names)
    bulk_slots.register_actions()
    bulk_reservations.register_actions()
    replace_list(SESSIONS, lists.SESSIONS)
    search.register_finder("slots", search.Finder(_("Slots"), find_slots, "slot_list"))
    search.register_finder("pools", search.Finder(_("Pools"), find_pools, "pool_list"))
    attention.register_attention("capacity", capacity_attention_items)
    overview.register_overview_panel(
        overview.OverviewPanel("pools", "wide", "overview/pools.html", pools_part)
    )
    overview.register_overview_panel(
        overview.LazyPanel("ticks", "side", _("Tick duration"), "overview_ticks")
    )
    overview.register_overview_panel(
        overview.OverviewPanel("queue", "side", "overview/queue.html", queue_part, waiting_clause)
    )

    queue = navigation.NavEntry(
        "queue", _("Queue"), "queue_list", ("/queue/", "/ticks/", "/decisions/"), "queue-list"
    )
    navigation.register_entry("", queue, after="sessions")
    pages = ("/pools/", "/slots/", "/reservations/")
    entry = navigation.NavEntry("capacity", _("Capacity"), "pool_list", pages, "server-stack")
    navigation.register_entry("Plan", entry, after="definitions")
    observers = navigation.NavEntry("observers", _("Observers"), "observer_list", "/observers/", "eye")
    navigation.register_entry("System", observers)
    panels.register_panel(
        page="session-first",
        name="why",
        title=_("Wait reasons"),
        url_name="session_wait_reasons",
        when=lambda session: session.status == SessionStatus.PENDING,
    )
    SUGGESTERS["pools"] = suggest_pools
    session_location.register_session_location(place_of_session)
    panels.register_panel(page="session", name="capacity", title=_("Capacity"), url_name="session_capacity")
    filters.OBJECT_TYPES += [("pool", _("Pool")), ("slot", _("Slot")), ("reservation", _("Reservation"))]
    object_links.OBJECT_PAGES |= {
        "pool": "pool_detail",
        "slot": "slot_detail",
        "reservation": "reservation_detail",
    }
