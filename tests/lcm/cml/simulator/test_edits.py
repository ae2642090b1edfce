"""Labs that are edited without LCM's knowledge."""

import pytest

from lcm.cml.simulator.edits import Edit
from lcm.cml.simulator.options import OptionError
from tests.support.cml_environment import TWO_ROUTERS, SimulatorClock, make_simulator
from tests.support.simulator_client import SimulatorClient

NO_PORTS = "lab: {title: t}\nnodes: [{id: n0, label: out, node_definition: external_connector}]\nlinks: []\n"


@pytest.fixture
def clock():
    return SimulatorClock()


def run_lab(clock, topology=TWO_ROUTERS, **options):
    controller = make_simulator(clock, **options)
    client = SimulatorClient(controller)
    lab = client.import_lab(topology)
    client("PUT", f"/labs/{lab}/start")
    return controller, client, lab


def tags(client, lab):
    return {node["label"]: node["tags"] for node in client.get(f"/labs/{lab}/nodes", data="true")}


def test_an_added_node_runs_and_has_a_port(clock):
    controller, client, lab = run_lab(clock)
    label = controller.edit(lab, Edit.ADD_NODE)
    assert tags(client, lab)[label] == ["serial:65000"]
    assert len(set(client.get(f"/labs/{lab}/lab_element_state")["nodes"].values())) == 1


def test_a_port_is_changed_and_removed(clock):
    controller, client, lab = run_lab(clock)
    assert controller.edit(lab, Edit.CHANGE_PORT) == "R1"
    assert tags(client, lab)["R1"] == ["serial:6001", "pat:2022:22", "core"]
    controller.edit(lab, Edit.REMOVE_PORT)
    assert tags(client, lab)["R1"] == ["pat:2022:22", "core"]


def test_a_node_uses_more_than_it_was_allocated(clock):
    controller, client, lab = run_lab(clock)
    controller.edit(lab, Edit.OVERUSE)
    clock.advance(60)
    first = next(iter(client.get(f"/labs/{lab}/simulation_stats")["nodes"].values()))
    assert first["cpu_usage"] > 110
    assert first["ram_usage"] > 105
    assert first["disk_usage"] > 2 * 1024


def test_a_stuck_node_keeps_the_lab_from_converging(clock):
    controller, client, lab = run_lab(clock, boot_seconds=1)
    controller.edit(lab, Edit.STUCK)
    clock.advance(10_000)
    assert client.get(f"/labs/{lab}/check_if_converged") is False


@pytest.mark.parametrize("edit", [Edit.CHANGE_PORT, Edit.REMOVE_PORT, Edit.OVERUSE, Edit.STUCK])
def test_an_impossible_edit_is_rejected(clock, edit):
    controller, _, lab = run_lab(clock, NO_PORTS)
    with pytest.raises(OptionError, match="No node of this lab"):
        controller.edit(lab, edit)


def test_a_percentage_of_the_labs_is_edited_after_a_delay(clock):
    _, client, lab = run_lab(clock, edit_percent=100, edit_after_seconds=20)
    before = tags(client, lab)
    clock.advance(21)
    edited = tags(client, lab)
    assert edited != before
    clock.advance(1000)
    assert tags(client, lab) == edited


def test_labs_are_not_edited_by_default(clock):
    _, client, lab = run_lab(clock)
    before = tags(client, lab)
    clock.advance(100_000)
    assert tags(client, lab) == before


def test_a_percentage_of_the_labs_overuses(clock):
    controller = make_simulator(clock, overuse_percent=50, memory_mb=10**6, cpus=1000, disk_gb=10**5)
    client = SimulatorClient(controller)
    for number in range(40):
        client("PUT", f"/labs/{client.import_lab(TWO_ROUTERS, title=f'lab {number}')}/start")
    overusing = sum(any(node.overuses for node in lab.nodes.values()) for lab in controller.labs.values())
    assert 10 <= overusing <= 30


def test_a_lab_of_only_switches_starts_with_overuse_enabled(clock):
    _, client, lab = run_lab(clock, NO_PORTS, overuse_percent=100)
    assert client.get(f"/labs/{lab}/state") == "STARTED"
