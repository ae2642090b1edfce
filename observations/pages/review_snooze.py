"""Forms to snooze or dismiss a review."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from lcm.domain.roles import Role
from lcm.models import LabletDefinition
from lcm.selectors.definitions import definition_with_everything
from lcm.web.access import role_required
from lcm.web.form_page import FormPage, FormResult, actor_of, form_page
from lcm.web.forms import LocalDateTimeField, ReasonForm
from observations.services.review_snooze import LONGEST_SNOOZE, dismiss_review, snooze_review

USUAL_SNOOZE = timedelta(days=14)


class SnoozeForm(ReasonForm):
    until = LocalDateTimeField(
        label=_("Until"), help_text=format_lazy(_("{days} days at most."), days=LONGEST_SNOOZE.days)
    )
    field_order = ("until", "reason")


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def review_snooze(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition, now = get_object_or_404(definition_with_everything(), pk=pk), timezone.now()

    def save(data: Mapping[str, Any]) -> FormResult:
        snooze_review(definition=definition, **data, actor=actor_of(request), now=now)
        text = gettext("The review of %(definition)s is snoozed.") % {"definition": definition}
        return FormResult(text, _home(definition))

    page = FormPage(
        title=gettext("Snooze the review of %(definition)s?") % {"definition": definition},
        text=gettext("Hidden from Needs attention until this time, unless a revision regresses."),
        form=SnoozeForm,
        submit=gettext("Snooze"),
        save=save,
        back=_home(definition),
        initial={"until": now + USUAL_SNOOZE},
        crumbs=_crumbs(definition, gettext("Snooze")),
    )
    return form_page(request, page)


@require_http_methods(["GET", "POST"])
@role_required(Role.ADMIN)
def review_dismiss(request: HttpRequest, pk: UUID) -> HttpResponseBase:
    definition = get_object_or_404(definition_with_everything(), pk=pk)

    def save(data: Mapping[str, Any]) -> FormResult:
        dismiss_review(definition=definition, **data, actor=actor_of(request), now=timezone.now())
        text = gettext("The recommendation for %(definition)s is dismissed.") % {"definition": definition}
        return FormResult(text, _home(definition))

    page = FormPage(
        title=gettext("Dismiss the recommendation for %(definition)s?") % {"definition": definition},
        text=gettext("It returns when the recommended value changes by 10 % or more."),
        form=ReasonForm,
        submit=gettext("Dismiss"),
        save=save,
        back=_home(definition),
        crumbs=_crumbs(definition, gettext("Dismiss")),
    )
    return form_page(request, page)


def _home(definition: LabletDefinition) -> str:
    return reverse("definition_detail", args=[definition.pk])


def _crumbs(definition: LabletDefinition, last: str) -> list[tuple[str, str]]:
    return [
        (gettext("Definitions"), reverse("definition_list")),
        (str(definition), _home(definition)),
        (last, ""),
    ]
