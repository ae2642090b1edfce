"""Form fields for durations with units: `90 s`, `10 min`, `1 h 30 min`, `2 d`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.dateparse import parse_duration
from django.utils.translation import gettext_lazy as _

SECONDS = {"d": 86_400, "h": 3600, "min": 60, "s": 1}
_PART = re.compile(r"(\d{1,9}) ?(d|h|min|s)")
_TEXT = re.compile(rf"{_PART.pattern}(,? ?{_PART.pattern})*")


def duration_input(seconds: int) -> str:
    """Return a duration as it is entered, in the same words in every language."""
    parts = []
    for unit, size in SECONDS.items():
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"


def read_seconds(text: str) -> int | None:
    """Return the seconds of a text with units; None if it is none."""
    text = text.strip().lower()
    if not _TEXT.fullmatch(text):
        return None
    return sum(int(count) * SECONDS[unit] for count, unit in _PART.findall(text))


def _timedelta(seconds: int, error: Any) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError as overflow:
        raise forms.ValidationError(error, code="invalid") from overflow


class SecondsField(forms.IntegerField):
    """A duration that is stored in seconds; a number without a unit is seconds."""

    widget = forms.TextInput

    def to_python(self, value: object) -> Any:
        seconds = read_seconds(value) if isinstance(value, str) else None
        return super().to_python(value if seconds is None else seconds)

    def prepare_value(self, value: object) -> Any:
        return duration_input(value) if isinstance(value, int) else value

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        return {}


class DurationTextField(forms.DurationField):
    """A duration with units, or as `08:00:00`; a number needs a unit."""

    default_error_messages = {"invalid": _("Enter a duration with units, for example 1 h 30 min.")}

    def to_python(self, value: object) -> Any:
        if isinstance(value, str) and value.strip():
            seconds = read_seconds(value)
            if seconds is not None:
                return _timedelta(seconds, self.error_messages["invalid"])
            if ":" not in value or parse_duration(value.strip()) is None:
                raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)

    def prepare_value(self, value: object) -> Any:
        if isinstance(value, timedelta):
            return duration_input(int(value.total_seconds()))
        return value
