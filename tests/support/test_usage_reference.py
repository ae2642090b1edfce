"""The reference implementation of usage recording: tables and properties."""

from datetime import UTC, datetime
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairshare.arithmetic.slices import DAY_MS, SLICE_MS, day_of, floor_slice, to_ms
from fairshare.arithmetic.units import UNITS_A_SECOND, exact_seconds, hours
from tests.support.usage_reference import split_at_boundaries, usage_units

MOMENTS = st.integers(0, 4_000_000_000_000)


def at(text: str) -> int:
    return to_ms(datetime.fromisoformat(text).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("start", "end", "lengths"),
    [
        ("2026-03-01T10:00:00", "2026-03-01T10:05:00", [300_000]),
        ("2026-03-01T10:00:00", "2026-03-01T10:15:00", [300_000, 300_000, 300_000]),
        ("2026-03-01T10:02:00", "2026-03-01T10:11:30", [180_000, 300_000, 90_000]),
        ("2026-03-01T10:02:00", "2026-03-01T10:02:00.001", [1]),
        ("2026-03-01T10:04:59.999", "2026-03-01T10:05:00.001", [1, 1]),
        ("2026-03-01T23:58:00", "2026-03-02T00:01:00", [120_000, 60_000]),
        ("2026-03-01T10:00:00", "2026-03-01T10:00:00", []),
        ("2026-03-01T10:00:00", "2026-03-01T09:00:00", []),
    ],
)
def test_an_interval_is_split_at_clock_boundaries(start, end, lengths):
    assert [piece.length for piece in split_at_boundaries(at(start), at(end))] == lengths


@given(start=MOMENTS, length=st.integers(0, 3 * DAY_MS // 10))
def test_slices_cover_the_interval_without_gap_or_overlap(start, length):
    slices = list(split_at_boundaries(start, start + length))
    assert sum(each.length for each in slices) == length
    ends = [each.start + each.length for each in slices]
    assert [each.start for each in slices[1:]] == ends[:-1]
    assert not slices or (slices[0].start == start and ends[-1] == start + length)


@given(start=MOMENTS, length=st.integers(1, DAY_MS // 10))
def test_no_slice_crosses_a_boundary_or_midnight(start, length):
    for each in split_at_boundaries(start, start + length):
        last = each.start + each.length - 1
        assert floor_slice(each.start) == floor_slice(last)
        assert day_of(each.start) == day_of(last)


@given(start=MOMENTS, first=st.integers(0, DAY_MS // 10), second=st.integers(0, DAY_MS // 10))
def test_two_passes_give_the_same_slices_as_one(start, first, second):
    """The first pass stops at a boundary, as a pass over a running kernel does."""
    middle = max(start, floor_slice(start + first))
    end = middle + second
    in_two_passes = [*split_at_boundaries(start, middle), *split_at_boundaries(middle, end)]
    assert in_two_passes == list(split_at_boundaries(start, end))


def test_daylight_saving_time_does_not_change_the_slices():
    """Europe/Vienna, 29 March 2026: the hour from 2 to 3 does not exist."""
    vienna = ZoneInfo("Europe/Vienna")
    start = datetime(2026, 3, 29, 1, 30, tzinfo=vienna)
    end = datetime(2026, 3, 29, 3, 30, tzinfo=vienna)
    slices = list(split_at_boundaries(to_ms(start.astimezone(UTC)), to_ms(end.astimezone(UTC))))
    assert sum(each.length for each in slices) == 3_600_000
    assert len(slices) == 12


@given(
    amount=st.decimals(0, 10_000, places=2),
    lengths=st.lists(st.integers(1, SLICE_MS), min_size=1, max_size=40),
)
def test_usage_of_slices_sums_to_usage_of_the_whole_interval(amount, lengths):
    assert sum(usage_units(amount, length) for length in lengths) == usage_units(amount, sum(lengths))


def test_usage_units_are_hundredths_times_milliseconds():
    assert usage_units(Decimal("2.5"), 1_000) == 250_000 == 2.5 * UNITS_A_SECOND
    assert exact_seconds(250_000) == Decimal("2.5")
    assert hours(usage_units(Decimal(4), 3_600_000)) == 4.0
