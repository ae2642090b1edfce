"""Change log pages: the list, and an entry with its values before and after."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from lcm.domain.resources import RESOURCE
from lcm.domain.roles import Role, role_of
from lcm.models import ChangeLog
from lcm.models.messages import translated
from lcm.models.resources import RESOURCE_LABELS
from lcm.pages.lists import CHANGES
from lcm.selectors.organisation import values_are_for_admins
from lcm.templatetags.lcm import clock, humanize_name
from lcm.web.access import role_required
from lcm.web.list_page import list_view
from lcm.web.object_links import link_objects, model_of
from lcm.web.wording import amount_text, plural_number

# Suffixes of field names that give the unit; the label omits them.
UNITS = ("_mb", "_seconds", "_days")
SECONDS = ("_seconds", "_timeout", "_wait")
ACRONYMS = {"cpu": "CPU", "gpu": "GPU", "url": "URL"}
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


change_list = list_view(CHANGES)


@require_GET
@role_required(Role.VIEWER)
def change_detail(request: HttpRequest, pk: int) -> HttpResponseBase:
    change = get_object_or_404(ChangeLog, pk=pk)
    link_objects([change])
    crumbs = [(_("Change log"), reverse("change_list")), (_("Change %(change)s") % {"change": change.pk}, "")]
    is_hidden = values_are_for_admins(change) and role_of(request.user) < Role.ADMIN
    rows = [] if is_hidden else field_differences(change)
    context = {"change": change, "rows": rows, "is_hidden": is_hidden, "crumbs": crumbs}
    return render(request, "changes/detail.html", context)


@dataclass(frozen=True)
class FieldDifference:
    """One field before and after; None means no value."""

    label: str
    before: str | None
    after: str | None


def field_differences(change: ChangeLog) -> list[FieldDifference]:
    before, after = change.before or {}, change.after or {}
    model = model_of(change.object_type)
    return [
        FieldDifference(
            _label(name), _display(model, name, before.get(name)), _display(model, name, after.get(name))
        )
        for name in dict.fromkeys([*before, *after])
    ]


def _label(name: str) -> str:
    if name in RESOURCE:
        return str(RESOURCE_LABELS[name])
    for ending in (*UNITS, "_at"):
        name = name.removesuffix(ending)
    label = " ".join(ACRONYMS.get(word, word) for word in humanize_name(name).split())
    return label[:1].upper() + label[1:]


def _display(model: type[Model] | None, name: str, value: object) -> str | None:
    if value in (None, "", [], {}):
        return None
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, list):
        return ", ".join(_pairs(each) if isinstance(each, Mapping) else str(each) for each in value)
    if isinstance(value, Mapping):
        return _pairs(value)
    if isinstance(value, str) and _TIME.match(value) and (moment := parse_datetime(value)):
        return clock(moment)
    return _choice_label(model, name, value) or _with_unit(name, value)


def _pairs(value: Mapping[str, Any]) -> str:
    return " · ".join(f"{humanize_name(key)} {each}" for key, each in value.items() if each not in (None, ""))


def _choice_label(model: type[Model] | None, name: str, value: object) -> str | None:
    """Return the label of a choice, or the name of a related object."""
    try:
        field: Any = model and model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    if field and field.is_relation and _ID.fullmatch(str(value)):
        found = field.related_model._default_manager.filter(pk=value).first()
        return str(found) if found else None
    return dict(field.flatchoices).get(value) if field and not field.is_relation else None


def _with_unit(name: str, value: object) -> str:
    """Return an amount with the unit that the field's name gives."""
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return str(value)
    shown, number = amount_text(amount), plural_number(amount)
    if name in RESOURCE:
        return translated(RESOURCE[name].amount(shown, number))
    if name.endswith("_days"):
        return ngettext("%(count)s day", "%(count)s days", number) % {"count": shown}
    if name.endswith(SECONDS):
        return _("%(count)s s") % {"count": shown}
    return f"{shown} MB" if name.endswith("_mb") else str(value)
