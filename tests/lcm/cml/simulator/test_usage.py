"""Simulated statistics change, stay in bounds and are reproducible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.simulator.seeded_random import random_fraction, wave
from tests.support.cml_environment import TWO_ROUTERS, SimulatorClock, make_simulator
from tests.support.simulator_client import SimulatorClient


def stats_after(seconds, topology=TWO_ROUTERS, **options):
    clock = SimulatorClock()
    client = SimulatorClient(make_simulator(clock, **options))
    lab = client.import_lab(topology)
    client("PUT", f"/labs/{lab}/start")
    clock.advance(seconds)
    labels = {node["id"]: node["label"] for node in client.get(f"/labs/{lab}/nodes", data="true")}
    stats = client.get(f"/labs/{lab}/simulation_stats")
    return {labels[id]: node for id, node in stats["nodes"].items()}, next(iter(stats["links"].values()))


def test_values_depend_on_the_seed():
    assert stats_after(100, seed=3) == stats_after(100, seed=3)
    assert stats_after(100, seed=3) != stats_after(100, seed=4)


def test_values_change_and_counters_grow():
    samples = [stats_after(seconds) for seconds in (20, 40, 60, 80)]
    assert len({nodes["R1"]["cpu_usage"] for nodes, _ in samples}) > 1
    for counter in ("block0_rd_bytes", "block0_wr_bytes"):
        values = [nodes["R1"][counter] for nodes, _ in samples]
        assert values == sorted(set(values))
    read = [link["readbytes"] for _, link in samples]
    assert read == sorted(set(read))


@given(st.floats(0, 1e6), st.integers(0, 50))
def test_usage_stays_within_the_size_of_a_node(seconds, seed):
    nodes, _ = stats_after(seconds, seed=seed)
    for label in ("R1", "R2"):
        assert 0 < nodes[label]["cpu_usage"] <= 101
        assert 0 < nodes[label]["ram_usage"] <= 100
        assert nodes[label]["disk_usage"] <= 12 * 1024


@given(st.floats(0, 1e6), st.text(max_size=5))
def test_random_values_are_bounded_and_reproducible(seconds, name):
    assert 0 <= random_fraction(name) == random_fraction(name) < 1
    assert -1 <= wave(seconds, name) <= 1


def test_before_2_10_there_is_no_memory_and_disk_usage():
    old, new = stats_after(50, version="2.9")[0]["R1"], stats_after(50)[0]["R1"]
    assert set(new) - set(old) == {"ram_usage", "disk_usage", "is_running", "cpus", "cpu_limit", "ram"}


def test_memory_grows_while_a_node_warms_up():
    assert stats_after(1)[0]["R1"]["ram_usage"] < stats_after(120)[0]["R1"]["ram_usage"]


@pytest.mark.parametrize(("tag", "busier"), [("load:200", True), ("load:50", False), ("load:x", None)])
def test_a_load_tag_changes_the_usage_of_a_node(tag, busier):
    plain = stats_after(120)[0]["R2"]["ram_usage"]
    tagged = stats_after(120, TWO_ROUTERS.replace("'serial:5002'", f"'serial:5002', '{tag}'"))[0]["R2"]
    assert (tagged["ram_usage"] > plain + 5) is (busier is True)
    assert (tagged["ram_usage"] < plain - 5) is (busier is False)


def test_a_stopped_lab_uses_nothing():
    clock = SimulatorClock()
    client = SimulatorClient(make_simulator(clock))
    lab = client.import_lab(TWO_ROUTERS)
    assert all(
        "cpu_usage" not in node for node in client.get(f"/labs/{lab}/simulation_stats")["nodes"].values()
    )


def test_addresses_are_snooped_on_linked_interfaces_once_a_node_is_up():
    clock = SimulatorClock()
    client = SimulatorClient(make_simulator(clock, boot_seconds=10))
    lab = client.import_lab(TWO_ROUTERS)
    client("PUT", f"/labs/{lab}/start")

    def addresses():
        found = client.get(f"/labs/{lab}/layer3_addresses").values()
        return {node["name"]: [each["ip4"] for each in node["interfaces"].values()] for node in found}

    assert addresses() == {"R1": [[]], "R2": [[]], "out": [[]]}
    clock.advance(60)
    samples = addresses()
    assert samples["out"] == [[]]
    assert samples["R1"][0][0].startswith("10.")
