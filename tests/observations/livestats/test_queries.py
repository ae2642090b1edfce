"""PromQL queries, and escaping of values."""

import pytest

from observations.livestats.catalogue import METRICS, MetricKind
from observations.livestats.promql import Queries, duration, one_of, quoted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ('a"b', '"a\\"b"'),
        ("a\\b", '"a\\\\b"'),
        ("a\nb", '"a\\nb"'),
        ("{a}", '"{a}"'),
        ("\x00", '"\\u0000"'),
        ("\U0001f600", '"\U0001f600"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_a_value_is_quoted(value, text):
    assert quoted(value) == text


def test_special_characters_are_escaped():
    assert one_of(["a.b", "c|d", "e-f"]) == "a\\.b|c\\|d|e-f"


@pytest.mark.parametrize(("seconds", "text"), [(60, "60000ms"), (0.25, "250ms"), (0, "1ms")])
def test_durations_are_in_milliseconds(seconds, text):
    assert duration(seconds) == text


def test_gauge_queries_exclude_counters():
    query = Queries(window=60).gauges(["k"])
    assert 'metric=~"cpu_util|mem|disk"' in query
    assert "lcm_kernel_bytes_total" not in query
    assert not any(metric.name in query for metric in METRICS.values() if metric.kind is not MetricKind.GAUGE)


def test_growth_and_rate_queries_cover_counters_only():
    queries = Queries(window=60)
    assert queries.diffs(["k"]) == (
        "max by (kernel_id, metric, value_type, instance) (increase(lcm_kernel_bytes_total"
        '{kernel_id=~"k",metric=~"disk_read|disk_write"}[60000ms]))'
    )
    assert 'rate(lcm_kernel_bytes_total{kernel_id=~"k",metric=~"net_rx|net_tx"}[60000ms])' in queries.rates(
        ["k"]
    )
    assert "[300000ms]" in queries.rates(["k"], over=300)


def test_extra_labels_are_in_every_selector():
    queries = Queries(window=60, labels={"cluster": 'a"b'})
    texts = [
        queries.gauges(["k"]),
        queries.diffs(["k"]),
        queries.rates(["k"]),
        queries.gauges_over_time(["k"]),
    ]
    for text in [*texts, queries.busiest("cpu_util", 3)]:
        assert text.count('cluster="a\\"b"') == text.count("lcm_kernel_")
