"""Events about observations, port drift, reviews and controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from pydantic import Field

from lcm.events.catalog import EventData, EventSubject, EventType, Severity
from lcm.events.event_types import DEFINITION, SESSION
from lcm.models import ApiToken
from observations.models import Presence


class ControllerData(EventData):
    """Data of an event about a controller."""

    pool: str | None = Field(
        default=None, description="Pool of its token, if it has one pool.", examples=["cml-eu"]
    )
    seen_at: datetime | None = Field(
        default=None, description="Last heartbeat.", examples=["2026-03-02T08:55:00Z"]
    )


def _controllers(ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    rows = Presence.objects.filter(pk__in=ids).select_related("token").order_by()
    return {str(row.pk): {"pool": _only_pool(row.token), "seen_at": row.seen_at} for row in rows}


def _only_pool(token: ApiToken | None) -> str | None:
    pools = token.pools if token else []
    return pools[0] if len(pools) == 1 else None


def controllers_url(key: str) -> str:
    return reverse("controller_list")


CONTROLLER = EventSubject("presence", ControllerData, _controllers, controllers_url)

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
        "observation.port_conflict_detected", _("Port conflict detected"),
        _("A running lab uses a port of another session on the same worker."), SESSION, Severity.CRITICAL,
        after={"conflicts": [
            {"kind": "conflict", "name": "r1_vnc", "allocated": 2001, "observed": 2007, "other": "9d1e07f2"}
        ]},
    ),
    EventType(
        "observation.port_drift_cleared", _("Port drift cleared"),
        _("The ports of the lab match the plan again."), SESSION, after={"drift": []},
    ),
    EventType(
        "controller.silent", _("Controller silent"),
        _("A controller that serves whole pools has sent no heartbeat for five minutes."), CONTROLLER,
        Severity.CRITICAL,
    ),
    EventType(
        "controller.back", _("Controller back"), _("A silent controller sends heartbeats again."), CONTROLLER,
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
