"""Forms to snooze or dismiss a review."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.models import LabletDefinition
from lcm.selectors.definitions import definition_with_everything
from lcm.web.crumbs import definition_crumbs
from lcm.web.form_page import FormPage, actor_of, form_view, service_call
from lcm.web.forms import LocalDateTimeField, ReasonForm
from observations.models import DefinitionAssessment
from observations.services.review_snooze import LONGEST_SNOOZE, dismiss_review, snooze_review

USUAL_SNOOZE = timedelta(days=14)


class SnoozeForm(ReasonForm):
    until = LocalDateTimeField(
        label=_("Until"), help_text=format_lazy(_("{days} days at most."), days=LONGEST_SNOOZE.days)
    )
    field_order = ("until", "reason")


@form_view(Role.ADMIN)
def review_snooze(request: HttpRequest, pk: UUID) -> FormPage:
    definition, now = get_object_or_404(definition_with_everything(), pk=pk), timezone.now()
    title = gettext("Snooze the review of %(definition)s?")
    text = gettext("Hidden from Needs attention until this time, unless a revision regresses.")
    initial: dict[str, Any] = {"until": now + USUAL_SNOOZE}
    if is_after_revert := request.GET.get("after") == "revert":
        title = gettext("Snooze the same recommendation for %(definition)s?")
        still = gettext("**The revert is done, so LCM recommends the change again.** %(snoozed)s")
        text = still % {"snoozed": text}
        initial["reason"] = definition.revision.reason
    return FormPage(
        title=title % {"definition": definition},
        text=text,
        dismiss=gettext("Do not snooze") if is_after_revert else gettext("Cancel"),
        form=SnoozeForm,
        submit=gettext("Snooze"),
        save=lambda data: snooze_review(definition=definition, **data, actor=actor_of(request), now=now),
        done=gettext("The review of %(definition)s is snoozed.") % {"definition": definition},
        initial=initial,
        crumbs=definition_crumbs(definition, gettext("Snooze")),
    )


def snooze_after_revert(definition: LabletDefinition) -> str:
    """Return the page that offers to snooze the recommendation which a revert has brought back, if any."""
    flagged = DefinitionAssessment.objects.filter(
        definition=definition, snoozed_until__isnull=True, dismissed__isnull=True
    )
    if not any(assessment.flags for assessment in flagged):
        return ""
    return f"{reverse('review_snooze', args=[definition.pk])}?after=revert"


@form_view(Role.ADMIN)
def review_dismiss(request: HttpRequest, pk: UUID) -> FormPage:
    definition = get_object_or_404(definition_with_everything(), pk=pk)
    return FormPage(
        title=gettext("Dismiss the recommendation for %(definition)s?") % {"definition": definition},
        text=gettext("It returns when the recommended value changes by 10 % or more."),
        submit=gettext("Dismiss"),
        save=service_call(request, dismiss_review, definition=definition),
        done=gettext("The recommendation for %(definition)s is dismissed.") % {"definition": definition},
        crumbs=definition_crumbs(definition, gettext("Dismiss")),
    )
