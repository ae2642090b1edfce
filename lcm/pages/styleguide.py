"""Every part of the pages in every state, for those who write pages; only with DEBUG."""

from __future__ import annotations

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.pages import samples
from lcm.templatetags.lcm import LOOKS, words
from lcm.web.access import role_required

SURFACES = ("bg", "surface", "sunken", "line", "control", "text", "text-2", "text-3", "accent", "accent-soft")
TONES = ("ok", "warn", "bad", "busy", "idle")


@require_GET
@role_required(Role.VIEWER)
def styleguide(request: HttpRequest) -> HttpResponseBase:
    if not settings.DEBUG:
        raise Http404("The style guide is there with DEBUG only.")
    context = {
        "surfaces": SURFACES,
        "tones": TONES,
        "kinds": range(1, 6),
        "looks": [(status, words(str(getattr(status, "label", status))).capitalize()) for status in LOOKS],
        "crumbs": [("Style guide", "")],
        **samples.forms_shown(),
        **samples.a_list(),
        **samples.dialogs(),
        **samples.messages_shown(),
        **samples.records(),
        **samples.charts(),
    }
    return render(request, "styleguide/page.html", context)
