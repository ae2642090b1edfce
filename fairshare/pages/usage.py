"""Usage explorer: usage by subject, resource and day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from fairshare.models.levels import Level
from fairshare.pages.exports import BUCKETS
from fairshare.pages.usage_range import usage_range
from fairshare.selectors.subject_names import with_names
from fairshare.selectors.usage import Period, SubjectUsage, usage_by_day
from fairshare.services.usage_totals import SUBJECTS, UsageQuery, usage_totals
from lcm.domain.errors import LcmError
from lcm.domain.resources import RESOURCE_NAMES
from lcm.domain.roles import Role
from lcm.models.resources import HOUR_NAMES, RESOURCE_LABELS
from lcm.web.access import htmx_of, role_required
from lcm.web.charts.columns import stacked
from lcm.web.charts.scales import format_number
from lcm.web.export import export
from lcm.web.forms import PageForm
from lcm.web.time_range import TimeRange
from scheduling.models import Pool

MOST_DAYS = 730
LEVEL_TITLES = {Level.DOMAIN: _("By domain"), Level.PROJECT: _("By project"), Level.USER: _("By person")}


class ExplorerForm(PageForm):
    """Filters of the explorer, each with a default; without days it shows the range in the address."""

    first = forms.DateField(label=_("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label=_("To"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    level = forms.ChoiceField(label=_("Level"), choices=Level.choices, required=False)
    resource = forms.ChoiceField(label=_("Resource"), choices=list(RESOURCE_LABELS.items()), required=False)
    pool = forms.ChoiceField(label=_("Pool"), required=False)

    def __init__(self, *args: object, shown: TimeRange, pools: Sequence[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shown = shown
        pool = self.fields["pool"]
        assert isinstance(pool, forms.ChoiceField)
        pool.choices = [("", gettext("All pools")), *((name, name) for name in pools)]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        last = data.get("last") or self.shown.last
        first = data.get("first") or min(self.shown.first, last)
        if first > last:
            self.add_error("first", gettext("The first day must not be after the last day."))
        elif (last - first).days >= MOST_DAYS:
            self.add_error("first", gettext("Choose at most %(count)s days.") % {"count": MOST_DAYS})
        level, resource = data.get("level") or Level.PROJECT, data.get("resource") or RESOURCE_NAMES[0]
        return {**data, "first": first, "last": last, "level": level, "resource": resource}


@require_GET
@role_required(Role.VIEWER)
def usage_explorer(request: HttpRequest) -> HttpResponseBase:
    shown = usage_range(request, now=timezone.now())
    pools = list(Pool.objects.order_by("name").values_list("name", flat=True))
    form = ExplorerForm(request.GET, shown=shown, pools=pools)
    if not form.is_valid():
        context = {"form": form, "crumbs": [(gettext("Usage"), "")]}
        return render(request, "fairshare/usage.html", context, status=422)
    data = form.cleaned_data
    first, last, resource = data["first"], data["last"], data["resource"]
    period, level = Period(first, last, data["pool"]), data["level"]
    wanted = request.GET.get("format", "")
    if wanted in ("csv", "json"):
        return export(BUCKETS, with_names(period.buckets(level)), sort="-day", file_format=wanted)
    address = reverse("usage_explorer")
    context = {
        "form": ExplorerForm(initial=data, shown=shown, pools=pools),
        "level": Level(level),
        "level_title": LEVEL_TITLES[level],
        "query": _query_string(request),
        "address": address,
        "range": shown.with_days(first, last) if "first" in request.GET or "last" in request.GET else shown,
        "crumbs": [(gettext("Fair share"), reverse("fair_share")), (gettext("Usage"), "")],
        **_totals_context(UsageQuery(period, level, resource), f"{address}?{urlencode(shown.others)}"),
    }
    polled = bool(htmx_of(request))
    return render(request, f"fairshare/usage.html{'#found' if polled else ''}", {**context, "oob": polled})


def _totals_context(query: UsageQuery, zoom_address: str) -> dict[str, Any]:
    """Return the top users as text, chart and table, or why they are not available yet."""
    try:
        totals = usage_totals(query, now=timezone.now())
    except LcmError as error:
        return {"problem": error.message}
    if totals.found is None:
        sentence = gettext("**Usage from %(first)s to %(last)s is being calculated.**") % {
            "first": _day(query.period.first),
            "last": _day(query.period.last),
        }
        return {"totals": totals, "sentence": sentence}
    top_subjects, resource = totals.found, query.resource
    by_day = usage_by_day(query.period, query.level, resource, top_subjects.top)
    labels = {name: f"{RESOURCE_LABELS[name]}, {HOUR_NAMES[name]}" for name in RESOURCE_NAMES}
    return {
        "totals": totals,
        "chart": stacked(by_day, unit=str(HOUR_NAMES[resource]), zoom_address=zoom_address),
        "heads": [(name, RESOURCE_LABELS[name], HOUR_NAMES[name]) for name in RESOURCE_NAMES],
        "subjects": [
            (subject, [(labels[name], format_number(subject.amounts[name])) for name in RESOURCE_NAMES])
            for subject in top_subjects.subjects
        ],
        "part_of": RESOURCE_LABELS[resource],
        "hidden": max(top_subjects.count - SUBJECTS, 0),
        "sentence": _sentence(top_subjects.subjects, query),
    }


def _sentence(subjects: list[SubjectUsage], query: UsageQuery) -> str:
    first, last, resource = _day(query.period.first), _day(query.period.last), query.resource
    used = [subject for subject in subjects if subject.amounts[resource] > 0]
    if not used:
        text = gettext("**No usage from %(first)s to %(last)s.** Usage appears after records are aggregated.")
        return text % {"first": first, "last": last}
    top = used[0]
    amount = f"{format_number(top.amounts[resource])} {HOUR_NAMES[resource]}"
    return gettext(
        "**%(name)s used most: %(amount)s, %(percent)s %% of all** from %(first)s to %(last)s, UTC."
    ) % {
        "name": top.name,
        "amount": amount,
        "percent": f"{100 * top.share:.0f}",
        "first": first,
        "last": last,
    }


def _day(day: date) -> str:
    return f"{day:%d %b %Y}"


def _query_string(request: HttpRequest) -> str:
    query = request.GET.copy()
    query.pop("format", None)
    return query.urlencode()
