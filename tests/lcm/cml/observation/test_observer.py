"""Building an observation from responses: counted values, unknown values and errors."""

import asyncio
import copy
import time
from decimal import Decimal

import httpx
import pytest

from lcm.cml.observation.model import MissingPart, PoolUsage, ResourceObservation
from lcm.cml.observation.observer import observe_lab
from lcm.cml.observation.summary import NODE_FIELDS, USED
from lcm.cml.simulator.edits import Edit
from tests.support.cml_environment import RecordingClient, import_and_start, make_simulator, many_nodes, run
from tests.support.cml_lab_responses import CONNECTOR, NOW, ROUTER, SERVER, lab_responses, observation_from
from tests.support.fake_cml import status
from tests.support.simulator import Fault, FaultKind

EMPTY_STATS = {"nodes": {}, "links": {}}


def node(**changed):
    """Return a router with changed values; `live` replaces operational values."""
    router = copy.deepcopy(ROUTER)
    live = changed.pop("live", {})
    router["operational"] = None if live is None else {**router["operational"], **live}
    return {**router, **changed}


def test_a_complete_lab_is_counted_exactly():
    observation = observation_from(lab_responses())
    assert (observation.observed_at, observation.observer, observation.controller) == (
        NOW,
        "lablet-controller",
        "test",
    )
    assert (observation.lab_id, observation.cml_version) == ("lab-1", "2.10.0")
    assert (observation.total_cpu_cores, observation.total_memory_mb, observation.total_storage_mb) == (
        Decimal("2.00"),
        5120,
        26 * 1024,
    )
    assert (observation.used_cpu_cores, observation.used_memory_mb, observation.used_storage_mb) == (
        Decimal("2.029"),
        2058,
        3710,
    )
    assert (observation.actual_node_count, observation.node_definitions_used) == (
        3,
        ("csr1000v", "external_connector", "ubuntu"),
    )
    assert observation.observed_ports == {"R1_serial": 5041, "R1_pat": 2022, "web_server_vnc": 5044}
    assert (observation.incomplete, observation.errors, observation.is_complete) == ((), (), True)


def test_a_node_has_its_values_ports_and_interfaces():
    router = observation_from(lab_responses()).nodes[0]
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


def test_no_addresses_are_empty_and_unknown_addresses_are_none():
    assert observation_from(lab_responses()).nodes[1].interfaces[0].ip4 == ()
    assert observation_from(lab_responses(layer3_addresses=status(500))).nodes[1].interfaces[0].ip4 is None
    assert observation_from(lab_responses()).nodes[2].interfaces == ()
    assert observation_from(lab_responses(interfaces=status(500))).nodes[2].interfaces is None


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
    observation = observation_from(lab_responses(nodes=[node(**changed)]))
    assert observation.total_cpu_cores == Decimal(cores)


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
def test_a_missing_value_is_none_and_never_zero(changed, figure, total):
    observation = observation_from(lab_responses(nodes=[node(**changed), SERVER]))
    assert getattr(observation.nodes[0], figure) is None
    assert getattr(observation, total) == getattr(observation.nodes[1], figure)
    assert total in observation.incomplete
    assert MissingPart(f"nodes[R1].{figure}", "CML reports no value for this node") in observation.errors


def test_a_stopped_node_is_counted_and_named():
    stopped = node(live=None, state="STOPPED")
    observation = observation_from(lab_responses(nodes=[stopped, SERVER]))
    assert (observation.actual_node_count, observation.total_memory_mb) == (2, 2048)
    assert set(observation.incomplete) >= {"total_cpu_cores", "total_memory_mb", "total_storage_mb"}
    assert "the node is STOPPED" in observation.errors[0].message
    assert "used_memory_mb" not in observation.incomplete


def test_a_total_without_values_is_none():
    observation = observation_from(lab_responses(nodes=[node(live=None)]))
    assert (observation.total_cpu_cores, observation.total_memory_mb, observation.total_storage_mb) == (
        None,
        None,
        None,
    )


def test_an_empty_lab_uses_nothing():
    observation = observation_from(lab_responses(nodes=[], simulation_stats=EMPTY_STATS))
    assert (observation.actual_node_count, observation.total_memory_mb, observation.observed_ports) == (
        0,
        0,
        {},
    )
    assert observation.is_complete


def test_usage_unsupported_by_the_version_is_none_and_complete():
    stats = {"nodes": {"n1": {"cpu_usage": 1}, "n2": {"cpu_usage": 2}}, "links": {}}
    observation = observation_from(lab_responses(simulation_stats=stats))
    assert (observation.used_memory_mb, observation.used_storage_mb) == (None, None)
    assert observation.used_cpu_cores == Decimal("0.040")
    assert observation.is_complete


def test_usage_of_only_some_nodes_is_incomplete():
    stats = {"nodes": {"n1": {"cpu_usage": 1, "ram_usage": 10}}, "links": {}}
    observation = observation_from(lab_responses(simulation_stats=stats))
    assert observation.used_memory_mb == 307
    assert observation.incomplete == ("used_cpu_cores", "used_memory_mb")
    assert {error.part for error in observation.errors} == {
        "nodes[web server].used_cpu_cores",
        "nodes[web server].used_memory_mb",
    }


@pytest.mark.parametrize("value", ["12", None, True, -3, [], {}, 1e300])
def test_usage_that_is_not_a_number_is_unknown(value):
    stats = {"nodes": {"n1": {"cpu_usage": value}, "n2": {"cpu_usage": 50}}, "links": {}}
    observation = observation_from(lab_responses(simulation_stats=stats))
    assert observation.nodes[0].used_cpu_cores is None
    assert (observation.used_cpu_cores, "used_cpu_cores" in observation.incomplete) == (
        Decimal("0.500"),
        True,
    )


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
def test_a_failed_part_is_missing_with_its_reason_and_other_parts_are_present(part, fields, broken):
    observation = observation_from(lab_responses(**{part: broken}))
    assert observation.incomplete == fields
    assert [(error.part, error.message.startswith("w1: ")) for error in observation.errors] == [(part, True)]
    assert (observation.total_memory_mb is None) is (part == "nodes")
    assert (observation.simulation_stats is None) is (part == "simulation_stats")
    assert (observation.resource_pool_usage is None) is (part == "resource_pool_usage")


def test_licences_and_storage_of_resource_pools_are_recorded():
    (pool,) = observation_from(lab_responses()).resource_pool_usage
    assert pool == PoolUsage("p1", "pool", 2, 20, 26 * 1024, None)


@pytest.mark.parametrize("refusal", [403, 404, 405])
def test_a_worker_without_resource_pools_is_observed_completely(refusal):
    observation = observation_from(lab_responses(resource_pool_usage=status(refusal)))
    assert (observation.resource_pool_usage, observation.total_memory_mb, observation.is_complete) == (
        None,
        5120,
        True,
    )


def test_without_nodes_their_totals_are_none():
    observation = observation_from(lab_responses(nodes=status(500)))
    assert (
        observation.nodes,
        observation.actual_node_count,
        observation.node_definitions_used,
        observation.observed_ports,
    ) == (
        (),
        None,
        None,
        None,
    )
    assert (observation.total_cpu_cores, observation.used_cpu_cores) == (None, None)


def test_a_failed_log_in_is_the_reason_of_every_missing_part():
    observation = observation_from(lab_responses(authenticate=status(403, "Authentication failed!")))
    assert {error.part for error in observation.errors} == {
        "nodes",
        "interfaces",
        "layer3_addresses",
        "simulation_stats",
        "resource_pool_usage",
    }
    assert all("Authentication failed!" in error.message for error in observation.errors)


def test_unreadable_entries_are_counted_and_named():
    observation = observation_from(lab_responses(nodes=[ROUTER, "n2", {"label": "no id"}, SERVER]))
    assert (len(observation.nodes), observation.actual_node_count) == (2, 4)
    assert [error.part for error in observation.errors] == ["nodes[1]", "nodes[2]"]
    assert set(observation.incomplete) == set(NODE_FIELDS)


def test_only_unreadable_entries_give_a_count_and_no_totals():
    observation = observation_from(lab_responses(nodes=["n1", "n2"]))
    assert (observation.actual_node_count, observation.total_memory_mb, observation.observed_ports) == (
        2,
        None,
        None,
    )


def test_a_malformed_tag_is_reported_and_other_ports_are_observed():
    observation = observation_from(
        lab_responses(nodes=[node(tags=["serial:", "serial:5041", "http://x", "vnc:99999"])])
    )
    assert observation.observed_ports == {"R1_serial": 5041}
    assert observation.incomplete == ("observed_ports",)
    assert [error.part for error in observation.errors] == ["nodes[R1].tags"] * 2


def test_ports_of_two_nodes_with_the_same_label_have_unique_names():
    same_label = [node(tags=["serial:1001"]), node(id="n9", tags=["serial:1002"])]
    observation = observation_from(lab_responses(nodes=same_label, simulation_stats=EMPTY_STATS))
    assert observation.observed_ports == {"R1_serial": 1001, "R1_serial_2": 1002}
    assert [each.ports for each in observation.nodes] == [{"R1_serial": 1001}, {"R1_serial_2": 1002}]


def test_the_list_of_errors_is_truncated_with_a_notice():
    observation = observation_from(lab_responses(nodes=[7] * 500))
    assert len(observation.errors) == 101
    assert observation.errors[-1].message.startswith("Only the first 100")


def test_statistics_are_stored_as_numbers_by_id():
    assert observation_from(lab_responses()).simulation_stats == {
        "nodes": {
            "n1": {"cpu_usage": 100.18, "ram_usage": 50, "disk_usage": 1400},
            "n2": {"cpu_usage": 2.5, "ram_usage": 25.5, "disk_usage": 2310.4},
            "n3": {},
        },
        "links": {"l1": {"readbytes": 10, "drops": 0}},
    }


def observe_lab_of(controller, deadline=10.0, topology=None):
    async def scenario():
        async with RecordingClient(controller) as cml:
            lab_id = await import_and_start(cml, **({"topology": topology} if topology else {}))
            client = RecordingClient(controller)
            start = time.monotonic()
            observation = await observe_lab(client, lab_id, deadline=deadline)
            await client.aclose()
            return observation, client.exchanges, time.monotonic() - start

    return run(scenario())


@pytest.mark.parametrize(("version", "maximum"), [("2.10", 7), ("2.9", 56)])
def test_a_lab_of_fifty_nodes_needs_few_calls(version, maximum):
    observation, exchanges, _ = observe_lab_of(make_simulator(version=version), topology=many_nodes(50))
    assert observation.actual_node_count == len(observation.observed_ports) == 50
    assert all(len(each.interfaces) == 1 for each in observation.nodes)
    assert observation.is_complete
    assert len(exchanges) <= maximum
    assert {result for _, result in exchanges} == {"200"}


def test_calls_run_in_parallel():
    controller = make_simulator(latency_seconds=0.5)
    _, exchanges, seconds = observe_lab_of(controller)
    assert len(exchanges) == 7
    # Log-in, version, and then all other calls in parallel: three times the latency instead of seven.
    assert seconds < 2.75


@pytest.mark.parametrize("version", ["2.9", "2.10"])
@pytest.mark.parametrize(
    "part",
    ["/nodes$", "interfaces$", "layer3_addresses", "simulation_stats", "resource_pool_usage", "labs/.*/"],
)
def test_the_deadline_ends_an_observation_with_partial_data(version, part):
    controller = make_simulator(version=version)
    controller.fail(Fault(FaultKind.LATENCY, path=part, seconds=60, skip=0 if part != "labs/.*/" else 1))
    observation, _, seconds = observe_lab_of(controller, deadline=0.5)
    assert seconds < 3
    assert any("within the observation deadline of 0.5 s" in error.message for error in observation.errors)
    assert isinstance(observation, ResourceObservation)


def test_failed_interfaces_of_one_node_affect_only_that_node():
    controller = make_simulator(version="2.9")
    controller.fail(Fault(FaultKind.STATUS, path="interfaces$", status=500, times=1))
    observation, _, _ = observe_lab_of(controller)
    assert [each.interfaces is None for each in observation.nodes].count(True) == 1
    assert [error.part for error in observation.errors] == ["nodes[R1].interfaces"]
    assert observation.incomplete == ("nodes",)


def test_edits_of_a_running_lab_are_observed():
    controller = make_simulator()

    async def scenario():
        async with RecordingClient(controller) as cml:
            lab_id = await import_and_start(cml)
            before = await observe_lab(cml, lab_id)
            for edit in (Edit.ADD_NODE, Edit.CHANGE_PORT, Edit.OVERUSE):
                controller.edit(lab_id, edit)
            return before, await observe_lab(cml, lab_id)

    before, after = run(scenario())
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


def test_cancellation_leaves_no_tasks_running():
    controller = make_simulator()
    controller.fail(Fault(FaultKind.LATENCY, path="labs/.*/", seconds=60, skip=1))

    async def scenario():
        async with RecordingClient(controller) as cml:
            lab_id = await import_and_start(cml)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await observe_lab(cml, lab_id)
            return len(asyncio.all_tasks())

    assert run(scenario()) == 1


def test_connectors_are_listed_and_use_nothing():
    observation = observation_from(lab_responses(nodes=[CONNECTOR], simulation_stats=EMPTY_STATS))
    assert (observation.actual_node_count, observation.total_cpu_cores, observation.total_memory_mb) == (
        1,
        Decimal(0),
        0,
    )
    assert observation.is_complete
