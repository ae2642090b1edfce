"""One query for all concurrent callers, with the last known value as fallback."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from redis.exceptions import ConnectionError as RedisAway

from observations.livestats import single_flight
from observations.livestats.cached_stats import busiest, kernel_live_stats
from observations.livestats.history import MOST_POINTS, kernel_history, step_for
from observations.livestats.prometheus_settings import problems
from observations.livestats.states import LiveState
from tests.support.fake_prometheus import K1, K2, FakeResponse, always, healthy_response, vector


def at_once(count, call):
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(lambda _: call(), range(count)))


def test_fifty_viewers_of_the_same_kernels_cost_one_query(prometheus, settings):
    settings.CONFIG["LIVE_STATS_CACHE_SECONDS"] = 60.0
    prometheus.respond = lambda query: FakeResponse(healthy_response(query).body, delay=0.1)
    found = at_once(50, lambda: kernel_live_stats([K1, K2]))
    assert {each.kernels[K1].metrics["mem"].current for each in found} == {512}
    assert len(prometheus.queries) == 3
    kernel_live_stats([K2, K1])
    assert len(prometheus.queries) == 3
    kernel_live_stats([K1])
    assert len(prometheus.queries) == 6


def test_a_result_is_cached(prometheus, settings):
    settings.CONFIG["LIVE_STATS_CACHE_SECONDS"] = 5.0
    with time_machine.travel(datetime.now(UTC), tick=False) as clock:
        kernel_live_stats([K1])
        clock.shift(4.9)
        kernel_live_stats([K1])
        assert len(prometheus.queries) == 3
        clock.shift(0.2)
        kernel_live_stats([K1])
        assert len(prometheus.queries) == 6


def test_a_failure_is_shared_too(prometheus, settings):
    settings.CONFIG["LIVE_STATS_CACHE_SECONDS"] = 60.0
    prometheus.respond = always(FakeResponse(b"", 500))
    assert {each.state for each in at_once(10, lambda: kernel_live_stats([K1]))} == {LiveState.FAILED}
    assert len(prometheus.queries) == 3


def test_during_an_outage_the_last_figures_stay_with_their_time(prometheus):
    before = kernel_live_stats([K1, K2]).kernels[K1]
    prometheus.respond = always(FakeResponse(b"", 503))
    for _ in range(2):
        down = kernel_live_stats([K1, K2])
        assert down.kernels[K1].state == LiveState.FAILED
        assert down.kernels[K1].metrics == before.metrics
        assert down.kernels[K1].observed_at == before.observed_at
        assert down.kernels[K2].metrics == {}
    prometheus.respond = healthy_response
    assert kernel_live_stats([K1, K2]).kernels[K1].state == LiveState.OK


def test_without_a_cache_every_caller_queries(prometheus, settings, monkeypatch):
    settings.CONFIG["LIVE_STATS_CACHE_SECONDS"] = 5.0

    class Away:
        def get(self, key):
            raise RedisAway

    monkeypatch.setattr(single_flight, "cache", Away())
    for query_count in (3, 6):
        assert kernel_live_stats([K1]).state == LiveState.OK
        assert len(prometheus.queries) == query_count


def test_a_caller_that_waits_in_vain_queries_itself(settings):
    key = single_flight.cache_key("kernels", ["x"])
    single_flight.cache.add(f"{key}:loading", "a stopped process", timeout=60)
    assert single_flight.load_once(key, lambda _: "mine", fresh=5, patience=0.1) == "mine"


def test_a_failed_load_releases_the_lock():
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        single_flight.load_once("livestats:x", fail, fresh=5, patience=1)
    assert single_flight.load_once("livestats:x", lambda _: 7, fresh=5, patience=0.1) == 7


@pytest.mark.parametrize("hours", [0.01, 1, 24, 24 * 90])
@pytest.mark.parametrize("least", [1.0, 15.0])
def test_a_chart_has_no_more_points_than_it_can_show(hours, least):
    step = step_for(hours * 3600, least)
    assert hours * 3600 / step + 1 <= MOST_POINTS + 1
    assert step >= least
    assert step % least == 0


def test_history_is_queried_in_whole_steps_and_shared(prometheus):
    end = datetime(2026, 5, 4, 12, 0, 7, tzinfo=UTC)
    with time_machine.travel(end, tick=False):
        found = kernel_history([K1], start=end - timedelta(hours=1), end=end)
        again = kernel_history([K1], start=end - timedelta(hours=1), end=end)
    assert found == again
    assert len(prometheus.queries) == 2
    assert {query.path for query in prometheus.queries} == {"/api/v1/query_range"}
    assert (found.state, found.step) == (LiveState.OK, 30)
    assert found.end == datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
    assert [len(points) for points in found.kernels[K1].values()] == [5, 5]
    assert set(found.kernels[K1]) == {"cpu_util", "net_rx"}


def test_history_reports_missing_series(prometheus):
    end = datetime.now(UTC)
    span = {"start": end - timedelta(hours=1), "end": end}
    prometheus.respond = lambda query: (
        FakeResponse(b"", 500) if query.kind == "rate" else healthy_response(query)
    )
    assert kernel_history([K1], **span).state == LiveState.PARTIAL
    prometheus.respond = always(FakeResponse(b"", 500))
    failed = kernel_history([K2], **span)
    assert (failed.state, failed.problems) == (LiveState.FAILED, ("HTTP 500",))


def test_the_busiest_result_is_by_session(prometheus):
    prometheus.respond = always(
        FakeResponse(vector(({"session_id": K1}, 3.5), ({"session_id": "?"}, 2), ({}, 1)))
    )
    found = busiest("cpu_util", 5)
    assert list(found.by_session.values()) == [3.5]
    assert "topk(5, sum by (session_id)" in prometheus.queries[0].query
    prometheus.respond = always(FakeResponse(b"", 500))
    down = busiest("cpu_util", 5)
    assert (down.state, list(down.by_session.values())) == (LiveState.FAILED, [3.5])
    assert down.read_at == found.read_at is not None


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, None),
        ({"PROMETHEUS_URL": "prometheus:9090"}, "PROMETHEUS_URL must look like http://prometheus:9090"),
        ({"PROMETHEUS_LABELS": ["cluster=lab", "1x=y"]}, "“1x=y” is not a label"),
        ({"PROMETHEUS_TOKEN": "t", "PROMETHEUS_USER": "u"}, "mutually exclusive"),
        ({"PROMETHEUS_CLIENT_KEY": "key.pem"}, "must be set together"),
        ({"LIVE_STATS_WINDOW": 59.0}, "rates need 4 scrapes: at least 60 s"),
        ({"LIVE_STATS_STEP": 14.0}, "no samples between scrapes"),
    ],
)
def test_settings_are_checked_when_lcm_starts(settings, changes, text):
    found = list(problems({**settings.CONFIG, **changes}))
    assert (text is None) == (not found)
    assert text is None or text in found[0]
