"""What observations add: reviews, live figures and port drift on shared pages and in the API."""

from django.utils.translation import gettext_lazy as _

from lcm.web.navigation import NavEntry
from lcm.web.object_links import ObjectKind
from lcm.web.overview import LazyPanel
from lcm.web.panels import Panel
from observations.event_types import EVENT_TYPES, controllers_url
from observations.filters import ADDED_FILTERS
from observations.metrics import observation_figures
from observations.observers import ServiceDiscoveryObserver
from observations.pages import drift_acknowledgement, evidence
from observations.pages.attention_items import observation_attention_items
from observations.pages.lists import ASSESSED_DEFINITIONS
from observations.pages.review_snooze import snooze_after_revert
from observations.pages.sessions import observation_panels
from observations.periodic import specs
from observations.selectors.drift import has_drifted
from observations.selectors.live import has_lab, has_live_figures
from observations.selectors.requests import open_requests
from observations.selectors.sessions import planned_and_observed
from observations.services.assessments import create_assessment, reassess_definition
from observations.services.port_drift import transfer_shown_ports
from observations.services.presence import delete_presence, save_presence
from observations.services.session_effects import update_observations
from scheduling.extensions import SchedulingExtension

NAVIGATION = (
    NavEntry(
        "drift",
        _("Port drift"),
        "drift_list",
        "/port-drift/",
        "arrows-right-left",
        group="Plan",
        after="capacity",
        shortcut="r",
    ),
    NavEntry(
        "controllers",
        _("Controllers"),
        "controller_list",
        "/controllers/",
        "server",
        group="System",
        after="tokens",
        shortcut="n",
    ),
)
EXTENSION = SchedulingExtension(
    navigation=NAVIGATION,
    navigation_prefixes={"definitions": "/observations/"},
    panels=(
        Panel("definition", "review", _("Review"), "definition_review"),
        Panel("definition", "ports", _("Port review"), "definition_port_review", when=has_drifted),
        Panel("definition", "drift", _("Port drift"), "definition_drift"),
        Panel(
            "session-wide", "live", _("Live"), "session_live", when=has_lab, is_configured=has_live_figures
        ),
        Panel(
            "slot",
            "live",
            _("Live"),
            "slot_live",
            when=lambda slot: slot.lease_count > 0,
            is_configured=has_live_figures,
        ),
        Panel("session", "observed", _("Observation"), "session_observation", render=observation_panels),
    ),
    overview=(
        LazyPanel(
            "busiest", "wide", _("Busiest sessions"), "busiest_sessions", is_configured=has_live_figures
        ),
    ),
    attention=(observation_attention_items,),
    objects={"presence": ObjectKind(_("Controller"), controllers_url)},
    after_revert=(snooze_after_revert,),
    lists=(ASSESSED_DEFINITIONS,),
    filters=ADDED_FILTERS,
    bulk_actions=(drift_acknowledgement.ACKNOWLEDGE, evidence.EXCLUDE, evidence.INCLUDE),
    events=EVENT_TYPES,
    session_details=(planned_and_observed,),
    open_requests={"observe": open_requests},
    sessions_moved=(update_observations,),
    definition_created=(create_assessment,),
    definition_revised=(reassess_definition,),
    process_heartbeat=(save_presence,),
    process_stopped=(delete_presence,),
    ports_released=(transfer_shown_ports,),
    observers=(ServiceDiscoveryObserver(),),
    periodic=(specs,),
    metrics=(observation_figures,),
)
