"""Usage on the overview page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from fairshare.models.levels import Level
from fairshare.pages.usage_range import usage_range
from fairshare.selectors.usage import Period, last_check, top_domains, usage_by_day
from lcm.domain.resources import RESOURCE_NAMES
from lcm.domain.roles import Role
from lcm.models.resources import HOUR_NAMES
from lcm.web.access import role_required
from lcm.web.attention import AttentionItem, FleetSnapshot
from lcm.web.charts.columns import stacked
from lcm.web.charts.scales import format_number
from lcm.web.charts.series import Series
from lcm.web.overview import render_lazy_panel
from lcm.web.time_range import TimeRange


def usage_attention_items(snapshot: FleetSnapshot) -> Iterator[AttentionItem]:
    """Yield an item if buckets differ from the sum of their records."""
    check = last_check()
    if check is not None and check.difference_count:
        count = check.difference_count
        text = ngettext(
            "**{count:,} usage bucket differs** from the records",
            "**{count:,} usage buckets differ** from the records",
            count,
        ).format(count=count)
        hint = _("Shares and queue order depend on them")
        yield AttentionItem(text, reverse("fair_share"), check.checked_at, "bad", hint, "oct")


@require_GET
@role_required(Role.VIEWER)
def overview_usage(request: HttpRequest) -> HttpResponseBase:
    """Usage by domain: a panel of the overview, or a page of its own without JavaScript."""
    resource, unit = RESOURCE_NAMES[0], str(HOUR_NAMES[RESOURCE_NAMES[0]])
    now = timezone.now()
    shown = usage_range(request, now=now)
    address = reverse("overview_usage")
    period = Period(shown.first, shown.last)
    by_day = usage_by_day(period, Level.DOMAIN, resource, top_domains(period, resource))
    context = {
        "now": now,
        "range": shown,
        "address": address,
        "chart": stacked(by_day, unit=unit, zoom_address=address),
        "sentence": _sentence(by_day.series, unit, shown),
        "crumbs": [(_("Overview"), reverse("home")), (_("Usage by domain"), "")],
    }
    return render_lazy_panel(request, "overview/usage.html", context)


def _sentence(series: Sequence[Series], unit: str, shown: TimeRange) -> str:
    named = [item for item in series if not item.is_rest]
    if not named:
        return _("**No usage** (%(range)s).") % {"range": shown.text}
    most = max(named, key=lambda item: item.total)
    amount = f"{format_number(most.total)} {unit}"
    return _("**%(name)s used most: %(amount)s** (%(range)s).") % {
        "name": most.name,
        "amount": amount,
        "range": shown.text,
    }
