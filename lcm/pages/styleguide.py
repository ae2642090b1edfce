"""Every part of the pages in every state, for those who write pages; only with DEBUG."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from lcm.lifecycle import SessionStatus
from lcm.roles import Role
from lcm.templatetags.lcm import LOOKS
from lcm.web.access import role_required
from lcm.web.charts.bars import Share, share_bar
from lcm.web.charts.columns import ByDay, Series, stacked
from lcm.web.charts.dots import Dot, dot_chart
from lcm.web.charts.lines import Point, line_chart, sparkline
from lcm.web.charts.topology import picture_of
from lcm.web.forms import LocalDateTimeField, PageForm

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
SURFACES = ("bg", "surface", "sunken", "line", "control", "text", "text-2", "text-3", "accent", "accent-soft")
TONES = ("ok", "warn", "bad", "busy", "idle")


class SampleForm(PageForm):
    name = forms.CharField(help_text="A hint says what is expected.")
    choice = forms.ChoiceField(choices=[("a", "Worth fixing first"), ("b", "Newest first")])
    starts_at = LocalDateTimeField(label="Moment", required=False)
    flag = forms.BooleanField(required=False, label="May be interrupted")
    reason = forms.CharField(widget=forms.Textarea(attrs={"rows": 3}), required=False)


@require_GET
@role_required(Role.VIEWER)
def styleguide(request: HttpRequest) -> HttpResponseBase:
    if not settings.DEBUG:
        raise Http404("The style guide is there with DEBUG only.")
    context = {
        "surfaces": SURFACES,
        "tones": TONES,
        "kinds": range(1, 6),
        "looks": [(status, str(getattr(status, "label", status)).capitalize()) for status in LOOKS],
        "form": SampleForm(),
        "wrong_form": SampleForm({"name": "", "choice": "z"}),
        "crumbs": [("Style guide", "")],
        **_charts(),
    }
    return render(request, "styleguide/page.html", context)


def _charts() -> dict[str, Any]:
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(14)]
    series = [Series("academy", [float(n % 5 * 20) for n in range(14)]), Series("research", [30.0] * 14)]
    waves = [120 + (number * 37) % 90 for number in range(30)]
    nodes = [
        {"id": name, "label": name, "node_definition": "iosv", "x": x, "y": y}
        for name, x, y in (("r1", 0, 0), ("r2", 100, 40), ("host", 200, 0))
    ]
    dots = [Dot(NOON + timedelta(hours=number), 3 + number % 4, f"Session {number}") for number in range(12)]
    counts = zip(SessionStatus, (4, 2, 1, 3, 20), strict=False)
    return {
        "bar": share_bar([Share(status.label, count, status) for status, count in counts]),
        "column_chart": stacked(ByDay(days, series), unit="core-hours"),
        "line_chart": line_chart(
            [Point(NOON + timedelta(minutes=number), value) for number, value in enumerate(waves)],
            title="Duration of ticks",
            unit="ms",
        ),
        "spark": sparkline(waves, title="The last 30 ticks"),
        "dot_chart": dot_chart(
            dots,
            {"current": 8, "proposal": 5.5, "p95": 5, "max": 6},
            text=lambda value: f"{value:g}",
            said=lambda value: f"{value:g} cores",
            unit="cores",
            least=1,
            band=(8, 5.5),
        ),
        "picture": picture_of(nodes, [{"n1": "r1", "n2": "r2"}, {"n1": "r2", "n2": "host"}]),
    }
