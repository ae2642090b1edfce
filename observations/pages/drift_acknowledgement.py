"""Accepting deviations for a while: the form, and doing it to many at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone

from lcm.domain.actors import Actor
from lcm.domain.errors import InvalidInput
from lcm.web.bulk_actions import BulkWork, one_by_one, register_bulk
from lcm.web.forms import LocalDateTimeField, ReasonForm
from observations.arithmetic.drift import CONFLICT
from observations.models import DriftReview, ReviewState
from observations.pages.lists import DRIFT
from observations.services.drift_reviews import LONGEST, USUAL_LENGTH, acknowledge_drift, check_until


class AcknowledgeForm(ReasonForm):
    until = LocalDateTimeField(
        label="Until",
        initial=lambda: timezone.now() + USUAL_LENGTH,
        help_text=f"{LONGEST.days} days at most; then it is open again.",
    )
    field_order = ("until", "reason")

    def clean_until(self) -> datetime:
        """Told at the field, before a job is started that would be refused."""
        until: datetime = self.cleaned_data["until"]
        try:
            check_until(until, now=timezone.now())
        except InvalidInput as error:
            raise forms.ValidationError(error.fields["until"]) from error
        return until


def _acknowledge(review: DriftReview, given: Mapping[str, Any], actor: Actor, now: datetime) -> None:
    until = datetime.fromisoformat(given["until"])
    acknowledge_drift(review=review, reason=given["reason"], until=until, actor=actor, now=now)


ACKNOWLEDGE = BulkWork(
    name="acknowledge-drift",
    page=DRIFT,
    list_url="drift_list",
    verb="Acknowledge",
    past="acknowledged",
    can_be="acknowledged",
    effect="They need nobody until then; leaked ports stay held back on their workers.",
    rest="A port that two sessions have cannot be accepted, and what is resolved needs nobody.",
    able=lambda rows: rows.exclude(kind=CONFLICT).exclude(state=ReviewState.RESOLVED),
    work=one_by_one(_acknowledge),
    form=AcknowledgeForm,
    born="first_seen",
)


def register_actions() -> None:
    register_bulk(ACKNOWLEDGE)
