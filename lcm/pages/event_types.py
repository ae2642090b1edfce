"""The catalogue of events: all types, and the fields, example and JSON Schema of one."""

from __future__ import annotations

import json
from itertools import groupby

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from lcm.domain.roles import Role
from lcm.events.catalog import TYPE_PREFIX, EventType, event_types, example_event
from lcm.web.access import role_required

# Headings of the groups, by the first part of the names.
GROUPS = {
    "session": _("Sessions"),
    "observation": _("Observation"),
    "definition": _("Definitions"),
    "slot": _("Slots"),
    "pool": _("Pools"),
    "fair_share": _("Fair share"),
    "usage": _("Usage"),
    "observer": _("Observers"),
    "controller": _("Controllers"),
    "token": _("Tokens"),
    "person": _("People"),
    "webhook": _("Webhooks"),
}


@require_GET
@role_required(Role.VIEWER)
def event_type_list(request: HttpRequest) -> HttpResponseBase:
    types = event_types().values()
    order = list(GROUPS)
    grouped = groupby(sorted(types, key=lambda kind: order.index(_subject(kind))), key=_subject)
    context = {
        "count": _count(len(types)),
        "groups": [(subject, GROUPS[subject], list(kinds)) for subject, kinds in grouped],
        "crumbs": [(gettext("Event types"), "")],
    }
    return render(request, "notifications/event_types.html", context)


@require_GET
@role_required(Role.VIEWER)
def event_type_detail(request: HttpRequest, name: str) -> HttpResponseBase:
    kind = event_types().get(name)
    if kind is None:
        raise Http404(gettext("There is no event type %(name)s.") % {"name": name})
    context = {
        "kind": kind,
        "cloudevents_type": TYPE_PREFIX + kind.name,
        "fields": kind.subject.data.model_fields.items(),
        "example": _pretty(example_event(kind)),
        "schema": _pretty(kind.schema),
        "crumbs": [(gettext("Event types"), reverse("event_type_list")), (kind.name, "")],
    }
    return render(request, "notifications/event_type.html", context)


def _subject(kind: EventType) -> str:
    return kind.name.partition(".")[0]


def _count(number: int) -> str:
    return ngettext("%(count)s event type", "%(count)s event types", number) % {"count": number}


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
