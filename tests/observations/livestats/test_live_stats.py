"""Queries against a Prometheus with every kind of failure."""

import asyncio
import json
import threading
import time
from datetime import UTC, datetime

import pytest
import time_machine

from observations.livestats import client
from observations.livestats.live_stats import query_kernel_live_stats
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.states import LiveState
from tests.support.certificates import make_certificate
from tests.support.fake_prometheus import (
    ENOUGH,
    K1,
    K2,
    K3,
    FakeResponse,
    always,
    error_body,
    gauge,
    healthy_response,
    increase,
    last_read,
    run_fake_prometheus,
    vector,
)


def live_stats(url, *kernels, **options):
    made = PrometheusSettings(url=url, **{"timeout": ENOUGH, **options})
    return asyncio.run(query_kernel_live_stats(kernels or (K1, K2), made))


def only(kind, failure):
    """Return a response for one kind of query; the others succeed."""
    return lambda query: failure if query.kind == kind else healthy_response(query)


def test_every_requested_kernel_is_in_the_result():
    with run_fake_prometheus() as server:
        found = live_stats(server.url)
    assert {kernel: stats.state for kernel, stats in found.kernels.items()} == {
        K1: LiveState.OK,
        K2: LiveState.ABSENT,
    }
    metrics = found.kernels[K1].metrics
    assert (metrics["cpu_util"].current, metrics["cpu_util"].pct, metrics["cpu_util"].max) == (1.5, 75, 1.9)
    assert (metrics["disk_read"].current, metrics["disk_read"].rate) == (6000, 100)
    assert metrics["net_rx"].rate == 2048
    assert (found.state, found.missing, found.problems, found.dropped) == (LiveState.OK, (), (), 0)


def test_without_an_address_nothing_is_queried():
    found = live_stats("")
    assert {stats.state for stats in found.kernels.values()} == {LiveState.NOT_CONFIGURED}
    assert found.state == LiveState.NOT_CONFIGURED


def test_queries_are_posted_as_forms():
    with run_fake_prometheus() as server:
        live_stats(server.url)
    assert {query.path for query in server.queries} == {"/api/v1/query"}
    assert sorted(query.kind for query in server.queries) == ["diff", "gauge", "rate"]
    assert {query.headers["content-type"] for query in server.queries} == {
        "application/x-www-form-urlencoded"
    }


def test_three_queries_run_concurrently():
    """No query gets a response before all three have been sent."""
    together = threading.Barrier(3, timeout=ENOUGH / 2)

    def respond(query):
        together.wait()
        return healthy_response(query)

    with run_fake_prometheus(respond) as server:
        assert live_stats(server.url).state == LiveState.OK


def test_many_kernels_are_queried_in_chunks():
    with run_fake_prometheus() as server:
        found = live_stats(server.url, K1, K2, K3, K1, chunk=2)
    assert len(server.queries) == 6
    assert set(found.kernels) == {K1, K2, K3}
    assert all(query.query.count("0f0f0f0f") in (1, 2, 4, 8) for query in server.queries)


def test_a_failed_chunk_keeps_the_others():
    def respond(query):
        return FakeResponse(b"", 503) if K3 in query.query else healthy_response(query)

    with run_fake_prometheus(respond) as server:
        found = live_stats(server.url, K1, K3, chunk=1)
    assert (found.kernels[K1].state, found.kernels[K3].state) == (LiveState.OK, LiveState.FAILED)


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (
            FakeResponse(error_body("bad_data", "parse error at char 3"), 400),
            "HTTP 400 bad_data: parse error at char 3",
        ),
        (
            FakeResponse(error_body("execution", "query timed out"), 503),
            "HTTP 503 execution: query timed out",
        ),
        (FakeResponse(b"<html>Bad Gateway</html>", 502), "HTTP 502"),
        (FakeResponse(b"Unauthorized", 401), "HTTP 401"),
        (FakeResponse(b"not JSON at all"), "the response is not JSON"),
        (FakeResponse(b"[" * 100_000), "the response is not JSON"),
        (FakeResponse([]), "the response is not a query result"),
        (FakeResponse({"status": "success"}), "the response is not a query result"),
    ],
    ids=["4xx", "5xx", "proxy", "401", "text", "deep", "list", "no data"],
)
def test_one_failed_query_keeps_the_others_and_is_named(failure, text):
    check_the_others_are_kept(failure, text)


@pytest.mark.parametrize("slow", [{"delay": 30}, {"drip": 0.5}], ids=["timeout", "drip"])
def test_one_slow_query_keeps_the_others_and_is_named(slow):
    """The other queries have three seconds, which is long even on a busy machine."""
    check_the_others_are_kept(FakeResponse(vector(), **slow), "no response within 3 s", timeout=3.0)


def check_the_others_are_kept(failure, text, **options):
    with run_fake_prometheus(only("rate", failure)) as server:
        found = live_stats(server.url, **options)
    assert {stats.state for stats in found.kernels.values()} == {LiveState.PARTIAL}
    assert list(map(str, found.missing)) == ["network traffic"]
    assert found.problems == (text,)
    assert found.kernels[K1].metrics["cpu_util"].current == 1.5
    assert "net_rx" not in found.kernels[K1].metrics


def test_the_state_is_failed_when_all_queries_fail():
    with run_fake_prometheus(always(FakeResponse(b"", 500))) as server:
        found = live_stats(server.url)
    assert {stats.state for stats in found.kernels.values()} == {LiveState.FAILED}
    assert list(map(str, found.missing)) == ["usage", "disk traffic", "network traffic"]


def test_a_server_that_does_not_listen_is_a_failure():
    with run_fake_prometheus() as server:
        gone = server.url
    found = live_stats(gone)
    assert found.state == LiveState.FAILED
    assert "onnect" in found.problems[0]


def test_warnings_are_passed_on():
    with run_fake_prometheus(
        only("gauge", FakeResponse(vector(warnings=["a store is unavailable"])))
    ) as server:
        assert live_stats(server.url).warnings == ("a store is unavailable",)


@pytest.mark.parametrize(
    "data",
    [{"resultType": "scalar", "result": [1, "2"]}, {"resultType": "string", "result": [1, "text"]}],
    ids=["scalar", "string"],
)
def test_series_without_a_kernel_are_dropped(data):
    with run_fake_prometheus(only("diff", FakeResponse({"status": "success", "data": data}))) as server:
        found = live_stats(server.url)
    assert (found.state, found.dropped) == (LiveState.OK, 1)


def test_empty_results_are_absent():
    with run_fake_prometheus(always(FakeResponse(vector()))) as server:
        found = live_stats(server.url)
    assert (found.state, found.problems) == (LiveState.ABSENT, ())


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "text", ""])
def test_values_that_are_not_numbers_are_dropped_and_counted(value):
    body = vector(gauge(K1, "mem", 5), (gauge(K1, "disk", 0)[0], value), last_read(K1, time.time()))
    with run_fake_prometheus(only("gauge", FakeResponse(body))) as server:
        found = live_stats(server.url)
    assert set(found.kernels[K1].metrics) == {"mem", "disk_read", "net_rx", "net_tx"}
    assert found.dropped == 1


def test_duplicate_series_give_one_value():
    body = vector(gauge(K1, "mem", 5), gauge(K1, "mem", 5), gauge(K1, "mem", 7), last_read(K1, time.time()))
    with run_fake_prometheus(only("gauge", FakeResponse(body))) as server:
        assert live_stats(server.url).kernels[K1].metrics["mem"].current == 7


def test_responses_of_ten_megabytes_are_read_and_larger_ones_rejected(monkeypatch):
    long = "x" * 2000
    many = vector(*[increase(K1, f"{long}{number}", 1) for number in range(5_000)], increase(K1, "net_rx", 3))
    content = json.dumps(many).encode()
    assert len(content) > 10_000_000
    with run_fake_prometheus(only("rate", FakeResponse(content))) as server:
        found = live_stats(server.url)
        assert found.kernels[K1].metrics["net_rx"].rate == 3
        assert found.dropped == 5_000
        monkeypatch.setattr(client, "MAX_RESPONSE_BYTES", 8 * 2**20)
        assert live_stats(server.url).problems == ("the response is larger than 8 MB",)


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ({"token": "t0p"}, "Bearer t0p"),
        ({"user": "lcm", "password": "secret"}, "Basic bGNtOnNlY3JldA=="),
        ({}, None),
    ],
)
def test_queries_use_the_configured_credentials(options, header):
    with run_fake_prometheus() as server:
        live_stats(server.url, **options)
    assert {query.headers.get("authorization") for query in server.queries} == {header}


def test_a_certificate_is_checked(tmp_path):
    server_file, authority = make_certificate(tmp_path)
    with run_fake_prometheus(certificate=server_file) as server:
        assert live_stats(server.url, ca_file=authority).state == LiveState.OK
        assert "certificate verify failed" in live_stats(server.url).problems[0].lower()


def test_old_figures_are_stale():
    def respond(query):
        if query.kind != "gauge":
            return healthy_response(query)
        return FakeResponse(vector(gauge(K1, "mem", 5), last_read(K1, time.time() - 31)))

    with time_machine.travel(datetime.now(UTC), tick=False), run_fake_prometheus(respond) as server:
        assert live_stats(server.url, scrape_interval=15.0).kernels[K1].state == LiveState.STALE
        assert live_stats(server.url, scrape_interval=16.0).kernels[K1].state == LiveState.OK
