"""Template tags for scores, reasons, step bars, and the names of runtimes and systems."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.resources import RESOURCES
from lcm.models.messages import lazy_text
from lcm.templatetags.lcm import humanize_name
from scheduling.pages.supply import display_name
from scheduling.pages.ticks import LEGEND, step_name
from scheduling.placement.framework.callbacks import Band
from scheduling.selectors.pools import pool_state_name

register = template.Library()
register.filter(display_name)
register.filter(pool_state_name)
register.filter(step_name)
# A score is at most this many times its band.
MAX_SCORE = 100
TITLES = {
    **{each.name: lazy_text(each.shortage) for each in RESOURCES},
    "ports": _("Not enough ports"),
    "leases": _("No lease left"),
    "cordon": _("Cordoned"),
    "system": _("System does not match"),
    "labels": _("Labels do not match"),
    "spot": _("Spot slot"),
    "timeslot": _("Ends before the timeslot"),
}


@register.simple_tag
def step_legend() -> tuple[tuple[int, Any], ...]:
    """Return the colours of step bars with their names."""
    return LEGEND


@register.filter
def score(value: float) -> SafeString:
    """Format a score: `0.53`; a score of a higher band shows the band on hover."""
    lowest, *higher = sorted(Band)
    band = lowest
    if abs(value) > MAX_SCORE * lowest:
        band = next((each for each in higher if abs(value) <= MAX_SCORE * each), higher[-1])
    text = f"{value / band:,.2f}"
    if not value:
        return format_html('<span class="muted">{}</span>', text)
    if band == lowest:
        return format_html("<b>{}</b>", text)
    title = gettext("Score in the band %(band)s, which is compared first") % {
        "band": humanize_name(band.name).lower()
    }
    return format_html('<b title="{}">{}</b>', title, text)


@register.filter
def reason_title(reason: Any) -> str:
    """Return the title of a reason; for an installed plugin the plugin's name."""
    fields = reason if isinstance(reason, dict) else {"code": reason.code, "plugin": reason.plugin}
    return str(TITLES.get(fields["code"]) or humanize_name(fields["plugin"]).capitalize())
