"""Scores of plugins as people read them."""

from __future__ import annotations

from decimal import Decimal

from django import template

from lcm.web.wording import amount_text
from scheduling.framework.callbacks import Band

register = template.Library()
# A score is at most this many times its band.
MOST = 100


@register.filter
def score(value: float) -> str:
    """`0.53`, and with the name of its band where that is not the lowest: `1 in the band spot`."""
    lowest, *higher = sorted(Band)
    if abs(value) <= MOST * lowest:
        return amount_text(Decimal(str(value)))
    band = next((each for each in higher if abs(value) <= MOST * each), higher[-1])
    return f"{amount_text(Decimal(str(value)) / band)} in the band {band.name.replace('_', ' ').lower()}"
