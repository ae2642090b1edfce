"""Pages of port drift: the list, the panel of a definition, and acknowledgement."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext_lazy
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.selectors.definitions import definitions
from lcm.web.access import role_required
from lcm.web.bulk_actions import bulk_view
from lcm.web.crumbs import definition_crumbs
from lcm.web.form_page import FormPage, actor_of, form_view, render_page, service_call
from lcm.web.list_page import list_view
from lcm.web.wording import Plural
from observations.arithmetic.drift import CHANGED, CONFLICT, EXTRA, MISSING
from observations.models import DriftReview
from observations.pages.drift_acknowledgement import ACKNOWLEDGE, AcknowledgeForm
from observations.pages.lists import DRIFT
from observations.selectors.drift import drift_of, drift_reviews, open_drift, ports_were_observed
from observations.services.drift_reviews import acknowledge_drift, reopen_drift

# How often a port differs from the plan, by kind of difference.
DEVIATIONS = {
    CONFLICT: Plural(
        ngettext_lazy(
            "The port is in conflict in %(count)s session of %(definition)s.",
            "The port is in conflict in %(count)s sessions of %(definition)s.",
        )
    ),
    EXTRA: Plural(
        ngettext_lazy(
            "The port is leaked in %(count)s session of %(definition)s.",
            "The port is leaked in %(count)s sessions of %(definition)s.",
        )
    ),
    CHANGED: Plural(
        ngettext_lazy(
            "The port is changed in %(count)s session of %(definition)s.",
            "The port is changed in %(count)s sessions of %(definition)s.",
        )
    ),
    MISSING: Plural(
        ngettext_lazy(
            "The port is missing in %(count)s session of %(definition)s.",
            "The port is missing in %(count)s sessions of %(definition)s.",
        )
    ),
}

drift_list = list_view(DRIFT)
drift_bulk_acknowledge = bulk_view(ACKNOWLEDGE, Role.OPERATOR)


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
        "crumbs": definition_crumbs(definition, _("Port drift")),
    }
    return render_page(request, "observations/drift.html", context, part="panel")


@form_view(Role.OPERATOR)
def drift_acknowledge(request: HttpRequest, pk: UUID) -> FormPage:
    review, now = _review(pk), timezone.now()
    deviation = DEVIATIONS[review.kind].text(review.sessions, definition=review.definition)
    effect = _("No action is needed until then. Leaked ports stay reserved on their workers.")
    return FormPage(
        title=_("Acknowledge %(port)s?") % {"port": review.name},
        text=f"{deviation} {effect}",
        form=AcknowledgeForm,
        submit=_("Acknowledge"),
        save=lambda data: acknowledge_drift(review=review, **data, actor=actor_of(request), now=now),
        done=_("%(port)s acknowledged.") % {"port": review.name},
        back=_home(review),
        crumbs=[(_("Port drift"), reverse("drift_list")), (review.name, ""), (_("Acknowledge"), "")],
    )


@form_view(Role.OPERATOR)
def drift_reopen(request: HttpRequest, pk: UUID) -> FormPage:
    review = _review(pk)
    return FormPage(
        title=_("Reopen %(port)s?") % {"port": review.name},
        text=_("It was acknowledged by %(actor)s: %(reason)s")
        % {"actor": review.actor, "reason": review.reason},
        submit=_("Reopen"),
        save=service_call(request, reopen_drift, review=review),
        done=_("%(port)s reopened.") % {"port": review.name},
        back=_home(review),
        crumbs=[(_("Port drift"), reverse("drift_list")), (review.name, ""), (_("Reopen"), "")],
    )


def _review(pk: UUID) -> DriftReview:
    return get_object_or_404(drift_reviews(), pk=pk)


def _home(review: DriftReview) -> str:
    return reverse("definition_detail", args=[review.definition_id])
