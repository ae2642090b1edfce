"""List of observed sessions, with bulk actions to exclude and include them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.actors import Actor
from lcm.domain.roles import Role
from lcm.web.access import role_required
from lcm.web.bulk_actions import BulkOperation, bulk_page, for_each_row, register_bulk
from lcm.web.list_page import list_page
from observations.models import SessionObservation
from observations.pages.lists import EVIDENCE
from observations.services.session_exclusion import exclude_session, include_session


@require_GET
@role_required(Role.VIEWER)
def evidence_list(request: HttpRequest) -> HttpResponseBase:
    crumbs = [("Definitions", reverse("definition_list")), (EVIDENCE.title, "")]
    return list_page(request, EVIDENCE, crumbs=crumbs)


@require_POST
@role_required(Role.ADMIN)
def evidence_bulk_exclude(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, EXCLUDE.name)


@require_POST
@role_required(Role.ADMIN)
def evidence_bulk_include(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, INCLUDE.name)


def _exclude(row: SessionObservation, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    exclude_session(session=row.session, reason=given["reason"], actor=actor, now=now)


def _include(row: SessionObservation, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    include_session(session=row.session, reason=given["reason"], actor=actor, now=now)


# Each changes the whole aggregate of its definition.
AT_ONCE = 25

EXCLUDE = BulkOperation(
    name="exclude-evidence",
    page=EVIDENCE,
    list_url="evidence_list",
    verb="Exclude",
    past="excluded",
    can_be="excluded",
    effect="Their usage no longer counts for their definitions. You can include them again.",
    rest="Sessions that are already excluded stay excluded.",
    eligible_rows=lambda rows: rows.filter(excluded_reason=""),
    run=for_each_row(_exclude),
    at_once=AT_ONCE,
    created_field="session__created_at",
)
INCLUDE = BulkOperation(
    name="include-evidence",
    page=EVIDENCE,
    list_url="evidence_list",
    verb="Include",
    past="included",
    can_be="included",
    effect="Their usage counts for their definitions again if the sessions are eligible.",
    rest="Sessions that are not excluded stay as they are.",
    eligible_rows=lambda rows: rows.exclude(excluded_reason=""),
    run=for_each_row(_include),
    at_once=AT_ONCE,
    created_field="session__created_at",
)


def register_actions() -> None:
    for action in (EXCLUDE, INCLUDE):
        register_bulk(action)
