"""Labs that are edited without LCM's knowledge."""

import pytest

from lcm.cml.simulator.edits import Edit
from lcm.cml.simulator.options import OptionError
from tests.support.cml_environment import TWO_ROUTERS, Clock, simulated
from tests.support.simulator_client import SimulatorClient

NO_PORTS = "lab: {title: t}\nnodes: [{id: n0, label: out, node_definition: external_connector}]\nlinks: []\n"


@pytest.fixture
def clock():
    return Clock()


def running(clock, topology=TWO_ROUTERS, **options):
    controller = simulated(clock, **options)
    ask = SimulatorClient(controller)
    lab = ask.imported(topology)
    ask("PUT", f"/labs/{lab}/start")
    return controller, ask, lab


def tags(ask, lab):
    return {node["label"]: node["tags"] for node in ask.get(f"/labs/{lab}/nodes", data="true")}


def test_an_added_node_runs_and_has_a_port(clock):
    controller, ask, lab = running(clock)
    label = controller.edit(lab, Edit.ADD_NODE)
    assert tags(ask, lab)[label] == ["serial:65000"]
    assert len(set(ask.get(f"/labs/{lab}/lab_element_state")["nodes"].values())) == 1


def test_a_port_is_changed_and_removed(clock):
    controller, ask, lab = running(clock)
    assert controller.edit(lab, Edit.CHANGE_PORT) == "R1"
    assert tags(ask, lab)["R1"] == ["serial:6001", "pat:2022:22", "core"]
    controller.edit(lab, Edit.REMOVE_PORT)
    assert tags(ask, lab)["R1"] == ["pat:2022:22", "core"]


def test_a_node_uses_more_than_it_was_allocated(clock):
    controller, ask, lab = running(clock)
    controller.edit(lab, Edit.OVERUSE)
    clock.pass_seconds(60)
    first = next(iter(ask.get(f"/labs/{lab}/simulation_stats")["nodes"].values()))
    assert first["cpu_usage"] > 110
    assert first["ram_usage"] > 105
    assert first["disk_usage"] > 2 * 1024


def test_a_stuck_node_keeps_the_lab_from_converging(clock):
    controller, ask, lab = running(clock, boot_seconds=1)
    controller.edit(lab, Edit.STUCK)
    clock.pass_seconds(10_000)
    assert ask.get(f"/labs/{lab}/check_if_converged") is False


@pytest.mark.parametrize("edit", [Edit.CHANGE_PORT, Edit.REMOVE_PORT, Edit.OVERUSE, Edit.STUCK])
def test_an_impossible_edit_is_rejected(clock, edit):
    controller, _, lab = running(clock, NO_PORTS)
    with pytest.raises(OptionError, match="No node of this lab"):
        controller.edit(lab, edit)


def test_a_percentage_of_the_labs_is_edited_after_a_delay(clock):
    _, ask, lab = running(clock, edit_percent=100, edit_after_seconds=20)
    before = tags(ask, lab)
    clock.pass_seconds(21)
    edited = tags(ask, lab)
    assert edited != before
    clock.pass_seconds(1000)
    assert tags(ask, lab) == edited


def test_labs_are_not_edited_by_default(clock):
    _, ask, lab = running(clock)
    before = tags(ask, lab)
    clock.pass_seconds(100_000)
    assert tags(ask, lab) == before


def test_a_percentage_of_the_labs_overuses(clock):
    controller = simulated(clock, overuse_percent=50, memory_mb=10**6, cpus=1000, disk_gb=10**5)
    ask = SimulatorClient(controller)
    for number in range(40):
        ask("PUT", f"/labs/{ask.imported(TWO_ROUTERS, title=f'lab {number}')}/start")
    overusing = sum(any(node.overuses for node in lab.nodes.values()) for lab in controller.labs.values())
    assert 10 <= overusing <= 30


def test_a_lab_of_only_switches_starts_with_overuse_enabled(clock):
    _, ask, lab = running(clock, NO_PORTS, overuse_percent=100)
    assert ask.get(f"/labs/{lab}/state") == "STARTED"
