"""Durations of ticks, grouped by time in the database."""

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from scheduling.models import TickRun
from scheduling.selectors.tick_durations import TickPoint, tick_durations
from scheduling.services.pools import create_pool
from tests.support.factories import HUGE

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


@pytest.fixture
def start(now):
    return now.replace(second=0, microsecond=0)


@pytest.fixture
def pools(db):
    return [create_pool(name=name, actor=SYSTEM, **HUGE) for name in ("cml-eu", "cml-us")]


def add(pool, at, ms, **counts):
    TickRun.objects.create(pool=pool, started_at=at, duration_ms=ms, counts=counts)


def test_each_pool_and_step_has_one_point_with_the_slowest_tick(pools, start):
    one, other = pools
    for seconds, ms in ((0, 5), (59.9, 30), (60, 7), (119, 6)):
        add(one, start + seconds * SECOND, ms, placed=2)
    add(other, start + 30 * SECOND, 900, failed=1)
    found = tick_durations(start, start + 2 * MINUTE, step=MINUTE)
    assert found.points == [
        TickPoint(start, "cml-eu", 30, 2),
        TickPoint(start, "cml-us", 900, 1),
        TickPoint(start + MINUTE, "cml-eu", 7, 2),
    ]
    assert (found.slowest_ms, found.placed, found.last, found.others) == (900, 8, ("cml-eu", 6), 0)


def test_quiet_times_have_no_point(pools, start):
    add(pools[0], start, 5)
    add(pools[0], start + 50 * MINUTE, 6)
    found = tick_durations(start, start + 60 * MINUTE, step=MINUTE)
    assert [point.at for point in found.points] == [start, start + 50 * MINUTE]


def test_ticks_outside_the_range_are_left_out(pools, start):
    add(pools[0], start - SECOND, 5)
    add(pools[0], start + MINUTE + SECOND, 5)
    found = tick_durations(start, start + MINUTE, step=MINUTE)
    assert (found.points, found.last) == ([], None)


def test_steps_begin_at_round_times_wherever_the_range_begins(pools, start):
    add(pools[0], start + 70 * SECOND, 5)
    found = tick_durations(start + 20 * SECOND, start + 3 * MINUTE, step=MINUTE)
    assert [point.at for point in found.points] == [start + MINUTE]


def test_the_slowest_pools_are_named_and_the_others_are_one_series(start, db):
    for number in range(11):
        add(create_pool(name=f"cml-{number:02}", actor=SYSTEM, **HUGE), start, 10 + number)
    found = tick_durations(start, start + MINUTE, step=MINUTE)
    assert [(point.pool, point.slowest_ms, point.ticks) for point in found.points][:2] == [
        ("", 12, 3),
        ("cml-03", 13, 1),
    ]
    assert (len(found.points), found.others) == (9, 3)
