"""Form and bulk action to acknowledge deviations."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.web.bulk_actions import BulkOperation, BulkTexts, for_each_row
from lcm.web.forms import LocalDateTimeField, ReasonForm
from lcm.web.wording import Plural
from observations.arithmetic.drift import CONFLICT
from observations.models import DriftReview, ReviewState
from observations.pages.lists import DRIFT
from observations.services.drift_reviews import (
    DEFAULT_ACKNOWLEDGEMENT,
    MAX_ACKNOWLEDGEMENT,
    acknowledge_drift,
    check_until,
)


class AcknowledgeForm(ReasonForm):
    until = LocalDateTimeField(
        label=_("Until"),
        initial=lambda: timezone.now() + DEFAULT_ACKNOWLEDGEMENT,
        help_text=format_lazy(
            _("{days} days at most. Then the deviation is open again."), days=MAX_ACKNOWLEDGEMENT.days
        ),
    )
    field_order = ("until", "reason")

    def clean_until(self) -> datetime:
        """Validate the date in the form, before a job starts that would reject it."""
        until: datetime = self.cleaned_data["until"]
        try:
            check_until(until, now=timezone.now())
        except InvalidInput as error:
            raise forms.ValidationError(error.fields["until"]) from error
        return until


def _acknowledge(review: DriftReview, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    until = datetime.fromisoformat(given["until"])
    acknowledge_drift(review=review, reason=given["reason"], until=until, actor=actor, now=now)


ACKNOWLEDGE = BulkOperation(
    name="acknowledge-drift",
    page=DRIFT,
    list_url="drift_list",
    texts=BulkTexts(
        button=Plural(ngettext_lazy("Acknowledge %(count)s deviation", "Acknowledge %(count)s deviations")),
        question=Plural(
            ngettext_lazy("Acknowledge %(count)s deviation?", "Acknowledge %(count)s deviations?")
        ),
        result=Plural(
            ngettext_lazy("%(count)s deviation acknowledged.", "%(count)s deviations acknowledged.")
        ),
        effect=_("No action is needed until the chosen time. Leaked ports stay reserved on their workers."),
        none_eligible=Plural(
            ngettext_lazy(
                "This deviation cannot be acknowledged",
                "None of the %(count)s deviations can be acknowledged",
            )
        ),
        some_eligible=_("%(count)s of %(selected)s deviations can be acknowledged."),
        ineligible=_("Port conflicts cannot be acknowledged, and resolved deviations need no action."),
    ),
    eligible_rows=lambda rows: rows.exclude(kind=CONFLICT).exclude(state=ReviewState.RESOLVED),
    run=for_each_row(_acknowledge),
    form=AcknowledgeForm,
    created_field="first_seen",
)
