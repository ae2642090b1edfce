"""Events about observations, port drift and reviews."""

from django.utils.translation import gettext_lazy as _

from lcm.events.catalog import EventType, Severity
from lcm.events.event_types import DEFINITION, SESSION

EVENT_TYPES = (
    EventType(
        "observation.resources_observed", _("Resources observed"),
        _("A controller posted what a session uses and has allocated."), SESSION,
        after={
            "total_cpu_cores": "4.00", "total_memory_mb": 8192, "used_cpu_cores": "1.25",
            "used_memory_mb": 3584, "missing": [],
        },
    ),
    EventType(
        "observation.port_drift_detected", _("Port drift detected"),
        _("The ports of a running lab differ from the plan."), SESSION, Severity.WARNING,
        after={"drift": [{"kind": "extra", "name": "r1_vnc", "allocated": None, "observed": 7990}]},
    ),
    EventType(
        "observation.port_drift_cleared", _("Port drift cleared"),
        _("The ports of the lab match the plan again."), SESSION, after={"drift": []},
    ),
    EventType(
        "definition.flagged", _("Definition flagged for review"),
        _("The requirement of a definition differs significantly from its use."), DEFINITION,
        Severity.WARNING, after={"reasons": ["CPU: 10 cores is too much, 4 cores recommended."]},
    ),
    EventType(
        "definition.cleared", _("Review no longer needed"),
        _("The requirement of a definition matches its use again."), DEFINITION, after={"reasons": []},
    ),
    EventType(
        "definition.verified", _("Revision verified"),
        _("The sessions after a revision stayed within its limits."), DEFINITION,
        after={"revision": 3, "outcome": "verified"},
    ),
    EventType(
        "definition.regressed", _("Revision regressed"),
        _("The sessions after a revision exceeded its limits."), DEFINITION, Severity.WARNING,
        after={"revision": 3, "outcome": "regressed"},
    ),
)  # fmt: skip
