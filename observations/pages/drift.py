"""Pages of port drift: the list, the panel of a definition, and acknowledgement."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from lcm.domain.roles import Role
from lcm.selectors.definitions import definitions
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import ReasonForm
from lcm.web.list_page import list_page
from lcm.web.wording import count_text
from observations.models import DriftReview
from observations.models.drift import KIND_WORDS
from observations.pages.drift_acknowledgement import ACKNOWLEDGE, AcknowledgeForm
from observations.pages.lists import DRIFT
from observations.selectors.drift import drift_of, drift_reviews, open_drift, ports_were_observed
from observations.services.drift_reviews import acknowledge_drift, reopen_drift


@require_GET
@role_required(Role.VIEWER)
def drift_list(request: HttpRequest) -> HttpResponseBase:
    return list_page(request, DRIFT)


@require_POST
@role_required(Role.OPERATOR)
def drift_bulk_acknowledge(request: HttpRequest) -> HttpResponseBase:
    return bulk_page(request, ACKNOWLEDGE.name)


@require_GET
@role_required(Role.VIEWER)
def definition_drift(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    """The drift panel of the definition page."""
    definition = get_object_or_404(definitions(), pk=pk)
    rows, more = drift_of(definition)
    context = {
        "definition": definition,
        "rows": rows,
        "more": more,
        "open_count": open_drift(timezone.now()).filter(definition=definition).count() if rows else 0,
        "was_observed": bool(rows) or ports_were_observed(definition),
        "crumbs": [
            ("Definitions", reverse("definition_list")),
            (str(definition), reverse("definition_detail", args=[pk])),
            ("Port drift", ""),
        ],
    }
    name = "observations/drift.html#panel" if request.htmx else "observations/drift.html"  # type: ignore[attr-defined]
    return render(request, name, context)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def drift_acknowledge(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    review, now = _review(pk), timezone.now()

    def save(data: Mapping[str, Any]) -> FormResult:
        until: datetime = data["until"]
        acknowledge_drift(review=review, reason=data["reason"], until=until, actor=actor_of(request), now=now)
        return FormResult(f"{review.name} acknowledged.", _home(review))

    what = KIND_WORDS[review.kind].lower()
    sessions = count_text(review.sessions, "session")
    page = FormPage(
        title=f"Acknowledge {review.name}?",
        text=f"The port is {what} in {sessions} of {review.definition}. "
        "No action is needed until then. Leaked ports stay reserved on their workers.",
        form=AcknowledgeForm,
        submit="Acknowledge",
        save=save,
        back=_home(review),
        crumbs=[("Port drift", reverse("drift_list")), (review.name, ""), ("Acknowledge", "")],
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def drift_reopen(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    review = _review(pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        reopen_drift(review=review, **data, actor=actor_of(request), now=timezone.now())
        return FormResult(f"{review.name} reopened.", _home(review))

    page = FormPage(
        title=f"Reopen {review.name}?",
        text=f"It was acknowledged by {review.actor}: {review.reason}",
        form=ReasonForm,
        submit="Reopen",
        save=save,
        back=_home(review),
        crumbs=[("Port drift", reverse("drift_list")), (review.name, ""), ("Reopen", "")],
    )
    return form_page(request, page)


def _review(pk: UUID) -> DriftReview:
    return get_object_or_404(drift_reviews(), pk=pk)


def _home(review: DriftReview) -> str:
    return reverse("definition_detail", args=[review.definition_id])
