"""The time axis: labels at round local times that do not collide."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from lcm.web.charts.time_axis import TimeAxis

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ZONES = ["UTC", "Europe/Vienna", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia"]
# Half of a label, in percent, on the narrowest chart of its kind.
HALF = {"wide-label": 4.5, "narrow-label": 10}


def labels(start, end, width="wide-label"):
    return [each for each in TimeAxis(start, end).labels if width in each.css_class.split()]


@pytest.mark.parametrize(
    ("length", "zone", "texts"),
    [
        (
            timedelta(minutes=1),
            "UTC",
            ["12:00:00", "12:00:10", "12:00:20", "12:00:30", "12:00:40", "12:00:50"],
        ),
        (HOUR, "UTC", ["12:00", "12:10", "12:20", "12:30", "12:40", "12:50"]),
        (6 * HOUR, "Europe/Vienna", ["13:00", "14:00", "15:00", "16:00", "17:00", "18:00"]),
        (24 * HOUR, "UTC", ["12:00", "18:00", "03 Mar", "06:00"]),
        (24 * HOUR, "Asia/Kathmandu", ["18:00", "03 Mar", "06:00", "12:00"]),
        (timedelta(days=30), "UTC", ["09 Mar", "16 Mar", "23 Mar", "30 Mar"]),
    ],
)
def test_labels_are_round_local_times(length, zone, texts):
    with timezone.override(zone):
        assert [each.text for each in labels(NOON, NOON + length)][: len(texts)] == texts


def test_labels_stay_at_their_hours_when_the_clock_changes():
    start = datetime(2026, 3, 28, 12, tzinfo=UTC)
    with timezone.override("Europe/Vienna"):
        texts = [each.text for each in labels(start, start + timedelta(days=2))]
    assert texts == ["29 Mar", "12:00", "30 Mar", "12:00"]


@given(
    start=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
    seconds=st.integers(60, 3 * 365 * 86_400),
    zone=st.sampled_from(ZONES),
    width=st.sampled_from(sorted(HALF)),
)
def test_labels_are_in_order_inside_the_chart_and_apart(start, seconds, zone, width):
    begin = start.replace(tzinfo=UTC)
    with timezone.override(zone):
        found = labels(begin, begin + timedelta(seconds=seconds), width)
    spans = [span_of(label, HALF[width]) for label in found]
    assert all(0 <= label.x <= 100 for label in found)
    assert all(left[1] < right[0] for left, right in pairwise(spans)), [each.x for each in found]
    assert len(found) <= 7


def span_of(label, half):
    """Return where a label begins and ends, as its alignment draws it."""
    words = label.css_class.split()
    if "mid" in words:
        return label.x - half, label.x + half
    return (label.x - 2 * half, label.x) if "end" in words else (label.x, label.x + 2 * half)
