"""Form fields for the settings of a runtime: typed fields, and rows for workers, offerings and labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from lcm.templatetags.lcm import humanize_name, sentence_case
from lcm.web.forms import ObjectField
from scheduling.capacity.runtimes.base import ConfiguredRuntime
from scheduling.capacity.runtimes.registry import runtime_class
from scheduling.options import field_schemas, row_types
from scheduling.pages.supply import UNITS

# Rows of a setting that a form can hold.
MAX_ROWS = 500
LABELS = {
    "ca": gettext_lazy("Certificate file"),
    "endpoint": gettext_lazy("Address"),
    "labels": gettext_lazy("Labels"),
    "market": gettext_lazy("Market"),
    "name": gettext_lazy("Name"),
    "offerings": gettext_lazy("Offerings"),
    "tags": gettext_lazy("Tags"),
    "workers": gettext_lazy("Workers"),
}
TEXTS = re.compile(r"\s*,\s*")


@dataclass(frozen=True)
class SettingInput:
    """An input of a setting; `kind` is `number`, `text`, `flag`, `choice`, `texts`, `pairs` or `rows`."""

    name: str
    key: str
    kind: str
    label: str
    value: Any = ""
    help_text: str = ""
    choices: Sequence[str] = ()
    # Of `pairs` and `rows`: the inputs of each row.
    rows: Sequence[Sequence[SettingInput]] = field(default_factory=list)


class RuntimeSettingsWidget(forms.Widget):
    """The inputs of a runtime's settings; a text with JSON is read as well, for runtimes without a model."""

    needs_multipart_form = False

    def __init__(self, runtime: str, result: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        kind = runtime_class(runtime)
        self.options: type[Any] | None = kind.options_type if issubclass(kind, ConfiguredRuntime) else None
        # The result of a connection test: number of the row, and health.
        self.result = result

    def value_from_datadict(self, data: Mapping[str, Any], files: object, name: str) -> Any:
        if name in data or self.options is None:
            return data.get(name)
        return without_blanks(self.read(data, name))

    def value_omitted_from_data(self, data: Mapping[str, Any], files: object, name: str) -> bool:
        return False

    def read(self, data: Mapping[str, Any], name: str) -> dict[str, Any]:
        """Return the settings as entered, with blank rows."""
        return _read(self.options, data, name)

    def render(self, name: str, value: object, attrs: object = None, renderer: object = None) -> SafeString:
        if self.options is None or not isinstance(value, Mapping | None):
            context = {"name": name, "text": value or "", "attrs": attrs}
            return render_to_string("capacity/settings_text.html", context)
        context = {"inputs": list(_inputs(self.options, value or {}, name)), "result": self.result}
        return render_to_string("capacity/runtime_settings.html", context)


class RuntimeSettingsField(ObjectField):
    """The settings of a runtime as an object."""

    def prepare_value(self, value: object) -> Any:
        return value if isinstance(value, Mapping) else super().prepare_value(value)

    def bound_data(self, data: object, initial: object) -> Any:
        return data if isinstance(data, Mapping) else super().bound_data(data, initial)


def without_blanks(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without blank values and rows, which mean the default."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        kept: Any = value
        if isinstance(value, list):
            rows = (without_blanks(each) if isinstance(each, Mapping) else each for each in value)
            kept = [each for each in rows if each]
        elif isinstance(value, Mapping):
            kept = {key: text for key, text in value.items() if key}
        if kept is not False and kept not in ("", None, [], {}):
            found[name] = kept
    return found


def _kind(schema: Mapping[str, Any], is_rows: bool) -> str:
    if is_rows:
        return "rows"
    if "enum" in schema:
        return "choice"
    kinds = {"number": "number", "integer": "number", "boolean": "flag", "array": "texts", "object": "pairs"}
    return kinds.get(schema.get("type", ""), "text")


def _read(of: Any, data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    types = row_types(of)
    for name, schema in field_schemas(of).items():
        key, kind = f"{prefix}-{name}", _kind(schema, name in types)
        if kind == "rows":
            numbers = range(_count(data, key))
            found[name] = [_read(types[name], data, f"{key}-{number}") for number in numbers]
        elif kind == "pairs":
            numbers = range(_count(data, key))
            pairs = ((data.get(f"{key}-{n}-key", ""), data.get(f"{key}-{n}-value", "")) for n in numbers)
            found[name] = {label.strip(): value.strip() for label, value in pairs}
        else:
            found[name] = _value(kind, data.get(key, "").strip())
    return found


def _count(data: Mapping[str, Any], key: str) -> int:
    """Return the number of rows of a setting in a form."""
    numbers = re.compile(rf"{re.escape(key)}-(\d{{1,3}})-")
    found = (numbers.match(name) for name in data)
    return min(max((int(match[1]) + 1 for match in found if match), default=0), MAX_ROWS)


def _value(kind: str, text: str) -> Any:
    if kind == "flag":
        return text == "on"
    if kind == "texts":
        return [each for each in TEXTS.split(text) if each]
    if kind == "number" and re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", text):
        return float(text) if "." in text else int(text)
    return text


def _inputs(of: Any, values: Mapping[str, Any], prefix: str) -> Iterator[SettingInput]:
    types = row_types(of)
    for name, schema in field_schemas(of).items():
        key, value = f"{prefix}-{name}", values.get(name)
        kind = _kind(schema, name in types)
        rows: list[list[SettingInput]] = []
        if kind == "rows":
            entries = value if isinstance(value, list) and value else [{}]
            rows = [list(_inputs(types[name], each, f"{key}-{n}")) for n, each in enumerate(entries)]
        elif kind == "pairs":
            pairs = [(label, text) for label, text in (value or {}).items() if label]
            rows = [_pair(f"{key}-{n}", *pair) for n, pair in enumerate([*pairs, ("", "")])]
        elif kind == "texts":
            value = ", ".join(value or ())
        yield SettingInput(
            name,
            key,
            kind,
            _label(name),
            "" if value is None else value,
            _help(schema) if kind not in ("rows", "pairs") else "",
            schema.get("enum", ()),
            rows,
        )


def _pair(key: str, label: str, value: object) -> list[SettingInput]:
    return [
        SettingInput("key", f"{key}-key", "text", _("Key"), label),
        SettingInput("value", f"{key}-value", "text", _("Value"), value),
    ]


def _help(schema: Mapping[str, Any]) -> str:
    """Return the meaning of a setting, or what its value is, with its default."""
    title = schema.get("title", "")
    parts = [schema.get("description", "") or (sentence_case(title) if title[:1].islower() else "")]
    default = schema.get("default")
    if default not in (None, "", [], False):
        parts.append(_("Default: %(value)s.") % {"value": default})
    return " ".join(f"{part.rstrip('.')}." for part in parts if part).replace("`", "")


def _label(name: str) -> str:
    """Return the label of a setting with its unit: `Boot, s`."""
    if name in LABELS:
        return str(LABELS[name])
    base, _separator, last = name.rpartition("_")
    text = f"{humanize_name(base)}, {UNITS[last]}" if base and last in UNITS else humanize_name(name)
    return (text[:1].upper() + text[1:]).replace("Cml", "CML")
