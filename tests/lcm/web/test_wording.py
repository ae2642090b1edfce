"""Texts for durations, times and counts, in English and in the language of the page."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import translation
from django.utils.translation import ngettext_lazy

from lcm.web.wording import Plural, ago_text, clock_text, duration_text, list_text

SLOTS = Plural(ngettext_lazy("%(count)s slot of %(pool)s", "%(count)s slots of %(pool)s"))
# Django has translations of these forms.
CHARACTERS = Plural(
    ngettext_lazy(
        "Ensure this value has at least %(limit_value)d character (it has %(show_value)d).",
        "Ensure this value has at least %(limit_value)d characters (it has %(show_value)d).",
    )
)


@pytest.mark.parametrize(
    ("count", "expected"), [(0, "0 slots of a"), (1, "1 slot of a"), (1_200, "1,200 slots of a")]
)
def test_a_plural_has_the_form_of_its_count(count, expected):
    assert SLOTS.text(count, pool="a") == expected


def test_a_capped_count_is_a_lower_bound():
    assert SLOTS.text(10_000, is_capped=True, pool="a") == "more than 10,000 slots of a"


def test_a_plural_without_its_count():
    assert Plural(ngettext_lazy("The only 100%% slot", "All %(count)s slots")).text(1) == "The only 100% slot"


def test_a_plural_is_translated_when_it_is_used():
    with translation.override("de"):
        assert "mindestens 5 Zeichen" in CHARACTERS.text(1, limit_value=5, show_value=1)
    assert "at least 5 character " in CHARACTERS.text(1, limit_value=5, show_value=1)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59, "59 s"), (5_580, "1 h 33 min"), (3_601, "1 h"), (-90_000, "1 d 1 h")],
)
def test_durations_have_at_most_two_units(seconds, expected):
    assert duration_text(timedelta(seconds=seconds)) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-4.9, "just now"),
        (4.9, "just now"),
        (-5, "5 s ago"),
        (-179, "2 min 59 s ago"),
        (6_720, "in 1 h 52 min"),
        (86_399, "in 23 h 59 min"),
        (100_000, "in 1 d"),
    ],
)
def test_relative_times_have_one_unit(seconds, expected):
    assert ago_text(timedelta(seconds=seconds)) == expected


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        (datetime(2026, 11, 18, 3, 59, 7, tzinfo=UTC), "03:59 UTC"),
        (datetime(2026, 11, 17, 20, 56, tzinfo=UTC), "17 Nov 20:56 UTC"),
        (datetime(2035, 1, 2, 8, 0, tzinfo=UTC), "02 Jan 2035 08:00 UTC"),
    ],
)
def test_clock_times_omit_what_equals_today(moment, expected, time_machine):
    time_machine.move_to(datetime(2026, 11, 18, 12, 0, tzinfo=UTC))
    assert clock_text(moment) == expected


def test_names_of_months_are_translated():
    with translation.override("de"):
        assert clock_text(datetime(2035, 5, 2, 8, 0, tzinfo=UTC)) == "02 Mai 2035 08:00 UTC"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (["CPU"], "CPU"),
        (["CPU", "memory"], "CPU and memory"),
        (["CPU", "memory", "storage"], "CPU, memory and storage"),
    ],
)
def test_lists_have_an_and_before_the_last_item(parts, text):
    assert list_text(parts) == text
