"""Windows of time from words, in the person's time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from lcm.domain.errors import InvalidInput
from lcm.web.time_window import TimeWindow, read_window

# A Thursday, 11:30 in Berlin.
NOW = datetime(2026, 11, 19, 10, 30, tzinfo=UTC)


@pytest.fixture(autouse=True)
def in_berlin():
    with timezone.override(ZoneInfo("Europe/Berlin")):
        yield


@pytest.mark.parametrize(("text", "at"), [
    ("yesterday 15:00", "2026-11-18T14:00"),
    ("Yesterday at 15:00", "2026-11-18T14:00"),
    ("today 9:05", "2026-11-19T08:05"),
    ("10:00", "2026-11-19T09:00"),
    ("15:00", "2026-11-18T14:00"),
    ("monday 8:00", "2026-11-16T07:00"),
    ("thursday 8:00", "2026-11-19T07:00"),
    ("2026-07-01 15:00", "2026-07-01T13:00"),
    ("2026-07-01T15:00:10Z", "2026-07-01T15:00:10"),
    ("3 h ago", "2026-11-19T07:30"),
    ("90 minutes ago", "2026-11-19T09:00"),
    ("2 days ago", "2026-11-17T10:30"),
])  # fmt: skip
def test_a_moment_shows_an_hour_on_each_side(text, at):
    moment = datetime.fromisoformat(at).replace(tzinfo=UTC)
    hour = timedelta(hours=1)
    assert read_window(text, now=NOW) == TimeWindow(moment - hour, moment + hour)


@pytest.mark.parametrize(("text", "start", "end"), [
    ("today", "2026-11-18T23:00", "2026-11-19T10:30"),
    ("yesterday", "2026-11-17T23:00", "2026-11-18T23:00"),
    # The day on which summer time ends has 25 hours.
    ("2026-10-25", "2026-10-24T22:00", "2026-10-25T23:00"),
    ("1h", "2026-11-19T09:30", "2026-11-19T10:30"),
    ("7d", "2026-11-12T10:30", "2026-11-19T10:30"),
])  # fmt: skip
def test_a_day_or_a_preset_is_shown_as_a_whole(text, start, end):
    expected = [datetime.fromisoformat(each).replace(tzinfo=UTC) for each in (start, end)]
    assert read_window(text, now=NOW) == TimeWindow(*expected)


@pytest.mark.parametrize(
    "text",
    [
        "soon",
        "25:00",
        "yesterday 15",
        "2026-13-01",
        "0001-01-01T00:00",
        "3 x ago",
        "1 month ago",
    ],
)
def test_an_unknown_time_is_rejected_with_examples(text):
    with pytest.raises(InvalidInput, match="is not a time"):
        read_window(text, now=NOW)


def test_the_windows_before_and_after_have_the_same_length():
    window = read_window("1h", now=NOW)
    assert (window.earlier.end, window.later.start) == (window.start, window.end)
    assert window.earlier.end - window.earlier.start == timedelta(hours=1)
    assert window.text.endswith(" CET")


@pytest.mark.parametrize("text", ["9999 w ago", "0001-01-02", "9999-12-01"])
def test_a_time_that_some_zones_cannot_show_is_rejected(text):
    with pytest.raises(InvalidInput, match="out of range"):
        read_window(text, now=NOW)
