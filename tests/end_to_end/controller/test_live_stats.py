"""Live statistics from a lab to the page: a real Prometheus scrapes a real controller, and LCM queries it.

All tests share one lab, one controller and one Prometheus, and run in order.
"""

import re
import signal
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from observations.livestats.promql import one_of, quoted
from tests.support.control_plane import wait_until
from tests.support.factories import PASSWORD
from tests.support.prometheus import PrometheusServer

pytestmark = [
    pytest.mark.integration,
    pytest.mark.prometheus,
    pytest.mark.xdist_group("controller"),
]

MB = 1024 * 1024
WINDOW = 6
# Counters are read shortly before they are scraped.
WITHIN = 0.05


@pytest.fixture(scope="module")
def prometheus(plane):
    """A Prometheus that knows only LCM's address and a token."""
    job = {
        "job_name": "lcm",
        "http_sd_configs": [
            {
                "url": f"{plane.url}/api/internal/prometheus-targets",
                "refresh_interval": "1s",
                "authorization": {"type": "Bearer", "credentials": plane.known["discovery"]},
            }
        ],
        "relabel_configs": [
            {"source_labels": ["__meta_lcm_kind"], "regex": "controller|web|watch", "action": "keep"},
            {"source_labels": ["__meta_lcm_kind"], "target_label": "kind"},
        ],
    }
    with tempfile.TemporaryDirectory(prefix="lcm-prometheus-", ignore_cleanup_errors=True) as name:
        server = PrometheusServer(Path(name), [job], address=plane.prometheus_address)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="module")
def controller(plane):
    process = plane.controller("watched", STATS_SECONDS="0.1")
    yield process
    if process.is_running:
        process.stop()


@pytest.fixture(scope="module")
def session(plane, controller, prometheus):
    session_id = plane.request_session(seconds=600)
    plane.until(session_id, "RUNNING")
    return session_id


@pytest.fixture(scope="module")
def browser(plane):
    """A logged-in browser."""
    with httpx.Client(base_url=plane.url, timeout=20, follow_redirects=True) as client:
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', client.get("/login").text)
        form = {"username": "boss", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
        assert client.post("/login", data=form, headers={"Referer": plane.url}).status_code == 200
        yield client


class RunningLab:
    """The lab of a session in its simulator, by node label."""

    def __init__(self, plane, session):
        self.plane = plane
        everything = plane.simulator.admin.controllers()
        self.worker, self.id = next(
            (name, key)
            for name, each in everything.items()
            for key, lab in each["labs"].items()
            if session in lab["title"]
        )
        address = f"{plane.simulator.admin.address_of(self.worker)}/api/v0"
        login = {"username": "admin", "password": "simulated"}
        key = httpx.post(f"{address}/authenticate", json=login).json()
        self.http = httpx.Client(
            base_url=f"{address}/labs/{self.id}/", headers={"Authorization": f"Bearer {key}"}
        )
        nodes = self.http.get("nodes?data=true&operational=true").json()
        self.nodes = {node["label"]: node for node in nodes}

    def stats(self):
        found = self.http.get("simulation_stats").json()
        return {label: found["nodes"][node["id"]] for label, node in self.nodes.items()}

    def counters(self):
        """Return disk and link counters with the time."""
        found = self.http.get("simulation_stats").json()
        nodes, links = found["nodes"].values(), found["links"].values()
        return time.time(), {
            "disk_read": sum(each.get("block0_rd_bytes", 0) for each in nodes),
            "disk_write": sum(each.get("block0_wr_bytes", 0) for each in nodes),
            # One end of a link receives what the other sends.
            "net_rx": sum(each["readbytes"] + each["writebytes"] for each in links),
            "net_tx": sum(each["readbytes"] + each["writebytes"] for each in links),
        }


@pytest.fixture(scope="module")
def lab(plane, session):
    return RunningLab(plane, session)


def live(plane, session):
    response = plane.http.get(f"/api/lablet-sessions/{session}/live-stats")
    assert response.status_code == 200, response.text
    return response.json()


def until_state(plane, session, state, seconds=60):
    wait_until(
        lambda: live(plane, session)["state"] == state,
        f"live statistics are {state}",
        seconds,
        lambda: f"{live(plane, session)}\n{plane.logs()}",
    )
    return live(plane, session)


def read_since(plane, session, moment):
    """Return whether values of every kernel were read after a time."""
    kernels = live(plane, session)["kernels"].values()
    return all(each["observed_at"] and each["observed_at"] > moment for each in kernels)


def by_label(found):
    return {found["nodes"][kernel]: each["metrics"] for kernel, each in found["kernels"].items()}


def test_prometheus_finds_its_targets_by_discovery_alone(plane, prometheus, controller):
    def scraped():
        return {
            (target["labels"]["kind"], target["labels"]["instance"]): target["labels"].get("pool")
            for target in prometheus.targets()
            if target["health"] == "up"
        }

    controller_target = ("controller", f"127.0.0.1:{controller.metrics_port}")
    web, watch = ("web", str(plane.lcm.address)), ("watch", str(plane.lcm.watch_address))
    wait_until(
        lambda: {controller_target, web, watch} <= set(scraped()),
        "all are scraped",
        60,
        lambda: str(prometheus.targets()),
    )
    wait_until(
        lambda: scraped()[controller_target] == "cml-eu", "its pool is known", 60, lambda: str(scraped())
    )


def test_values_match_the_simulator(plane, session, lab):
    until_state(plane, session, "ok")
    before = lab.stats()
    found = by_label(live(plane, session))
    after = lab.stats()
    assert set(found) == {"r1", "r2", "host"}
    for label, metrics in found.items():
        node = lab.nodes[label]["operational"]
        assert metrics["cpu_util"]["capacity"] == node["cpus"]
        assert metrics["mem"]["capacity"] == node["ram"] * MB
        assert metrics["disk"]["capacity"] == node["boot_disk_size"] * 1024 * MB
        now = after[label]
        assert metrics["cpu_util"]["pct"] == pytest.approx(now["cpu_usage"], rel=0.5)
        assert metrics["cpu_util"]["current"] == pytest.approx(
            metrics["cpu_util"]["pct"] * node["cpus"] / 100, abs=0.001
        )
        low, high = sorted((before[label]["ram_usage"], now["ram_usage"]))
        assert low - 2 <= metrics["mem"]["pct"] <= high + 2
        assert metrics["disk"]["current"] / MB == pytest.approx(now["disk_usage"], abs=2)


def test_the_pages_show_live_values(plane, session, browser):
    page = browser.get(f"/sessions/{session}/").text
    assert f'hx-get="/sessions/{session}/live"' in page

    def shown():
        return browser.get(f"/sessions/{session}/live", headers={"HX-Request": "true"}).text

    wait_until(lambda: "<polyline" in shown(), "there are lines", 60, shown)
    panel = shown()
    assert "3 nodes, usage relative to allocation" in panel
    assert re.search(r"of 4\scores, \d+\s%", panel)
    assert "of 3.5 GB" in panel
    (slot,) = {
        each["id"]
        for each in plane.call("GET", "slots/?pool=cml-eu&page_size=50").json()["results"]
        if each["lease_count"]
    }
    assert session[:6] in browser.get(f"/slots/{slot}/live").text
    assert session[:6] in browser.get("/live/busiest").text


def test_history_has_points(plane, session):
    def history():
        return plane.call("GET", f"lablet-sessions/{session}/live-stats/history?range=session").json()

    def points():
        return [len(lines.get("cpu_util", ())) for lines in history()["kernels"].values()]

    wait_until(lambda: points() and min(points()) > 3, "it has points", 60, lambda: str(history()))
    found = history()
    assert found["state"] == "ok"
    for lines in found["kernels"].values():
        assert {"cpu_util", "mem", "disk"} <= set(lines)
        assert len(lines["cpu_util"]) <= 240


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None
)
@given(value=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_any_label_value_survives_escaping(prometheus, value):
    assert prometheus.query(quoted(value))[1] == value
    # A label with this value, and the result of a matcher; `$` is special only in a replacement.
    labelled = f'label_replace(vector(1), "x", {quoted("." + value.replace("$", "$$"))}, "", "")'
    pattern = quoted(one_of(["other", "." + value]))
    (found,) = prometheus.query(f'label_replace({labelled}, "hit", "yes", "x", {pattern})')
    assert found["metric"].get("hit") == "yes"
    (other,) = prometheus.query(f'label_replace(vector(1), "hit", "yes", "x", {pattern})')
    assert "hit" not in other["metric"]


def test_increase_and_rate_match_the_counters_of_the_simulator(plane, session, lab):
    """Counters are read shortly before they are scraped, so a busy machine may need the next window."""

    def wrong():
        first_at, first = lab.counters()
        wait_until(lambda: time.time() - first_at > WINDOW + 1, "the window is full", WINDOW + 5)
        last_at, last = lab.counters()
        totals = live(plane, session)["totals"]
        found = {}
        for metric, value in last.items():
            speed = (value - first[metric]) / (last_at - first_at)
            if totals[metric]["rate"] != pytest.approx(speed, rel=WITHIN):
                found[metric] = (totals[metric]["rate"], speed)
        for metric in ("disk_read", "disk_write"):
            if totals[metric]["current"] != pytest.approx(totals[metric]["rate"] * WINDOW):
                found[metric] = (totals[metric]["current"], totals[metric]["rate"])
        return found

    windows = []
    while wrong_now := wrong():
        windows.append(wrong_now)
        assert len(windows) < 5, windows


def test_values_become_stale_when_the_exporter_stops_and_recover(plane, session, controller):
    before = until_state(plane, session, "ok")
    controller.kill()
    found = until_state(plane, session, "stale")
    assert set(found["totals"]) == set(before["totals"])
    controller.start()
    until_state(plane, session, "ok")


def test_when_prometheus_stops_the_last_values_stay_until_it_is_back(plane, session, prometheus, browser):
    before = until_state(plane, session, "ok")
    panel = f"/sessions/{session}/live"
    prometheus.stop()
    found = until_state(plane, session, "failed")
    assert set(found["totals"]) == set(before["totals"])
    assert found["problems"]
    text = browser.get(panel).text
    assert "Prometheus is not responding" in text
    assert "The figures below are" in text
    assert "of 3.5 GB" in text
    prometheus.start()
    back = datetime.now(UTC).isoformat()
    wait_until(lambda: read_since(plane, session, back), "figures are new", 60, plane.logs)
    until_state(plane, session, "ok")
    assert "Prometheus is not responding" not in browser.get(panel).text


def test_series_end_with_the_lab_and_a_stopped_controller_is_not_scraped(
    plane, session, prometheus, controller
):
    series = f'lcm_kernel_utilization{{session_id="{session}"}}'
    wait_until(lambda: prometheus.query(series), "its series exist", 60, plane.logs)
    plane.call("POST", f"lablet-sessions/{session}/cancel", {"reason": "test done"})
    assert plane.until(session, "TERMINATED", "FAILED") == "TERMINATED"
    wait_until(lambda: not prometheus.query(series), "its series are gone", 60)
    controller.process.send_signal(signal.SIGTERM)
    until_state(plane, session, "absent")
    assert controller.process.wait(60) == 0
    address = f"127.0.0.1:{controller.metrics_port}"

    def scraped():
        return {target["labels"]["instance"] for target in prometheus.targets()}

    wait_until(lambda: address not in scraped(), "it is not scraped any more", 60, lambda: str(scraped()))
    assert str(plane.lcm.address) in scraped()
