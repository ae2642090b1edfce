"""Durations with units in forms."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django import forms

from lcm.web.durations import DurationTextField, SecondsField, duration_input


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("600", 600),
        ("90 s", 90),
        ("10 min", 600),
        ("1 h 30 min", 5400),
        ("1h30min", 5400),
        ("2 d, 1 H", 176_400),
        (" 0 s ", 0),
    ],
)
def test_a_duration_is_entered_with_units_and_shown_with_them(text, seconds):
    field = SecondsField()
    assert field.clean(text) == seconds
    assert field.clean(field.prepare_value(seconds)) == seconds


@pytest.mark.parametrize("text", ["soon", "10 weeks", "min", "-5 s", "1 h 30", "1.5 h"])
def test_another_text_is_no_duration(text):
    for field in (SecondsField(), DurationTextField()):
        with pytest.raises(forms.ValidationError):
            field.clean(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (90, "1 min 30 s"), (600, "10 min"), (90_000, "1 d 1 h")]
)
def test_a_duration_is_shown_with_its_units(seconds, text):
    assert duration_input(seconds) == text
    assert DurationTextField().prepare_value(timedelta(seconds=seconds)) == text


@pytest.mark.parametrize(("text", "hours"), [("8 h", 8), ("08:00:00", 8), ("1 d", 24)])
def test_a_timeslot_may_be_entered_as_before(text, hours):
    assert DurationTextField().clean(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["8", "999999999 d 99 h"])
def test_a_duration_without_a_unit_or_beyond_all_limits_is_rejected(text):
    with pytest.raises(forms.ValidationError, match="Enter a duration with units"):
        DurationTextField().clean(text)
