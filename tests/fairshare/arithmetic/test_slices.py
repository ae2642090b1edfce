"""Time slices: tables and properties."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairshare.arithmetic.slices import (
    DAY_MS,
    SLICE_MS,
    Slice,
    charged_until,
    cut,
    day_of,
    floor_slice,
    to_moment,
    to_ms,
)
from fairshare.arithmetic.units import UNITS_A_SECOND, exact_seconds, hours, usage_units

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
def test_time_is_cut_at_boundaries_of_the_clock(start, end, lengths):
    assert [piece.length for piece in cut(at(start), at(end))] == lengths


@given(start=MOMENTS, length=st.integers(0, 3 * DAY_MS // 10))
def test_pieces_are_the_whole_without_gap_or_overlap(start, length):
    pieces = list(cut(start, start + length))
    assert sum(piece.length for piece in pieces) == length
    ends = [piece.start + piece.length for piece in pieces]
    assert [piece.start for piece in pieces[1:]] == ends[:-1]
    assert not pieces or (pieces[0].start == start and ends[-1] == start + length)


@given(start=MOMENTS, length=st.integers(1, DAY_MS // 10))
def test_no_piece_crosses_a_boundary_or_a_midnight(start, length):
    for piece in cut(start, start + length):
        last = piece.start + piece.length - 1
        assert floor_slice(piece.start) == floor_slice(last)
        assert day_of(piece.start) == day_of(last)


@given(start=MOMENTS, first=st.integers(0, DAY_MS // 10), second=st.integers(0, DAY_MS // 10))
def test_recording_in_two_passes_cuts_the_same_time(start, first, second):
    """The first pass stops at a boundary, as a pass over a running kernel does."""
    middle = max(start, floor_slice(start + first))
    end = middle + second
    assert [*cut(start, middle), *cut(middle, end)] == list(cut(start, end))


@pytest.mark.parametrize(
    ("ended", "now", "until"),
    [
        (None, "2026-03-01T10:07:00", "2026-03-01T10:05:00"),
        (None, "2026-03-01T10:05:00", "2026-03-01T10:05:00"),
        ("2026-03-01T10:01:30", "2026-03-01T10:07:00", "2026-03-01T10:01:30"),
        ("2026-03-01T10:06:30", "2026-03-01T10:07:00", "2026-03-01T10:06:30"),
    ],
)
def test_what_is_held_is_charged_to_the_boundary_what_has_ended_to_its_end(ended, now, until):
    assert charged_until(ended=at(ended) if ended else None, now=at(now)) == at(until)


def test_summer_time_does_not_change_the_cut():
    """Europe/Vienna, 29 March 2026: the hour from 2 to 3 does not exist."""
    vienna = ZoneInfo("Europe/Vienna")
    start = datetime(2026, 3, 29, 1, 30, tzinfo=vienna)
    end = datetime(2026, 3, 29, 3, 30, tzinfo=vienna)
    pieces = list(cut(to_ms(start.astimezone(UTC)), to_ms(end.astimezone(UTC))))
    assert sum(piece.length for piece in pieces) == 3_600_000
    assert len(pieces) == 12


@given(MOMENTS)
def test_moments_survive_the_way_there_and_back(ms):
    assert to_ms(to_moment(ms)) == ms


def test_moments_of_other_zones_and_finer_ones_are_taken():
    moment = datetime(2026, 3, 1, 12, 0, 0, 1_999, tzinfo=timezone(timedelta(hours=2)))
    assert to_ms(moment) == at("2026-03-01T10:00:00.001")


@given(
    amount=st.decimals(0, 10_000, places=2),
    pieces=st.lists(st.integers(1, SLICE_MS), min_size=1, max_size=40),
)
def test_products_of_pieces_sum_to_the_product_of_the_whole(amount, pieces):
    assert sum(usage_units(amount, piece) for piece in pieces) == usage_units(amount, sum(pieces))


def test_units_in_words():
    assert usage_units(Decimal("2.5"), 1_000) == 250_000 == 2.5 * UNITS_A_SECOND
    assert exact_seconds(250_000) == Decimal("2.5")
    assert hours(usage_units(Decimal(4), 3_600_000)) == 4.0


def test_a_slice_is_a_pair():
    assert Slice(1, 2) == (1, 2)
