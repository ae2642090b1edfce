"""From answers to an observation: what is counted, what is not known, and what is said of it."""

import asyncio
import copy
import time
from decimal import Decimal

import httpx
import pytest

from lcm.cml.observation.model import MissingPart, PoolUsage, ResourceObservation
from lcm.cml.observation.observer import observe_lab
from lcm.cml.observation.summary import NODE_FIELDS, USED
from lcm.cml.simulator import Fault, FaultKind
from lcm.cml.simulator.edits import Edit
from tests.support.cml_environment import Worked, many_nodes, run, simulated, started
from tests.support.cml_lab_responses import CONNECTOR, NOW, ROUTER, SERVER, answers, observed
from tests.support.fake_cml import status

EMPTY_STATS = {"nodes": {}, "links": {}}


def node(**changed):
    """A router with some of its values others; `live` are those of what runs."""
    made = copy.deepcopy(ROUTER)
    live = changed.pop("live", {})
    made["operational"] = None if live is None else {**made["operational"], **live}
    return {**made, **changed}


def test_a_whole_lab_is_counted_exactly():
    seen = observed(answers())
    assert (seen.observed_at, seen.observer, seen.controller) == (NOW, "lablet-controller", "test")
    assert (seen.lab_id, seen.cml_version) == ("lab-1", "2.10.0")
    assert (seen.total_cpu_cores, seen.total_memory_mb, seen.total_storage_mb) == (
        Decimal("2.00"),
        5120,
        26 * 1024,
    )
    assert (seen.used_cpu_cores, seen.used_memory_mb, seen.used_storage_mb) == (Decimal("2.029"), 2058, 3710)
    assert (seen.actual_node_count, seen.node_definitions_used) == (
        3,
        ("csr1000v", "external_connector", "ubuntu"),
    )
    assert seen.observed_ports == {"R1_serial": 5041, "R1_pat": 2022, "web_server_vnc": 5044}
    assert (seen.incomplete, seen.errors, seen.is_complete) == ((), (), True)


def test_a_node_has_its_figures_ports_and_interfaces():
    router = observed(answers()).nodes[0]
    assert (router.cpus, router.cpu_limit, router.cpu_cores) == (2, 50, Decimal("1.00"))
    assert (router.ram_mb, router.storage_mb) == (3072, 10 * 1024)
    assert (router.cpu_usage_percent, router.used_cpu_cores) == (Decimal("100.18"), Decimal("2.004"))
    assert (router.image_definition, router.compute_id) == ("csr1000v-17", "c1")
    assert router.ports == {"R1_serial": 5041, "R1_pat": 2022}
    interface = router.interfaces[0]
    assert (interface.mac_address, interface.ip4, interface.ip6) == (
        "52:54:00:00:00:01",
        ("10.0.0.1",),
        ("fe80::1",),
    )


def test_what_was_asked_and_not_seen_is_empty_and_what_was_not_asked_is_none():
    assert observed(answers()).nodes[1].interfaces[0].ip4 == ()
    assert observed(answers(layer3_addresses=status(500))).nodes[1].interfaces[0].ip4 is None
    assert observed(answers()).nodes[2].interfaces == ()
    assert observed(answers(interfaces=status(500))).nodes[2].interfaces is None


@pytest.mark.parametrize(
    ("changed", "cores"),
    [
        ({"live": {"cpus": 4, "cpu_limit": 20}}, "0.80"),
        ({"live": {"cpus": 4, "cpu_limit": 100}}, "4.00"),
        ({"live": {"cpus": 4, "cpu_limit": None}}, "4.00"),
        ({"live": {"cpus": None}, "cpus": 3}, "1.50"),
        ({"live": None, "cpus": 2, "cpu_limit": 25}, "0.50"),
        ({"live": {"cpus": 8}, "node_definition": "unmanaged_switch"}, "0"),
    ],
)
def test_cores_are_cpus_times_the_limit_in_percent(changed, cores):
    seen = observed(answers(nodes=[node(**changed)]))
    assert seen.total_cpu_cores == Decimal(cores)


@pytest.mark.parametrize(
    ("changed", "figure", "total"),
    [
        ({"live": {"cpus": None}}, "cpu_cores", "total_cpu_cores"),
        ({"live": {"ram": None}}, "ram_mb", "total_memory_mb"),
        ({"live": {"boot_disk_size": None, "data_volume": None}}, "storage_mb", "total_storage_mb"),
        ({"live": {"cpus": "two"}}, "cpu_cores", "total_cpu_cores"),
        ({"live": {"ram": -1}}, "ram_mb", "total_memory_mb"),
        ({"live": {"ram": 1e300}}, "ram_mb", "total_memory_mb"),
        ({"live": {"ram": True}}, "ram_mb", "total_memory_mb"),
        ({"live": {"cpus": 1.5}}, "cpu_cores", "total_cpu_cores"),
    ],
)
def test_a_figure_that_is_not_there_is_none_and_never_zero(changed, figure, total):
    seen = observed(answers(nodes=[node(**changed), SERVER]))
    assert getattr(seen.nodes[0], figure) is None
    assert getattr(seen, total) == getattr(seen.nodes[1], figure)
    assert total in seen.incomplete
    assert MissingPart(f"nodes[R1].{figure}", "CML reports no value for this node") in seen.errors


def test_a_node_that_does_not_run_is_counted_as_a_node_and_named():
    stopped = node(live=None, state="STOPPED")
    seen = observed(answers(nodes=[stopped, SERVER]))
    assert (seen.actual_node_count, seen.total_memory_mb) == (2, 2048)
    assert set(seen.incomplete) >= {"total_cpu_cores", "total_memory_mb", "total_storage_mb"}
    assert "the node is STOPPED" in seen.errors[0].message
    assert "used_memory_mb" not in seen.incomplete


def test_without_any_figure_a_total_is_none():
    seen = observed(answers(nodes=[node(live=None)]))
    assert (seen.total_cpu_cores, seen.total_memory_mb, seen.total_storage_mb) == (None, None, None)


def test_an_empty_lab_takes_nothing():
    seen = observed(answers(nodes=[], simulation_stats=EMPTY_STATS))
    assert (seen.actual_node_count, seen.total_memory_mb, seen.observed_ports) == (0, 0, {})
    assert seen.is_complete


def test_usage_that_this_version_does_not_have_is_none_and_nothing_is_missing():
    stats = {"nodes": {"n1": {"cpu_usage": 1}, "n2": {"cpu_usage": 2}}, "links": {}}
    seen = observed(answers(simulation_stats=stats))
    assert (seen.used_memory_mb, seen.used_storage_mb) == (None, None)
    assert seen.used_cpu_cores == Decimal("0.040")
    assert seen.is_complete


def test_usage_of_some_nodes_only_is_said_to_be_incomplete():
    stats = {"nodes": {"n1": {"cpu_usage": 1, "ram_usage": 10}}, "links": {}}
    seen = observed(answers(simulation_stats=stats))
    assert seen.used_memory_mb == 307
    assert seen.incomplete == ("used_cpu_cores", "used_memory_mb")
    assert {error.part for error in seen.errors} == {
        "nodes[web server].used_cpu_cores",
        "nodes[web server].used_memory_mb",
    }


@pytest.mark.parametrize("value", ["12", None, True, -3, [], {}, 1e300])
def test_usage_that_is_no_number_is_not_known(value):
    stats = {"nodes": {"n1": {"cpu_usage": value}, "n2": {"cpu_usage": 50}}, "links": {}}
    seen = observed(answers(simulation_stats=stats))
    assert seen.nodes[0].used_cpu_cores is None
    assert (seen.used_cpu_cores, "used_cpu_cores" in seen.incomplete) == (Decimal("0.500"), True)


PARTS_AND_FIELDS = [
    ("nodes", NODE_FIELDS),
    ("simulation_stats", ("simulation_stats", *USED)),
    ("interfaces", ("nodes",)),
    ("layer3_addresses", ("nodes",)),
    ("resource_pool_usage", ("resource_pool_usage",)),
]
BROKEN = [status(500, "Oops"), b'{"half', b"null", b'"text"', b"7", httpx.Response(302)]


@pytest.mark.parametrize(("part", "fields"), PARTS_AND_FIELDS)
@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_part_that_fails_is_missing_with_its_reason_and_the_others_are_there(part, fields, broken):
    seen = observed(answers(**{part: broken}))
    assert seen.incomplete == fields
    assert [(error.part, error.message.startswith("w1: ")) for error in seen.errors] == [(part, True)]
    assert (seen.total_memory_mb is None) is (part == "nodes")
    assert (seen.simulation_stats is None) is (part == "simulation_stats")
    assert (seen.resource_pool_usage is None) is (part == "resource_pool_usage")


def test_licences_and_storage_of_resource_pools_are_recorded():
    (pool,) = observed(answers()).resource_pool_usage
    assert pool == PoolUsage("p1", "pool", 2, 20, 26 * 1024, None)


@pytest.mark.parametrize("refusal", [403, 404, 405])
def test_a_worker_without_resource_pools_is_observed_completely(refusal):
    seen = observed(answers(resource_pool_usage=status(refusal)))
    assert (seen.resource_pool_usage, seen.total_memory_mb, seen.is_complete) == (None, 5120, True)


def test_without_nodes_nothing_of_them_is_claimed():
    seen = observed(answers(nodes=status(500)))
    assert (seen.nodes, seen.actual_node_count, seen.node_definitions_used, seen.observed_ports) == (
        (),
        None,
        None,
        None,
    )
    assert (seen.total_cpu_cores, seen.used_cpu_cores) == (None, None)


def test_a_worker_that_refuses_the_log_in_gives_nothing_and_says_why_of_everything():
    seen = observed(answers(authenticate=status(403, "Authentication failed!")))
    assert {error.part for error in seen.errors} == {
        "nodes",
        "interfaces",
        "layer3_addresses",
        "simulation_stats",
        "resource_pool_usage",
    }
    assert all("Authentication failed!" in error.message for error in seen.errors)


def test_entries_that_cannot_be_read_are_counted_and_named():
    seen = observed(answers(nodes=[ROUTER, "n2", {"label": "no id"}, SERVER]))
    assert (len(seen.nodes), seen.actual_node_count) == (2, 4)
    assert [error.part for error in seen.errors] == ["nodes[1]", "nodes[2]"]
    assert set(seen.incomplete) == set(NODE_FIELDS)


def test_only_unreadable_entries_give_a_count_and_no_totals():
    seen = observed(answers(nodes=["n1", "n2"]))
    assert (seen.actual_node_count, seen.total_memory_mb, seen.observed_ports) == (2, None, None)


def test_a_tag_that_someone_mistyped_is_said_and_the_other_ports_are_seen():
    seen = observed(answers(nodes=[node(tags=["serial:", "serial:5041", "http://x", "vnc:99999"])]))
    assert seen.observed_ports == {"R1_serial": 5041}
    assert seen.incomplete == ("observed_ports",)
    assert [error.part for error in seen.errors] == ["nodes[R1].tags"] * 2


def test_ports_of_two_nodes_with_one_label_have_names_of_their_own():
    twins = [node(tags=["serial:1001"]), node(id="n9", tags=["serial:1002"])]
    seen = observed(answers(nodes=twins, simulation_stats=EMPTY_STATS))
    assert seen.observed_ports == {"R1_serial": 1001, "R1_serial_2": 1002}
    assert [each.ports for each in seen.nodes] == [{"R1_serial": 1001}, {"R1_serial_2": 1002}]


def test_hundreds_of_errors_are_cut_short_and_that_is_said():
    seen = observed(answers(nodes=[7] * 500))
    assert len(seen.errors) == 101
    assert seen.errors[-1].message.startswith("There are more")


def test_statistics_are_kept_as_numbers_by_id():
    assert observed(answers()).simulation_stats == {
        "nodes": {
            "n1": {"cpu_usage": 100.18, "ram_usage": 50, "disk_usage": 1400},
            "n2": {"cpu_usage": 2.5, "ram_usage": 25.5, "disk_usage": 2310.4},
            "n3": {},
        },
        "links": {"l1": {"readbytes": 10, "drops": 0}},
    }


def observing(controller, deadline=10.0, topology=None):
    async def go():
        async with Worked(controller) as cml:
            lab_id = await started(cml, **({"topology": topology} if topology else {}))
            fresh = Worked(controller)
            before = time.monotonic()
            seen = await observe_lab(fresh, lab_id, deadline=deadline)
            await fresh.aclose()
            return seen, fresh.exchanges, time.monotonic() - before

    return run(go())


@pytest.mark.parametrize(("version", "most"), [("2.10", 7), ("2.9", 56)])
def test_a_lab_of_fifty_nodes_costs_few_calls(version, most):
    seen, exchanges, _ = observing(simulated(version=version), topology=many_nodes(50))
    assert seen.actual_node_count == len(seen.observed_ports) == 50
    assert all(len(each.interfaces) == 1 for each in seen.nodes)
    assert seen.is_complete
    assert len(exchanges) <= most
    assert {result for _, result in exchanges} == {"200"}


def test_calls_go_out_together():
    controller = simulated(latency_seconds=0.5)
    _, exchanges, seconds = observing(controller)
    assert len(exchanges) == 7
    # Logging in, the version, and then all the rest at once: three times the latency instead of seven.
    assert seconds < 2.75


@pytest.mark.parametrize("version", ["2.9", "2.10"])
@pytest.mark.parametrize(
    "part",
    ["/nodes$", "interfaces$", "layer3_addresses", "simulation_stats", "resource_pool_usage", "labs/.*/"],
)
def test_one_deadline_ends_it_with_what_is_there(version, part):
    controller = simulated(version=version)
    controller.fail(Fault(FaultKind.LATENCY, path=part, seconds=60, skip=0 if part != "labs/.*/" else 1))
    seen, _, seconds = observing(controller, deadline=0.5)
    assert seconds < 3
    assert any("within the observation deadline of 0.5 s" in error.message for error in seen.errors)
    assert isinstance(seen, ResourceObservation)


def test_one_node_whose_interfaces_fail_is_its_own_failure():
    controller = simulated(version="2.9")
    controller.fail(Fault(FaultKind.STATUS, path="interfaces$", status=500, times=1))
    seen, _, _ = observing(controller)
    assert [each.interfaces is None for each in seen.nodes].count(True) == 1
    assert [error.part for error in seen.errors] == ["nodes[R1].interfaces"]
    assert seen.incomplete == ("nodes",)


def test_what_was_edited_behind_our_back_is_seen():
    controller = simulated()

    async def go():
        async with Worked(controller) as cml:
            lab_id = await started(cml)
            before = await observe_lab(cml, lab_id)
            for edit in (Edit.ADD_NODE, Edit.CHANGE_PORT, Edit.OVERUSE):
                controller.edit(lab_id, edit)
            return before, await observe_lab(cml, lab_id)

    before, after = run(go())
    assert before.observed_ports == {"R1_serial": 5001, "R1_pat": 2022, "R2_serial": 5002}
    assert after.observed_ports == {
        "R1_serial": 6001,
        "R1_pat": 2022,
        "R2_serial": 5002,
        "added-3_serial": 65000,
    }
    assert (before.actual_node_count, after.actual_node_count) == (3, 4)
    assert after.nodes[0].used_cpu_cores > after.nodes[0].cpu_cores
    assert after.nodes[0].used_memory_mb > after.nodes[0].ram_mb


def test_being_cancelled_leaves_nothing_running():
    controller = simulated()
    controller.fail(Fault(FaultKind.LATENCY, path="labs/.*/", seconds=60, skip=1))

    async def go():
        async with Worked(controller) as cml:
            lab_id = await started(cml)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await observe_lab(cml, lab_id)
            return len(asyncio.all_tasks())

    assert run(go()) == 1


def test_connectors_are_in_the_nodes_and_weigh_nothing():
    seen = observed(answers(nodes=[CONNECTOR], simulation_stats=EMPTY_STATS))
    assert (seen.actual_node_count, seen.total_cpu_cores, seen.total_memory_mb) == (1, Decimal(0), 0)
    assert seen.is_complete
