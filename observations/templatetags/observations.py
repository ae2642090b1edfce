"""Template filters for resources and amounts in hundredths."""

from __future__ import annotations

import re
from collections.abc import Sized
from decimal import Decimal
from uuid import UUID

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from lcm.models.messages import translated
from lcm.models.resources import RESOURCE_LABELS, RESOURCE_UNITS
from lcm.templatetags.lcm import status
from lcm.web.wording import NBSP, duration_text
from observations.arithmetic.measures import text
from observations.models import DefinitionAssessment, DriftReview, ObservationRequest
from observations.models.resource_labels import SOURCE_LABELS, core_unit, unit_after
from observations.pages.not_counted import not_counted_text
from observations.pages.review_texts import CONFIDENCE_LABELS

register = template.Library()
register.filter(not_counted_text)
register.filter(translated)
_UNIT = re.compile(r"(?<=\d) (?=(?:%|cores?\b|core-hours\b|GB))")


def _unknown() -> SafeString:
    return format_html('<span class="muted">{}</span>', gettext("unknown"))


@register.filter
def units(value: int | None) -> str | SafeString:
    """Format hundredths as a number; unknown values are named as such, never zero."""
    return _unknown() if value is None else text(value)


@register.filter
def core_units(value: int | None) -> str:
    """Return the unit after hundredths of a core; empty if the amount is unknown."""
    return "" if value is None else core_unit(value)


@register.filter
def resource_label(name: str) -> str:
    return str(RESOURCE_LABELS[name])


@register.filter
def resource_unit(name: str) -> str:
    return str(RESOURCE_UNITS[name])


@register.filter
def source_label(source: str) -> str:
    return str(SOURCE_LABELS[source])


@register.filter
def confidence_label(level: str) -> str:
    return str(CONFIDENCE_LABELS[level])


@register.simple_tag
def measure(value: int | None, resource: str) -> SafeString:
    """Format hundredths of a resource with its unit: `3.5 cores`, `1 core`, `2 GB`."""
    if value is None:
        return _unknown()
    return format_html('{} <span class="sub">{}</span>', text(value), unit_after(value, resource))


@register.filter
def unbroken(text: str) -> str:
    """Keep numbers and units on one line: `95 %`, `14 cores`, `62 GB`."""
    return _UNIT.sub(NBSP, text)


@register.filter
def signed(value: int) -> str:
    """Format with a sign: `+12`, `−25` (a minus sign, not a hyphen)."""
    return f"+{value}" if value > 0 else f"−{-value}" if value < 0 else "0"


@register.filter
def wasted(assessment: DefinitionAssessment, resource: str) -> Decimal | None:
    return assessment.wasted(resource)


@register.filter
def remaining(count: int, shown: Sized) -> int:
    return count - len(shown)


@register.filter
def short_id(value: UUID) -> str:
    return value.hex[:6]


@register.filter
def whole(value: object) -> str:
    return f"{value:,.0f}"


@register.filter
def completed_in(request: ObservationRequest) -> str:
    """Return how long a completed request took."""
    assert request.completed_at is not None
    return duration_text(request.completed_at - request.requested_at)


@register.simple_tag
def drift_state(review: DriftReview) -> SafeString:
    """Return the current state; an expired acknowledgement counts as open."""
    state = review.state_at(timezone.now())
    return status("warning" if state == "open" else state.value, str(state.label))
