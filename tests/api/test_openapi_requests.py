"""The OpenAPI document is true: schemathesis makes requests from it and checks every response."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.db import transaction
from django.utils import timezone

from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from fairshare.models import FairShare
from lcm.demo.fleet import count_usage, load_demo
from lcm.lifecycle import SessionStatus
from lcm.models import ApiToken, ChangeLog, Domain, Job, LabletDefinition, LabletSession, Project, User
from lcm.roles import Role
from observations.models import DriftReview
from scheduling.models import Pool, Reservation, Slot, TickRun
from tests.factories import make_controller, make_person, make_person_token

CONFIG: dict[str, Any] = {
    "phases": {"examples": {"enabled": False}, "fuzzing": {"enabled": False}, "stateful": {"enabled": False}},
    "generation": {
        "deterministic": True,
        "no-shrink": True,
        "database": "none",
        "with-security-parameters": False,
    },
    "checks": {
        # 412: a stale preview, which is a conflict like 409.
        "positive_data_acceptance": {"expected-statuses": ["2xx", "401", "403", "404", "409", "412", "422"]},
        "negative_data_rejection": {
            "expected-statuses": ["400", "401", "403", "404", "405", "409", "412", "415", "422"]
        },
    },
}
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def rolled_back(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """LCM, with every request undone: no request depends on an earlier one."""
    with transaction.atomic():
        response = b"".join(WSGIHandler()(environ, start_response))
        transaction.set_rollback(True)
    return [response]


@pytest.fixture(params=["admin", "controller"])
def described(request, db, settings):
    """The document of a filled LCM, for requests with one token."""
    rates = dict.fromkeys(("API_RATE", "CONTROLLER_RATE", "API_LOGIN_RATE"), "1000000/min")
    settings.CONFIG = {**settings.CONFIG, **rates}
    load_demo(now=timezone.now())
    count_usage()
    admin = make_person_token(make_person("ada", Role.ADMIN)).key
    controller = make_controller("controller-eu", "pool:cml-eu", "pool:cml-us").key
    token = {"admin": admin, "controller": controller}[request.param]
    config = schemathesis.Config.from_dict({**CONFIG, "auth": {"openapi": {"token": {"bearer": token}}}})
    headers = {"Authorization": f"Bearer {admin}"}
    return schemathesis.openapi.from_wsgi("/api/schema?format=json", rolled_back, config=config, headers=headers)


@pytest.fixture
def existing(described):
    running = LabletSession.objects.filter(status=SessionStatus.RUNNING)
    slot = Slot.objects.exclude(instance_id="").first()
    found = {
        "changes": ChangeLog, "domains": Domain, "fair-shares": FairShare, "fair-share-policies": Pool, "jobs": Job,
        "lablet-definitions": LabletDefinition, "lablet-sessions": running, "pools": Pool, "port-drift": DriftReview,
        "projects": Project, "reservations": Reservation, "slots": slot, "ticks": TickRun, "tokens": ApiToken, "users": User,
    }
    out = {}
    for k, v in found.items():
        row = v.objects.first() if isinstance(v, type) else v.first() if hasattr(v, "first") else v
        if row: out[k] = str(row.pk)
        else: print("NONE", k)
    return out


schema = schemathesis.pytest.from_fixture("described")

# A request may follow the document and be refused by a rule that a schema cannot state. These are the fields.
RULES = {
    # They name something that must exist.
    "pool", "domain", "definition", "project", "owner", "user", "person", "runtime", "subject", "scopes", "session",
    # They are compared with the clock or with another field.
    "starts_at", "ends_at", "expires_at", "until", "deadline", "max_duration", "first_port", "last_port",
    "min_slots", "warm_slots",
    # They are documents of their own.
    "cursor", "topology", "scheduler", "runtime_settings", "slot_labels", "labels", "choices", "requirements", "resources",
    "name",
}


def excused(case, response):
    if response.status_code == 400:
        fields = set(response.json()["details"])
        if fields <= RULES:
            return [positive_data_acceptance]
    if case.meta.phase.data.scenario == "incorrect_type" and case.meta.phase.data.parameter_location == "body":
        return [negative_data_rejection]
    return []


@pytest.mark.once
@schema.parametrize()
def test_every_response_is_as_the_document_says(case, existing):
    kind = case.path.removeprefix("/api/").removeprefix("internal/").partition("/")[0]
    if kind in existing and re.fullmatch(r"\d+|" + UUID.pattern, str((case.path_parameters or {}).get("id"))):
        case.path_parameters = {**case.path_parameters, "id": existing[kind]}
    response = case.call()
    case.validate_response(response, excluded_checks=excused(case, response))
