"""Conversion between times and milliseconds."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from fairshare.arithmetic.slices import to_moment, to_ms


@given(st.integers(0, 4_000_000_000_000))
def test_milliseconds_survive_a_round_trip(ms):
    assert to_ms(to_moment(ms)) == ms


def test_other_time_zones_are_converted_and_microseconds_rounded_down():
    moment = datetime(2026, 3, 1, 12, 0, 0, 1_999, tzinfo=timezone(timedelta(hours=2)))
    assert to_ms(moment) == to_ms(datetime(2026, 3, 1, 10, 0, 0, 1_000, tzinfo=UTC))
