"""Small parts of the controller: owner marks, port tags, backoff, work queue, metrics."""

import asyncio
import re
import time
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import generate_latest

from lcm.cml.client.results import LinkEnds, SimulationStats
from lcm.cml.observation.model import NodeObservation
from lcm.controller.backoff import Backoff
from lcm.controller.config import Config
from lcm.controller.lab_statistics import bytes_moved
from lcm.controller.lab_titles import LONGEST_TITLE, format_title, parse_title
from lcm.controller.metrics import Metrics, MetricSample, Utilization, samples_of
from lcm.controller.port_tags import TemplateMismatch, tags_to_write
from lcm.controller.work_queue import WorkQueue
from tests.lcm.controller.fake_lcm import until

# --- owner marks ---------------------------------------------------------------------------------------

SOME = UUID(int=7)


@given(attempt=st.integers(1, 9999), name=st.text(max_size=80))
def test_a_title_carries_its_owner_mark_whatever_the_name(attempt, name):
    session = str(uuid4())
    title = format_title(session, attempt, name)
    assert len(title) <= LONGEST_TITLE
    assert parse_title(title) == (session, attempt)


@pytest.mark.parametrize(
    "title",
    [
        "",
        "CCNA",
        "lcm:",
        "lcm:x:1 y",
        f"x lcm:{SOME}:1",
        f"lcm:{SOME}:1x",
        f"lcm:{SOME}",
        f"LCM:{SOME}:1",
    ],
)
def test_other_titles_have_no_owner_mark(title):
    assert parse_title(title) is None


# --- port tags -----------------------------------------------------------------------------------------


@dataclass
class FakeNode:
    id: str
    label: str
    tags: tuple[str, ...]


def entry(name, label, protocol="serial", inside=None, transport="tcp"):
    values = {
        "name": name,
        "node_label": label,
        "protocol": protocol,
        "inside": inside,
        "transport": transport,
    }
    return {**values, "outside": 5041}


TEMPLATE = [entry("r1_serial", "r1"), entry("r1_pat", "r1", "pat", 161, "udp"), entry("h_vnc", "h", "vnc")]
PORTS = {"r1_serial": 2001, "r1_pat": 2002, "h_vnc": 2003}


def test_allocated_ports_replace_ports_of_the_topology():
    nodes = [
        FakeNode("n0", "r1", ("core", "serial:5041", "pat:udp:6161:161")),
        FakeNode("n1", "h", ("vnc:5044",)),
        FakeNode("n2", "sw", ("quiet",)),
    ]
    assert tags_to_write(nodes, TEMPLATE, PORTS) == {
        "n0": ["core", "serial:2001", "pat:udp:2002:161"],
        "n1": ["vnc:2003"],
    }


def test_unchanged_tags_are_not_written_again():
    nodes = [
        FakeNode("n0", "r1", ("pat:udp:2002:161", "core", "serial:2001")),
        FakeNode("n1", "h", ("vnc:2003",)),
    ]
    assert tags_to_write(nodes, TEMPLATE, PORTS) == {}


def test_an_unreadable_tag_is_kept():
    nodes = [FakeNode("n0", "r1", ("serial:often",)), FakeNode("n1", "h", ())]
    assert tags_to_write(nodes, TEMPLATE, PORTS)["n0"][0] == "serial:often"


@pytest.mark.parametrize(
    ("nodes", "ports", "problem"),
    [
        ([FakeNode("n0", "r1", ())], PORTS, "no node “h”"),
        ([FakeNode("n0", "r1", ()), FakeNode("n1", "h", ())], {}, "r1_serial"),
    ],
)
def test_a_lab_that_does_not_match_its_template_is_reported(nodes, ports, problem):
    with pytest.raises(TemplateMismatch, match=problem):
        tags_to_write(nodes, TEMPLATE, ports)


# --- backoff -------------------------------------------------------------------------------------------


@given(draws=st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_delays_grow_within_their_bounds(draws):
    drawn = iter(draws)
    backoff = Backoff(draw=lambda: next(drawn))
    delays = [backoff.next() for _ in draws]
    assert all(1 <= wait <= 30 for wait in delays)
    assert all(wait >= 15 for wait in delays[5:])


def test_a_success_resets_the_backoff():
    backoff = Backoff(draw=lambda: 1.0)
    assert [backoff.next() for _ in range(3)] == [1, 2, 4]
    backoff.reset()
    assert backoff.next() == 1


# --- the work queue ------------------------------------------------------------------------------------


def run_queue(scenario, seconds=20.0):
    return asyncio.run(asyncio.wait_for(scenario(), seconds))


def test_a_key_added_repeatedly_is_processed_once():
    async def scenario():
        queue, processed = WorkQueue(time.monotonic), []

        async def work(key):
            processed.append(key)

        for _ in range(50):
            queue.add("a")
        queue.add("b")
        running = asyncio.create_task(queue.run(work, 4))
        await asyncio.sleep(0.1)
        running.cancel()
        assert sorted(processed) == ["a", "b"]

    run_queue(scenario)


def test_a_key_is_never_processed_concurrently_and_additions_are_not_lost():
    async def scenario():
        queue, concurrent, highest, processed = WorkQueue(time.monotonic), 0, 0, 0

        async def work(key):
            nonlocal concurrent, highest, processed
            concurrent += 1
            highest, processed = max(highest, concurrent), processed + 1
            await asyncio.sleep(0.03)
            concurrent -= 1

        running = asyncio.create_task(queue.run(work, 8))
        for _ in range(20):
            queue.add("a")
            await asyncio.sleep(0.01)
        before = processed
        queue.add("a")
        await until(lambda: processed > before)
        running.cancel()
        assert highest == 1

    run_queue(scenario)


def test_a_later_due_time_does_not_postpone_an_earlier_one():
    async def scenario():
        queue, processed = WorkQueue(time.monotonic), []

        async def work(key):
            processed.append(key)

        running = asyncio.create_task(queue.run(work, 2))
        queue.add("a", 0.05)
        queue.add("a", 60)
        await until(lambda: processed)
        running.cancel()
        assert processed == ["a"]

    run_queue(scenario)


def test_failed_and_rescheduled_keys_are_processed_again():
    async def scenario():
        queue, processed = WorkQueue(time.monotonic), []

        async def work(key):
            processed.append(key)
            if key == "bad":
                raise RuntimeError
            return 0.02 if len(processed) < 30 else None

        running = asyncio.create_task(queue.run(work, 2))
        queue.add("bad")
        queue.add("good")
        await until(lambda: processed.count("bad") == 2 and processed.count("good") > 5)
        running.cancel()

    run_queue(scenario)


def test_a_closed_queue_finishes_work_and_starts_none():
    async def scenario():
        queue, processed = WorkQueue(time.monotonic), []

        async def work(key):
            await asyncio.sleep(0.1)
            processed.append(key)

        running = asyncio.create_task(queue.run(work, 1))
        queue.add("a")
        queue.add("b")
        await asyncio.sleep(0.03)
        queue.close()
        await queue.idle()
        running.cancel()
        assert processed == ["a"]

    run_queue(scenario)


def test_a_thousand_keys_are_processed():
    async def scenario():
        queue, processed = WorkQueue(time.monotonic), set()

        async def work(key):
            await asyncio.sleep(0)
            processed.add(key)

        for number in range(1000):
            queue.add(str(number))
        running = asyncio.create_task(queue.run(work, 16))
        await until(lambda: len(processed) == 1000)
        running.cancel()

    run_queue(scenario)


# --- metrics -------------------------------------------------------------------------------------------


def test_samples_of_a_node_are_cores_bytes_and_percent():
    node = NodeObservation(
        node_id="n0",
        label="r1",
        node_definition="iosv",
        cpu_cores=2,
        used_cpu_cores=1,
        ram_mb=512,
        cpu_usage_percent=50,
    )
    found = {(each.metric, each.value_type): each.value for each in samples_of("k", node)}
    assert found == {
        ("cpu_util", "current"): 1.0,
        ("cpu_util", "capacity"): 2.0,
        ("cpu_util", "pct"): 50.0,
        ("mem", "capacity"): 512 * 1024 * 1024,
    }


def test_series_are_removed_with_their_session():
    node = NodeObservation(node_id="n0", label="r1", node_definition="iosv", ram_mb=512)
    utilization = Utilization()
    utilization.put("one", samples_of("k1", node), 1000)
    utilization.put("two", [*samples_of("k2", node), MetricSample("k2", "net_rx", "total", 7)], 2000)
    utilization.keep_only(["two"])
    used, moved, processed = utilization.collect()
    assert [sample.labels["session_id"] for sample in used.samples] == ["two"]
    assert set(used.samples[0].labels) == {"kernel_id", "session_id", "metric", "value_type"}
    assert [(sample.name, sample.value) for sample in moved.samples] == [("lcm_kernel_bytes_total", 7)]
    assert [(sample.labels, sample.value) for sample in processed.samples] == [
        ({"kernel_id": "k2", "session_id": "two"}, 2000)
    ]
    utilization.remove("two")
    assert [family.samples for family in utilization.collect()] == [[], [], []]


def test_the_exposition_has_help_and_type():
    metrics = Metrics()
    metrics.utilization.put(
        "one", [MetricSample("k1", "net_rx", "total", 7), MetricSample("k1", "mem", "pct", 5)], 1000
    )
    text = generate_latest(metrics.registry).decode()
    for name, kind in (
        ("lcm_kernel_utilization", "gauge"),
        ("lcm_kernel_bytes_total", "counter"),
        ("lcm_kernel_observed_timestamp_seconds", "gauge"),
    ):
        assert re.search(rf"^# HELP {name} \w", text, re.MULTILINE)
        assert f"# TYPE {name} {kind}\n" in text


STATS = SimulationStats.read(
    {
        "nodes": {"n0": {"block0_rd_bytes": 10, "block1_rd_bytes": 5, "block0_wr_bytes": 3}, "n1": {}},
        "links": {
            "l0": {"readbytes": 100, "writebytes": 40},
            "l1": {"readbytes": 7, "writebytes": -1},
            "loop": {"readbytes": 9, "writebytes": 9},
        },
    }
)
LINKS = {"l0": LinkEnds("n0", "n1"), "l1": LinkEnds("n1", "n0"), "loop": LinkEnds("n0", "n0")}


@pytest.mark.parametrize(
    ("node", "totals"),
    [
        ("n0", {"disk_read": 15, "disk_write": 3, "net_rx": 100, "net_tx": 47}),
        ("n1", {"net_rx": 47, "net_tx": 100}),
        ("n2", {}),
    ],
)
def test_bytes_of_a_node_are_summed_over_its_disks_and_links(node, totals):
    found = {each.metric: each.value for each in bytes_moved("k", node, LINKS, STATS)}
    assert found == totals


def test_links_are_read_from_any_topology():
    good = {"id": "l0", "n1": "a", "n2": "b"}
    assert LinkEnds.read_all({"links": [good, {"id": "l1", "n1": "a"}, None, 5]}) == {
        "l0": LinkEnds("a", "b")
    }
    assert LinkEnds.read_all({"links": "nonsense"}) == LinkEnds.read_all({}) == {}


@pytest.mark.parametrize(
    ("bind", "address", "reported"),
    [
        ("127.0.0.1:9108", "", "127.0.0.1:9108"),
        ("0.0.0.0:9108", "", "this-host:9108"),
        ("[::]:9108", "", "this-host:9108"),
        ("0.0.0.0:9108", "eu-1.example.org:9108", "eu-1.example.org:9108"),
        ("off", "eu-1.example.org:9108", ""),
    ],
)
def test_a_controller_reports_its_metrics_address(monkeypatch, bind, address, reported):
    monkeypatch.setattr("socket.gethostname", lambda: "this-host")
    assert Config(metrics_bind=bind, metrics_address=address).metrics_target() == reported


def test_two_controllers_fit_into_one_process():
    assert Metrics().registry is not Metrics().registry
