"""Panels of the session page with the observed lab, and the request to observe it now."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from lcm.domain.errors import LcmError
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.roles import Role
from lcm.models import LabletSession
from lcm.selectors.sessions import sessions
from lcm.web.access import htmx_of, role_required
from lcm.web.crumbs import session_crumbs
from lcm.web.form_page import (
    FormPage,
    FormResult,
    actor_of,
    form_view,
    redirect_with_message,
    render_page,
    service_call,
)
from observations.models import ObservationRequest, RequestState, SessionObservation
from observations.models.drift import KIND_LABELS
from observations.selectors.drift import reviews_by_fingerprint
from observations.selectors.requests import last_request
from observations.selectors.sessions import (
    PortComparison,
    observation_of,
    observed_nodes,
    planned_beside_observed,
    port_lines,
)
from observations.services import session_exclusion
from observations.services.requests import request_observation

NODES_SHOWN = 8


def _get(pk: UUID) -> LabletSession:
    return get_object_or_404(sessions(), pk=pk)


@require_GET
@role_required(Role.VIEWER)
def session_observation(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The panels of the session page, which refresh every few seconds while an observation is requested."""
    return _panels(request, _get(pk))


def observation_panels(request: HttpRequest, session: LabletSession) -> SafeString:
    """Return the panels as part of the session's page, which refreshes them."""
    context = {**_context(session), "is_panel": True, "in_page": True}
    return render_to_string("observations/session.html#panel", context, request)


def _panels(request: HttpRequest, session: LabletSession, *, refused: str = "") -> HttpResponseBase:
    """Return the panels with the reason why no observation is possible; htmx swaps in errors as 422."""
    htmx = htmx_of(request)
    page = reverse("session_detail", args=[session.pk])
    context = {
        **_context(session),
        "is_panel": bool(htmx),
        "in_page": (htmx.current_url_abs_path or "").partition("?")[0] == page,
        "refused": refused,
        "crumbs": session_crumbs(session, _("Observation")),
    }
    status = 422 if refused else 200
    return render_page(request, "observations/session.html", context, part="panel", status=status)


def _context(session: LabletSession) -> dict[str, Any]:
    now = timezone.now()
    # A session that has not started has no observation.
    waits = session.status == SessionStatus.PENDING and not session.observation_count
    row = None if waits else observation_of(session)
    last = None if waits else last_request(session)
    state = last.state_at(now) if last else None
    nodes = observed_nodes(row)
    ports = [] if waits else port_lines(session, row)
    return {
        "session": session,
        "now": now,
        "row": row,
        "lines": planned_beside_observed(session, row),
        "observation_request": last,
        "request_state": state,
        "waiting": state == RequestState.OPEN,
        "waited_percent": _waited_percent(last, now) if last else None,
        "can_observe": session.status == SessionStatus.RUNNING,
        "different": _with_reviews(session, [line for line in ports if line.item], now),
        "when_observed": _when_observed(session),
        "without_ports": _without_ports(session, row),
        "matching": [line for line in ports if not line.item],
        "node_count": len(nodes),
        "nodes": nodes[:NODES_SHOWN],
        "more_nodes": nodes[NODES_SHOWN:],
    }


def _waited_percent(request: ObservationRequest, now: datetime) -> int:
    """Return the elapsed share of the time limit of a request."""
    elapsed = (now - request.requested_at) / (request.expires_at - request.requested_at)
    return round(100 * min(max(elapsed, 0.0), 1.0))


def _when_observed(session: LabletSession) -> str:
    """Return when LCM will observe a session that has no observation yet."""
    if session.is_final:
        return _("The session ended without an observation.")
    if session.status == SessionStatus.RUNNING:
        return _("LCM observes the lab before teardown and on request.")
    return _("LCM observes the lab before teardown.")


def _without_ports(session: LabletSession, row: SessionObservation | None) -> str:
    """Return why there is no port to show."""
    if row and row.observed_ports is None:
        return _("LCM could not read the ports.")
    if not session.revision.port_template:
        return _("The session has no ports.")
    if session.status == SessionStatus.PENDING:
        return _("Ports are allocated when a slot is assigned.")
    if session.is_final:
        return _("The session has released its ports.")
    return _("The session has no ports.")


def _with_reviews(session: LabletSession, lines: list[PortComparison], now: datetime) -> list[dict[str, Any]]:
    """Return the differing ports with their reviews and states."""
    reviews = reviews_by_fingerprint(session.definition_id) if lines else {}
    rows = []
    for line in lines:
        review = reviews.get(line.item.fingerprint) if line.item else None
        rows.append(
            {
                "line": line,
                "kind_label": KIND_LABELS[line.kind],
                "review": review,
                "state": review.state_at(now) if review else None,
            }
        )
    return rows


@require_POST
@role_required(Role.OPERATOR)
def session_observe(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """Request an observation now."""
    refused = ""
    try:
        request_observation(session=_get(pk), actor=actor_of(request), now=timezone.now())
    except LcmError as error:
        refused = error.message
    if htmx_of(request):
        return _panels(request, _get(pk), refused=refused)
    if refused:
        messages.error(request, refused)
    return redirect_with_message(request, FormResult("", reverse("session_detail", args=[pk])))


@form_view(Role.ADMIN)
def session_exclude(request: HttpRequest, pk: UUID) -> FormPage:
    session = _get(pk)
    return FormPage(
        title=_("Exclude session %(name)s?") % {"name": session.short_id},
        text=_("Its usage no longer counts for %(definition)s. You can include it again.")
        % {"definition": session.definition},
        submit=_("Exclude session"),
        save=service_call(request, session_exclusion.exclude_session, session=session),
        done=_("Session %(name)s excluded.") % {"name": session.short_id},
        back=_definition(session),
        crumbs=[(_("Sessions"), reverse("session_list")), (session.short_id, ""), (_("Exclude"), "")],
    )


@form_view(Role.ADMIN)
def session_include(request: HttpRequest, pk: UUID) -> FormPage:
    session = _get(pk)
    return FormPage(
        title=_("Include session %(name)s?") % {"name": session.short_id},
        text=_("Its usage counts for %(definition)s again.") % {"definition": session.definition},
        submit=_("Include session"),
        save=service_call(request, session_exclusion.include_session, session=session),
        done=_("Session %(name)s included.") % {"name": session.short_id},
        back=_definition(session),
        crumbs=[(_("Sessions"), reverse("session_list")), (session.short_id, ""), (_("Include"), "")],
    )


def _definition(session: LabletSession) -> str:
    return reverse("definition_detail", args=[session.definition_id])
