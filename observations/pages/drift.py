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
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from lcm.domain.roles import Role
from lcm.selectors.definitions import definitions
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_page
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import ReasonForm
from lcm.web.list_page import list_page
from observations.models import DriftReview
from observations.models.drift import KIND_LABELS
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
            (_("Definitions"), reverse("definition_list")),
            (str(definition), reverse("definition_detail", args=[pk])),
            (_("Port drift"), ""),
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
        return FormResult(_("%(port)s acknowledged.") % {"port": review.name}, _home(review))

    text = ngettext(
        "The port is %(difference)s in %(count)s session of %(definition)s. "
        "No action is needed until then. Leaked ports stay reserved on their workers.",
        "The port is %(difference)s in %(count)s sessions of %(definition)s. "
        "No action is needed until then. Leaked ports stay reserved on their workers.",
        review.sessions,
    ) % {
        "difference": KIND_LABELS[review.kind].lower(),
        "count": f"{review.sessions:,}",
        "definition": review.definition,
    }
    page = FormPage(
        title=_("Acknowledge %(port)s?") % {"port": review.name},
        text=text,
        form=AcknowledgeForm,
        submit=_("Acknowledge"),
        save=save,
        back=_home(review),
        crumbs=[(_("Port drift"), reverse("drift_list")), (review.name, ""), (_("Acknowledge"), "")],
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.OPERATOR)
def drift_reopen(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    review = _review(pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        reopen_drift(review=review, **data, actor=actor_of(request), now=timezone.now())
        return FormResult(_("%(port)s reopened.") % {"port": review.name}, _home(review))

    page = FormPage(
        title=_("Reopen %(port)s?") % {"port": review.name},
        text=_("It was acknowledged by %(actor)s: %(reason)s")
        % {"actor": review.actor, "reason": review.reason},
        form=ReasonForm,
        submit=_("Reopen"),
        save=save,
        back=_home(review),
        crumbs=[(_("Port drift"), reverse("drift_list")), (review.name, ""), (_("Reopen"), "")],
    )
    return form_page(request, page)


def _review(pk: UUID) -> DriftReview:
    return get_object_or_404(drift_reviews(), pk=pk)


def _home(review: DriftReview) -> str:
    return reverse("definition_detail", args=[review.definition_id])
