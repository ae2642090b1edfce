"""The OpenAPI document is accurate: schemathesis generates requests from it and checks every response.

The coverage phase sends boundary values of every parameter and field, and values just outside.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.utils import timezone
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from fairshare.models import FairShare
from lcm.demo.loader import load_demo, run_observers
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import (
    ApiToken,
    ChangeLog,
    Delivery,
    Domain,
    EventRule,
    LabletDefinition,
    LabletSession,
    Project,
    SavedView,
    User,
    Watch,
    Webhook,
)
from lcm.services.event_routing import inbox_delivery
from lcm.services.subscriptions import watch_object
from observations.models import DriftReview
from scheduling.models import Pool, Reservation, Slot
from tests.support.factories import LAB, make_controller, make_delivery, make_person, make_person_token

pytestmark = [pytest.mark.sqlite, pytest.mark.slow]

CONFIG: dict[str, Any] = {
    "phases": {name: {"enabled": False} for name in ("examples", "fuzzing", "stateful")},
    "generation": {
        "deterministic": True,
        "database": "none",
        # A request carries the test's token, or none where a check omits it.
        "with-security-parameters": False,
    },
    "checks": {
        # Like 409, 412 and 422: a well-formed request that conflicts with stored data.
        "positive_data_acceptance": {"expected-statuses": ["2xx", 401, 403, 404, 409, 412, 422]},
        "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 412, 415, 422]},
    },
}
# A request may match the schema and still be rejected: a schema cannot state the rules of these fields.
RULES = {
    # Several fields together.
    "__all__",
    # The name or id of an existing object, or the name of a kind of objects.
    *("definition", "domain", "object_id", "object_type", "owner", "person", "pool", "port_template"),
    *("project", "recipients", "runtime", "scopes", "type", "user", "webhook", "weights"),
    # E-mail needs a mail server.
    "channel",
    # A time or an amount that depends on the clock, another field or stored data.
    *("deadline", "digest_interval", "ends_at", "expires_at", "max_duration", "requirements", "resources"),
    *("resource_weights", "spot_policy", "starts_at", "until"),
    # Text with its own grammar.
    *(
        "cursor",
        "event_types",
        "labels",
        "name",
        "runtime_settings",
        "scheduler",
        "slot_labels",
        "topology",
        "url",
    ),
}
RULES_OF = {
    # A timeline covers at most 31 days.
    "GET /api/pools/{id}/timeline/": {"since"},
    "GET /api/slots/{id}/timeline/": {"since"},
    # Node labels and outside ports are unique, and a port names a node.
    "POST /api/lablet-definitions/": {"nodes", "port_template"},
    # Changing some fields requires a reason.
    "PATCH /api/fair-share-policies/{id}/": {"reason"},
    "PATCH /api/pools/{id}/": {"reason"},
    "POST /api/lablet-definitions/{id}/status/": {"reason"},
    # A user name and an address have their own grammar, and a query of a list a length when encoded.
    "POST /api/users/": {"email", "projects", "username"},
    "POST /api/saved-views/": {"list_name", "query"},
    "PATCH /api/saved-views/{id}/": {"query"},
    # A choice of “custom” needs a value greater than 0.
    "POST /api/lablet-definitions/{id}/apply/": {"cpu_cores", "memory_gb", "storage_gb"},
    "POST /api/lablet-definitions/{id}/preview/": {"cpu_cores", "memory_gb", "storage_gb"},
}
ID = re.compile("[0-9]{1,18}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@cache
def handler() -> WSGIHandler:
    return WSGIHandler()


def rolled_back(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """LCM as a WSGI application that rolls back every request, so that requests are independent."""
    with transaction.atomic():
        response = b"".join(handler()(environ, start_response))
        transaction.set_rollback(True)
    return [response]


@pytest.fixture
def kept_connection(db: None) -> Iterator[None]:
    """Keep the connection of the test's transaction at the end of a request, as Django's test client does."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def admin_key(kept_connection: None, settings: Any) -> str:
    """The token of an Admin of the demo fleet."""
    rates = dict.fromkeys(("API_RATE", "CONTROLLER_RATE", "LOGIN_FAILURE_RATE"), "1000000/min")
    settings.CONFIG = {**settings.CONFIG, **rates}
    load_demo(now=timezone.now())
    run_observers()
    return make_person_token(make_person("ada", Role.ADMIN)).key


def document(admin_key: str, key: str) -> Any:
    """The document, for authenticated requests."""
    config = schemathesis.Config.from_dict({**CONFIG, "auth": {"openapi": {"token": {"bearer": key}}}})
    headers = {"Authorization": f"Bearer {admin_key}"}
    return schemathesis.openapi.from_wsgi(
        "/api/schema?format=json", rolled_back, config=config, headers=headers
    )


@pytest.fixture
def for_admin(admin_key: str) -> Any:
    return document(admin_key, admin_key)


@pytest.fixture
def for_controller(admin_key: str) -> Any:
    return document(admin_key, make_controller("controller-eu", "pool:cml-eu", "pool:cml-us").key)


@pytest.fixture
def stored(admin_key: str) -> dict[str, Any]:
    """Stored objects for requests: ids by first URL segment, values by field name."""
    running = LabletSession.objects.filter(status=SessionStatus.RUNNING)[0]
    webhook = make_delivery(timezone.now())[0]
    caller = User.objects.get(username="ada")
    view = SavedView.objects.create(list_name="sessions", name="Own", owner=caller)
    entry = inbox_delivery(caller, timezone.now(), type="slot.ready", payload=json.dumps(EXAMPLE))
    entry.save()
    slot = Slot.objects.all()[0]
    watch_object(user=caller, obj=slot, now=timezone.now())
    rows = {
        "changes": ChangeLog.objects.all(),
        "deliveries": Delivery.objects.all(),
        "domains": Domain.objects.all(),
        "event-rules": EventRule.objects.all(),
        "fair-share-policies": Pool.objects.all(),
        "fair-shares": FairShare.objects.all(),
        "inbox": Delivery.objects.filter(pk=entry.pk),
        "lablet-definitions": LabletDefinition.objects.all(),
        "lablet-sessions": LabletSession.objects.filter(pk=running.pk),
        "pools": Pool.objects.all(),
        "port-drift": DriftReview.objects.all(),
        "projects": Project.objects.all(),
        "reservations": Reservation.objects.filter(session=running),
        "saved-views": SavedView.objects.filter(pk=view.pk),
        "slots": Slot.objects.exclude(instance_id=""),
        "tokens": ApiToken.objects.all(),
        "watches": Watch.objects.filter(user=caller),
        "users": User.objects.all(),
        "webhooks": Webhook.objects.all(),
        "explain": LabletSession.objects.filter(status=SessionStatus.PENDING),
        "move": LabletSession.objects.filter(status=SessionStatus.PENDING),
    }
    return {name: str(found[0].pk) for name, found in rows.items()} | {
        "definition": str(running.definition_id),
        "domain": str(running.project.domain_id),
        "event_types": ["session.*"],
        "ends_at": (timezone.now() + timedelta(hours=4)).isoformat(),
        "object_id": str(slot.pk),
        "object_type": "slot",
        "owner": str(running.owner_id),
        "pool": running.pool,
        "project": str(running.project_id),
        "starts_at": (timezone.now() + timedelta(hours=3)).isoformat(),
        "topology": LAB,
        "until": (timezone.now() + timedelta(days=1)).isoformat(),
        "url": "https://hooks.example.org/lcm",
        "user": str(running.owner_id),
        "webhook": str(webhook.pk),
    }


EXAMPLE = {"data": {"name": "slot 1", "message": "ready", "reason": "", "severity": "info", "url": None}}


def use_stored_objects(case: schemathesis.Case, stored: dict[str, Any]) -> None:
    """Replace generated ids and values by stored ones."""
    parts = case.path.removeprefix("/api/").removeprefix("internal/").strip("/").split("/")
    known = stored.get(parts[-1], stored.get(parts[0]))
    if known and ID.fullmatch(str(case.path_parameters.get("id"))):
        case.path_parameters = {**case.path_parameters, "id": known}
    if isinstance(case.body, dict) and case.meta.generation.mode.is_positive:
        case.body = case.body | {name: stored[name] for name in case.body if name in stored}


def inapplicable_checks(case: schemathesis.Case, response: schemathesis.Response) -> list[Any]:
    """Return the checks that do not apply to this response although the document is accurate."""
    if response.status_code == 400:
        rejected_fields = {name.partition(".")[0] for name in response.json()["details"]}
        rules = RULES | RULES_OF.get(case.operation.label, set())
        return [positive_data_acceptance] if rejected_fields <= rules else []
    phase_data = case.meta.phase.data
    if phase_data.scenario == "incorrect_type" and phase_data.parameter_location == "body":
        # DRF reads the number 0 as the text "0", and false as the number 0.
        return [negative_data_rejection]
    return []


def check(case: schemathesis.Case, stored: dict[str, Any]) -> None:
    use_stored_objects(case, stored)
    response = case.call()
    case.validate_response(response, excluded_checks=inapplicable_checks(case, response))


@schemathesis.pytest.from_fixture("for_admin").exclude(path_regex="^/api/internal/").parametrize()
def test_responses_to_an_admin_are_as_documented(case, stored):
    check(case, stored)


# Elsewhere a controller gets 403, which the permission matrix tests. The watch has its own process:
# tests/lcm/api/watch tests it.
OF_CONTROLLERS = "^/api/(internal(?!/watch)|lablet-sessions|slots)/"


@schemathesis.pytest.from_fixture("for_controller").include(path_regex=OF_CONTROLLERS).parametrize()
def test_responses_to_a_controller_are_as_documented(case, stored):
    check(case, stored)
