"""Labels in forms: rows of a key and a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from lcm.domain.storable_text import UNSTORABLE, find_unstorable

# Empty rows after the labels.
SPARE_ROWS = 3
Pairs = list[tuple[str, str]]


class LabelsWidget(forms.Widget):
    use_fieldset = True

    def value_from_datadict(self, data: Mapping[str, Any], files: object, name: str) -> Pairs:
        keys = re.compile(rf"{re.escape(name)}-(\d{{1,3}})-key")
        numbers = sorted(int(match[1]) for each in data if (match := keys.fullmatch(each)))
        rows = [(data.get(f"{name}-{n}-key", ""), data.get(f"{name}-{n}-value", "")) for n in numbers]
        pairs = [(key.strip(), value.strip()) for key, value in rows]
        return [pair for pair in pairs if any(pair)]

    def value_omitted_from_data(self, data: Mapping[str, Any], files: object, name: str) -> bool:
        return False

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        pairs = list(value.items()) if isinstance(value, Mapping) else list(value or [])
        rows = [*pairs, *[("", "")] * SPARE_ROWS]
        return render_to_string("components/label_rows.html", {"name": name, "rows": rows})


class LabelsField(forms.Field):
    """Labels as an object of texts."""

    widget = LabelsWidget

    def prepare_value(self, value: object) -> Any:
        return value if isinstance(value, Mapping | list) and not _is_list_of_texts(value) else {}

    def clean(self, value: Pairs) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, text in value:
            if not key:
                raise forms.ValidationError(_("Enter the key of the value “%(value)s”.") % {"value": text})
            if key in found:
                raise forms.ValidationError(_("There are two values for “%(key)s”.") % {"key": key})
            found[key] = text
        if find_unstorable(found) is not None:
            raise forms.ValidationError(UNSTORABLE)
        return found


def _is_list_of_texts(value: object) -> bool:
    """Return whether stored labels are not an object, which placement ignores."""
    return isinstance(value, list) and any(isinstance(each, str) for each in value)
