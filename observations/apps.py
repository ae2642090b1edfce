from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ObservationsConfig(AppConfig):
    name = "observations"
    verbose_name = "Observations"

    def ready(self) -> None:
        from lcm.monitoring import metrics
        from lcm.selectors import controller_sessions, sessions
        from observations import receivers  # noqa: F401  (connects the receivers)
        from observations.filters import add_filters
        from observations.livestats import prometheus_settings  # noqa: F401  (registers the system check)
        from observations.metrics import observation_figures
        from observations.observers import ServiceDiscoveryObserver
        from observations.selectors.requests import open_requests
        from observations.selectors.sessions import planned_and_observed
        from scheduling.coordination.coordinator import register_observer

        metrics.FLEET_COLLECTORS.append(observation_figures)
        register_observer(ServiceDiscoveryObserver())
        controller_sessions.OPEN_REQUESTS["observe"] = open_requests
        sessions.DETAILS.append(planned_and_observed)
        add_filters()
        _show_on_pages()


def _show_on_pages() -> None:
    """Register the navigation items, panels and list columns of observations."""
    from lcm.pages.lists import DEFINITIONS
    from lcm.web import navigation, overview, panels
    from lcm.web.attention import register_attention
    from lcm.web.list_page import replace_list
    from observations.pages import drift_acknowledgement, evidence, lists
    from observations.pages.attention_items import observation_attention_items
    from observations.selectors.drift import has_drifted
    from observations.selectors.live import has_lab

    drift_acknowledgement.register_actions()
    evidence.register_actions()
    replace_list(DEFINITIONS, lists.DEFINITIONS)
    register_attention("observations", observation_attention_items)
    overview.register_overview_panel(
        overview.LazyPanel("busiest", "wide", _("Busiest sessions"), "busiest_sessions")
    )
    entry = navigation.NavEntry("drift", _("Port drift"), "drift_list", "/port-drift/", "arrows-right-left")
    navigation.register_entry("Plan", entry, after="capacity")
    navigation.add_prefix("definitions", "/observations/")
    controllers = navigation.NavEntry(
        "controllers", _("Controllers"), "controller_list", "/controllers/", "server"
    )
    navigation.register_entry("System", controllers, after="tokens")
    panels.register_panel(page="definition", name="review", title=_("Review"), url_name="definition_review")
    panels.register_panel(
        page="definition",
        name="ports",
        title=_("Port review"),
        url_name="definition_port_review",
        when=has_drifted,
    )
    panels.register_panel(page="definition", name="drift", title=_("Port drift"), url_name="definition_drift")
    panels.register_panel(
        page="session-wide", name="live", title=_("Live"), url_name="session_live", when=has_lab
    )
    panels.register_panel(
        page="slot",
        name="live",
        title=_("Live"),
        url_name="slot_live",
        when=lambda slot: slot.lease_count > 0,
    )
    panels.register_panel(
        page="session", name="observed", title=_("Observation"), url_name="session_observation"
    )
