"""Template filters for scores, reasons, and the names of runtimes and systems."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from lcm.templatetags.lcm import humanize_name
from scheduling.pages.supply import display_name
from scheduling.placement.framework.callbacks import Band

register = template.Library()
register.filter(display_name)
# A score is at most this many times its band.
MOST = 100
TITLES = {
    "cpu_cores": "Not enough CPU",
    "memory_gb": "Not enough memory",
    "storage_gb": "Not enough storage",
    "gpu": "Not enough GPUs",
    "ports": "Not enough ports",
    "leases": "No lease left",
    "cordon": "Cordoned",
    "system": "System does not match",
    "labels": "Labels do not match",
    "spot": "Spot slot",
    "timeslot": "Ends before the timeslot",
}


@register.filter
def score(value: float) -> SafeString:
    """Format a score: `0.53`; a score of a higher band shows the band on hover."""
    lowest, *higher = sorted(Band)
    band = lowest
    if abs(value) > MOST * lowest:
        band = next((each for each in higher if abs(value) <= MOST * each), higher[-1])
    text = f"{value / band:,.2f}"
    if not value:
        return format_html('<span class="muted">{}</span>', text)
    if band == lowest:
        return format_html("<b>{}</b>", text)
    return format_html(
        '<b title="{}">{}</b>', f"In the band {humanize_name(band.name).lower()}: counts first", text
    )


@register.filter
def reason_title(reason: Any) -> str:
    """Return the title of a reason; for an installed plugin the plugin's name."""
    kept = reason if isinstance(reason, dict) else {"code": reason.code, "plugin": reason.plugin}
    return TITLES.get(kept["code"], humanize_name(kept["plugin"]).capitalize())
