"""Usage on the overview page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, timedelta

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from fairshare.arithmetic.units import RESOURCES
from fairshare.models.levels import Level
from fairshare.pages.resource_labels import HOUR_NAMES
from fairshare.selectors.usage import KINDS, Period, last_check, top_domains, usage_by_day
from lcm.domain.roles import Role
from lcm.web.access import role_required
from lcm.web.attention import AttentionItem, FleetSnapshot
from lcm.web.charts.columns import Series, stacked
from lcm.web.charts.scales import format_number
from lcm.web.overview import render_lazy_panel

DAYS = 14


def usage_attention_items(look: FleetSnapshot) -> Iterator[AttentionItem]:
    """Yield an item if buckets differ from the sum of their records."""
    check = last_check()
    if check is not None and check.difference_count:
        count = check.difference_count
        text = ngettext(
            "**{count:,} usage bucket differs** from the records",
            "**{count:,} usage buckets differ** from the records",
            count,
        ).format(count=count)
        more = _("Shares and queue order depend on them")
        yield AttentionItem(text, reverse("fair_share"), check.checked_at, "bad", more, "oct")


@require_GET
@role_required(Role.VIEWER)
def overview_usage(request: HttpRequest) -> HttpResponseBase:
    """Usage by domain: a panel of the overview, or a page of its own without JavaScript."""
    resource, unit = RESOURCES[0], str(HOUR_NAMES[RESOURCES[0]])
    now = timezone.now()
    last = now.astimezone(UTC).date()
    first = last - timedelta(days=DAYS - 1)
    period = Period(first, last)
    by_day = usage_by_day(period, Level.DOMAIN, resource, top_domains(period, resource))
    context = {
        "now": now,
        "chart": stacked(by_day, unit=unit),
        "sentence": _sentence(by_day.series[:KINDS], unit),
        "days": DAYS,
        "crumbs": [(_("Overview"), reverse("home")), (_("Usage by domain"), "")],
    }
    return render_lazy_panel(request, "overview/usage.html", context)


def _sentence(named: Sequence[Series], unit: str) -> str:
    if not named:
        return _("**No usage in the last %(days)s days.**") % {"days": DAYS}
    most = max(named, key=lambda series: series.total)
    amount = f"{format_number(most.total)} {unit}"
    return _("**%(name)s used most: %(amount)s** in the last %(days)s days.") % {
        "name": most.name,
        "amount": amount,
        "days": DAYS,
    }
