"""Menus and chips of the filters of a list page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest
from django_filters import ChoiceFilter, FilterSet, MultipleChoiceFilter

from lcm.web.filter_inputs import MomentFilter, TypedInputMixin
from lcm.web.filters import ObjectFilter
from lcm.web.list_layout import NOT_SAVED
from lcm.web.period_filters import PeriodFilter


def filter_menus(filterset: FilterSet) -> list[dict[str, Any]]:
    """Return the filter menus: check boxes or a single choice, and inputs for typed values."""
    menus: dict[str, dict[str, Any]] = {}
    for name, each in filterset.filters.items():
        if isinstance(each, MultipleChoiceFilter | ChoiceFilter):
            if options := _options(filterset, name):
                several = isinstance(each, MultipleChoiceFilter)
                menus[name] = _menu(name, each, options, several=several)
        elif isinstance(each, TypedInputMixin) and each.menu:
            menu = menus.setdefault(each.menu, _menu(name, each, []))
            menu["inputs"].append(_input(filterset, name, each))
    return list(menus.values())


def _menu(name: str, each: Any, options: Sequence[Any], *, several: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "label": each.label,
        "options": options,
        "several": several,
        "inputs": [],
        "is_period": isinstance(each, PeriodFilter),
    }


def _options(filterset: FilterSet, name: str) -> list[tuple[Any, str, bool]]:
    chosen = {str(value) for value in filterset.data.getlist(name)}
    choices = filterset.form[name].field.choices
    return [(value, label, str(value) in chosen) for value, label in choices if value != ""]


def _input(filterset: FilterSet, name: str, each: TypedInputMixin) -> dict[str, str]:
    """Return the context of an input; a value that cannot be parsed stays as typed."""
    value = filterset.form.cleaned_data.get(name) if filterset.form.is_valid() else None
    typed = each.input_value(value) if value else filterset.data.get(name, "")
    return {"name": name, "label": each.label, "type": each.input_type, "value": typed}  # type: ignore[attr-defined]


def hidden_inputs(request: HttpRequest, menus: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return filters without an input, which only links set, so that the form keeps them."""
    shown = {menu["name"] for menu in menus} | {"q", "sort", "size", *NOT_SAVED}
    shown |= {each["name"] for menu in menus for each in menu["inputs"]}
    return [(name, value) for name, values in request.GET.lists() if name not in shown for value in values]


def filter_chips(request: HttpRequest, filterset: FilterSet) -> list[dict[str, str]]:
    """Return a chip for each active filter, with the query that removes it."""
    chips = []
    for name, each in filterset.filters.items():
        if name == "q":
            continue
        for value in filter(None, request.GET.getlist(name)):
            query = request.GET.copy()
            query.setlist(name, [other for other in query.getlist(name) if other != value])
            query.pop("cursor", None)
            text = f"{_chip_label(filterset, each)}: {_shown(filterset, name, each, value)}"
            chips.append({"text": text, "query": query.urlencode()})
    return chips


def _chip_label(filterset: FilterSet, each: Any) -> str:
    """Return the label of a filter; the ends of a period name what begins or ends then."""
    if isinstance(each, MomentFilter) and (period := filterset.filters.get(each.menu)):
        return f"{period.label}, {str(each.label).lower()}"
    return str(each.label)


def _shown(filterset: FilterSet, name: str, each: object, value: str) -> str:
    if isinstance(each, ObjectFilter):
        return each.name_of(value)
    if isinstance(each, TypedInputMixin) and (found := filterset.form.cleaned_data.get(name)):
        return each.display_text(found)
    choices = dict(getattr(filterset.form.fields[name], "choices", ()))
    known = {str(key): str(label) for key, label in choices.items()}
    return known.get(value, value)
