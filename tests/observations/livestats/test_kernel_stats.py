"""Merging samples into statistics per kernel."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations.livestats.kernel_stats import MetricValue, merge
from observations.livestats.responses import SeriesSample, parse_response
from observations.livestats.states import LiveState, state_of, state_of_all
from observations.livestats.totals import total, total_over_time
from tests.support.fake_prometheus import K1, K2, gauge, increase, last_read, vector

WINDOW = 60.0


def merged(*samples):
    return merge(parse_response(vector(*samples)).samples, window=WINDOW)


def test_a_gauge_has_value_capacity_percent_maximum_and_mean():
    found = merged(
        gauge(K1, "cpu_util", 1.5),
        gauge(K1, "cpu_util", 2, "capacity"),
        gauge(K1, "cpu_util", 74, "pct"),
        gauge(K1, "cpu_util", 1.9, stat="max"),
        gauge(K1, "cpu_util", 1.2, stat="avg"),
        last_read(K1, 1000),
    )
    at = datetime.fromtimestamp(1000, UTC)
    assert found.metrics[K1] == {"cpu_util": MetricValue(1.5, 2, 74, "cores", None, 1.9, 1.2, at)}
    assert found.observed_at == {K1: at}


def test_a_percentage_that_is_not_exported_is_computed():
    disk = merged(gauge(K1, "disk", 25), gauge(K1, "disk", 100, "capacity")).metrics[K1]["disk"]
    assert (disk.current, disk.capacity, disk.pct, disk.unit) == (25, 100, 25, "bytes")
    assert merged(gauge(K1, "disk", 25)).metrics[K1]["disk"].pct is None
    assert merged(gauge(K1, "disk", 0, "capacity"), gauge(K1, "disk", 1)).metrics[K1]["disk"].pct is None


def test_growth_and_rate_of_counters():
    found = merged(increase(K1, "disk_write", 600), increase(K1, "net_rx", 12.5)).metrics[K1]
    assert (found["disk_write"].current, found["disk_write"].rate) == (600, 10)
    assert (found["net_rx"].current, found["net_rx"].rate, found["net_rx"].unit) == (12.5, 12.5, "bytes/s")


def test_a_metric_with_only_a_capacity_is_unknown_and_not_zero():
    found = merged(gauge(K1, "mem", 1024, "capacity")).metrics[K1]["mem"]
    assert (found.current, found.capacity, found.pct) == (None, 1024, None)


@pytest.mark.parametrize(
    "labels",
    [
        {},
        {"kernel_id": "not-an-id", "metric": "mem", "value_type": "current", "stat": "now"},
        {"kernel_id": K1, "value_type": "current", "stat": "now"},
        {"kernel_id": K1, "metric": "mem", "stat": "now"},
        {"kernel_id": K1, "metric": "mem", "value_type": "strange", "stat": "now"},
        {"kernel_id": K1, "metric": "unheard_of", "value_type": "current", "stat": "now"},
        # A counter among the gauges.
        {"kernel_id": K1, "metric": "net_rx", "value_type": "current", "stat": "now"},
    ],
)
def test_a_series_without_the_required_labels_is_dropped_and_counted(labels):
    found = merged((labels, 1), gauge(K2, "mem", 5))
    assert (found.dropped, set(found.metrics)) == (1, {K2})


def test_the_controller_with_the_newest_reading_counts():
    found = merged(
        gauge(K1, "mem", 100, instance="old:9108"),
        gauge(K1, "mem", 200, instance="new:9108"),
        increase(K1, "net_rx", 9, instance="old:9108"),
        last_read(K1, 2000, instance="new:9108"),
        last_read(K1, 1000, instance="old:9108"),
    )
    assert found.metrics[K1]["mem"].current == 200
    assert found.metrics[K1]["net_rx"].current == 9
    assert found.observed_at[K1].timestamp() == 2000


labels = st.fixed_dictionaries(
    {},
    optional={
        "kernel_id": st.sampled_from([K1, K2, "nonsense"]),
        "metric": st.sampled_from(["cpu_util", "mem", "disk", "disk_read", "net_rx", "other"]),
        "value_type": st.sampled_from(["current", "capacity", "pct"]),
        "stat": st.sampled_from(["now", "max", "avg", "seen"]),
        "instance": st.sampled_from(["a:1", "b:1"]),
    },
)
values = st.floats(allow_nan=False, allow_infinity=False, width=32)
samples = st.lists(st.builds(SeriesSample, labels, st.just(0.0), values), max_size=30)


@given(samples.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_the_order_of_samples_does_not_matter(pair):
    given_order, other_order = pair
    assert merge(given_order, window=WINDOW) == merge(other_order, window=WINDOW)


@given(samples)
def test_every_sample_is_used_or_dropped_and_duplicates_change_nothing(found):
    once, twice = merge(found, window=WINDOW), merge([*found, *found], window=WINDOW)
    assert once.metrics == twice.metrics
    assert twice.dropped == 2 * once.dropped
    assert set(once.metrics) <= {K1, K2}


@pytest.mark.parametrize(
    ("has_figures", "age", "failed", "state"),
    [
        (True, 1, 0, LiveState.OK),
        (True, 30, 0, LiveState.OK),
        (True, 31, 0, LiveState.STALE),
        (True, None, 0, LiveState.STALE),
        (False, None, 0, LiveState.ABSENT),
        (True, 1, 1, LiveState.PARTIAL),
        (False, None, 2, LiveState.PARTIAL),
        (False, None, 3, LiveState.FAILED),
    ],
)
def test_a_kernel_has_a_state(has_figures, age, failed, state):
    assert state_of(has_figures=has_figures, age=age, failed=failed, queries=3, scrape_interval=15) == state


def test_the_worst_state_with_figures_counts_for_several_kernels():
    assert state_of_all([LiveState.OK, LiveState.ABSENT]) == LiveState.OK
    assert state_of_all([LiveState.OK, LiveState.STALE]) == LiveState.STALE
    assert state_of_all([LiveState.ABSENT, LiveState.ABSENT]) == LiveState.ABSENT
    assert state_of_all([LiveState.OK, LiveState.FAILED]) == LiveState.FAILED
    assert state_of_all([]) == LiveState.ABSENT


def test_a_total_sums_the_known_values():
    found = total(
        merged(gauge(kernel, "mem", used), gauge(kernel, "mem", 100, "capacity")).metrics[kernel]
        for kernel, used in ((K1, 10), (K2, 30))
    )
    assert (found["mem"].current, found["mem"].capacity, found["mem"].pct) == (40, 200, 20)
    unknown = merged(gauge(K1, "mem", 100, "capacity")).metrics[K1]
    half = total([unknown, merged(gauge(K2, "mem", 50), gauge(K2, "mem", 100, "capacity")).metrics[K2]])
    assert (half["mem"].current, half["mem"].capacity, half["mem"].pct) == (50, 200, 50)


def test_a_total_over_time_sums_the_values_of_each_time():
    lines = [{"mem": ((1.0, 5.0), (2.0, 6.0))}, {"mem": ((2.0, 1.0),)}, {}]
    assert total_over_time(lines, "mem") == ((1.0, 5.0), (2.0, 7.0))
