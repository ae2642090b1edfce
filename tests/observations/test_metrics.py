"""Prometheus metrics of recorded observations."""

from datetime import timedelta

import pytest
from prometheus_client import REGISTRY

from lcm.domain.errors import StateConflict
from tests.support.observed_labs import finish, on_slot, post, seen

MINUTE = timedelta(minutes=1)


@pytest.fixture
def counted():
    """Return the observations and new drift counted since the test began."""

    def total(name):
        return REGISTRY.get_sample_value(f"lcm_{name}_total")

    names = ("observations_recorded", "port_drift_detected")
    before = [total(name) for name in names]
    return lambda: tuple(total(name) - was for name, was in zip(names, before, strict=True))


def test_a_repeated_observation_is_counted_once(collecting, now, counted):
    for _ in range(2):
        post(collecting, seen(now), now)
    assert counted() == (1, 0)
    post(collecting, seen(now - MINUTE), now)
    assert counted() == (2, 0)


def test_a_rejected_observation_is_not_counted(collecting, now, counted):
    finish(collecting, now)
    with pytest.raises(StateConflict):
        post(collecting, seen(now), now)
    assert counted() == (0, 0)


def test_drift_is_counted_when_it_is_new(running, now, counted):
    on_slot(running, ports={"r1_serial": 5041})
    post(running, seen(now - 4 * MINUTE, ports={"r1_serial": 5041}), now)
    assert counted() == (1, 0)
    for ago in (3 * MINUTE, 2 * MINUTE):
        post(running, seen(now - ago, ports={"r1_serial": 5041, "r9_vnc": 6001}), now)
    assert counted() == (3, 1)
    post(running, seen(now - MINUTE, ports={"r9_vnc": 6001}), now)
    assert counted() == (4, 2)
    post(running, seen(now, ports={"r1_serial": 5041}), now)
    assert counted() == (5, 2)
