"""Template filters for resources and amounts in hundredths."""

from __future__ import annotations

import re
from collections.abc import Sized
from decimal import Decimal
from typing import Any
from uuid import UUID

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from lcm.templatetags.lcm import status
from lcm.web.wording import NBSP, duration_text
from observations.arithmetic.measures import CPU, RULES, text
from observations.models import DefinitionAssessment, DriftReview, SessionObservation
from observations.pages import not_counted

register = template.Library()
_UNIT = re.compile(r"(?<=\d) (?=(?:%|cores?\b|core-hours\b|GB))")
UNKNOWN = mark_safe('<span class="muted">unknown</span>')


@register.filter
def units(value: int | None) -> str | SafeString:
    """Format hundredths as a number; unknown values are named as such, never zero."""
    return UNKNOWN if value is None else text(value)


@register.filter
def core_units(value: int | None) -> str:
    """Return the unit after hundredths of a core; empty if the amount is unknown."""
    if value is None:
        return ""
    return "core" if value == 100 else "cores"


@register.filter
def resource_label(name: str) -> str:
    return RULES[name].label


@register.filter
def resource_unit(name: str) -> str:
    return RULES[name].unit


@register.simple_tag
def measure(value: int | None, resource: str) -> SafeString:
    """Format hundredths of a resource with its unit: `3.5 cores`, `1 core`, `2 GB`."""
    if value is None:
        return UNKNOWN
    unit = core_units(value) if resource == CPU else RULES[resource].unit
    return format_html('{} <span class="sub">{}</span>', text(value), unit)


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
def not_counted_text(row: SessionObservation) -> str:
    return not_counted.not_counted_text(row)


@register.filter
def remaining(count: int, shown: Sized) -> int:
    return count - len(shown)


@register.filter
def short_id(value: UUID) -> str:
    return value.hex[:6]


@register.filter
def whole(value: Any) -> str:
    return f"{value:,.0f}"


@register.filter
def answered_in(asked: Any) -> str:
    """Return how long a request took to complete."""
    return duration_text(asked.answered_at - asked.requested_at)


@register.simple_tag
def drift_state(review: DriftReview) -> SafeString:
    """Return the current state; an expired acknowledgement counts as open."""
    state = review.state_at(timezone.now())
    return status("warning" if state == "open" else state.value, state.label)
