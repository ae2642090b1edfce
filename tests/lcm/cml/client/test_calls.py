"""Every client call, against simulators of both CML versions."""

import pytest

from lcm.cml.client.errors import CmlNotFound, CmlRejected
from lcm.cml.client.results import by_node
from lcm.cml.client.version import Version
from tests.support.cml_environment import TWO_ROUTERS, RecordingClient, import_and_start, make_simulator, run
from tests.support.fake_cml import ScriptedWorker, ok

BOTH = pytest.mark.parametrize("version", ["2.9", "2.10"])


def call_on_lab(version, call, **options):
    """Return the result of a call on a running lab."""

    async def scenario():
        async with RecordingClient(make_simulator(version=version, **options)) as cml:
            return await call(cml, await import_and_start(cml))

    return run(scenario())


@BOTH
def test_the_version_is_parsed(version):
    async def scenario():
        async with RecordingClient(make_simulator(version=version)) as cml:
            return await cml.system_information(), await cml.version(), len(cml.records)

    information, found, exchanges = run(scenario())
    assert information.ready is True
    assert found == information.version == Version.read(information.version_text)
    assert (found >= (2, 10)) is (version == "2.10")
    assert exchanges == 1


@BOTH
def test_a_lab_goes_through_its_lifecycle(version):
    async def scenario(cml, lab_id):
        lab = await cml.lab(lab_id)
        results = [(lab.title, lab.owner, lab.node_count, lab.state)]
        results.append((await cml.lab_state(lab_id), await cml.check_if_converged(lab_id)))
        await cml.stop_lab(lab_id)
        results.append(await cml.lab_state(lab_id))
        await cml.wipe_lab(lab_id)
        results.append((await cml.lab_state(lab_id), await cml.labs() == (lab_id,)))
        await cml.delete_lab(lab_id)
        await cml.delete_lab(lab_id)
        return [*results, await cml.labs()]

    assert call_on_lab(version, scenario) == [
        ("a lab", "admin", 3, "STARTED"),
        ("STARTED", True),
        "STOPPED",
        ("DEFINED_ON_CORE", True),
        (),
    ]


@BOTH
def test_nodes_have_operational_values(version):
    nodes = call_on_lab(version, lambda cml, lab_id: cml.nodes(lab_id))
    shown = {
        node.label: (
            node.state,
            node.cpus,
            node.cpu_limit,
            node.ram_mb,
            node.boot_disk_gb,
            node.data_volume_gb,
        )
        for node in nodes
    }
    assert shown == {
        "R1": ("BOOTED", 1, 50, 768, 2, 0),
        "R2": ("BOOTED", 2, 100, 1024, 4, 8),
        "out": ("BOOTED", 0, 100, 0, 0, 0),
    }
    assert nodes[0].tags == ("serial:5001", "pat:2022:22", "core")
    assert nodes[0].raw["lab_id"]


@BOTH
def test_tags_are_replaced(version):
    async def scenario(cml, lab_id):
        node = (await cml.nodes(lab_id))[0]
        await cml.set_node_tags(lab_id, node.id, ["serial:9001", "core"])
        return (await cml.nodes(lab_id))[0].tags

    assert call_on_lab(version, scenario) == ("serial:9001", "core")


async def interfaces_of(cml, lab_id, node_ids):
    """Fetch the interfaces as an observation does."""
    found = await cml.bulk_interfaces(lab_id)
    return await cml.interfaces_one_by_one(lab_id, node_ids) if found is None else by_node(found, node_ids)


@pytest.mark.parametrize(("version", "calls"), [("2.9", 3), ("2.10", 1)])
def test_interfaces_need_one_call_or_one_per_node(version, calls):
    async def scenario(cml, lab_id):
        nodes = await cml.nodes(lab_id)
        await cml.version()
        before = len(cml.records)
        found = await interfaces_of(cml, lab_id, [node.id for node in nodes])
        labels = {node.label: [each.label for each in found[node.id]] for node in nodes}
        macs = {each.mac_address for entries in found.values() for each in entries if each.slot == 0}
        return labels, macs, len(cml.records) - before

    labels, macs, call_count = call_on_lab(version, scenario)
    assert labels == {"R1": ["Loopback0", "Gi0/0"], "R2": ["Gi0/0"], "out": ["port"]}
    assert len(macs) == 3
    assert all(mac.startswith("52:54:00:") for mac in macs)
    assert call_count == calls


def test_with_an_unknown_version_the_bulk_call_is_attempted():
    controller = make_simulator(version="2.9")

    async def scenario():
        async with RecordingClient(controller) as cml:
            lab_id = await import_and_start(cml)
            nodes = await cml.nodes(lab_id)
            cml.version = unknown_version
            found = await interfaces_of(cml, lab_id, [node.id for node in nodes])
            return len(found), [call for call, _ in cml.exchanges].count("get_node_interfaces")

    async def unknown_version():
        return None

    assert run(scenario()) == (3, 3)


def test_a_missing_lab_is_not_mistaken_for_a_missing_call():
    async def scenario():
        async with RecordingClient(make_simulator()) as cml:
            await interfaces_of(cml, "nowhere", ["n"])

    with pytest.raises(CmlNotFound, match="Lab not found: nowhere"):
        run(scenario())


@BOTH
def test_addresses_and_statistics_are_keyed_by_id(version):
    async def scenario(cml, lab_id):
        nodes = await cml.nodes(lab_id)
        return (
            [node.id for node in nodes],
            await cml.layer3_addresses(lab_id),
            await cml.get_lab_simulation_stats(lab_id),
        )

    ids, addresses, stats = call_on_lab(version, scenario)
    assert list(stats.nodes) == ids
    assert len(addresses.by_interface) == 3
    router, connector = stats.nodes[ids[0]], stats.nodes[ids[2]]
    assert router.cpu_percent > 0
    assert (router.ram_percent is None) is (version == "2.9")
    assert (connector.cpu_percent, connector.ram_percent, connector.disk_mb) == (None, None, None)


@BOTH
def test_system_stats_have_capacity_and_pools_have_usage(version):
    async def scenario(cml, lab_id):
        return await cml.system_stats(), (await cml.resource_pool_usage())[0]

    stats, pool = call_on_lab(version, scenario, cpus=8, memory_mb=16384)
    assert (stats.cpu_count, stats.memory_total_mb) == (8, 16384)
    assert stats.disk_total_mb > 0
    assert (pool.label, pool.licenses_used) == ("pool", 2)


def test_titles_may_contain_any_characters():
    title = "lcm/42 & ü=? #1 'x' \"y\" + 100%"

    async def scenario():
        async with RecordingClient(make_simulator()) as cml:
            return (await cml.lab(await cml.import_lab(TWO_ROUTERS, title=title))).title

    assert run(scenario()) == title


def test_insufficient_capacity_is_reported_with_the_description_of_cml():
    with pytest.raises(CmlRejected, match="start returned 400: Bad Request: Insufficient resources"):
        call_on_lab("2.10", lambda cml, lab_id: cml.lab(lab_id), cpus=2)


def test_unknown_states_and_keys_are_passed_through():
    node = {"id": "n", "label": "x", "state": "HIBERNATING", "colour": "red"}
    worker = ScriptedWorker(nodes=[ok([node, {"label": "no id"}, 7])], state=[ok("FROZEN")])

    async def scenario():
        async with worker.client() as cml:
            return await cml.nodes("l"), await cml.lab_state("l")

    nodes, state = run(scenario())
    assert (nodes[0].state, nodes[0].raw["colour"], state) == ("HIBERNATING", "red", "FROZEN")
    assert nodes.unreadable == (1, 2)


def test_top_level_operational_values_of_old_controllers_are_read():
    old = {
        "id": "n",
        "label": "x",
        "cpus": 1,
        "cpu_limit": 100,
        "ram": 128,
        "boot_disk_size": 16,
        "state": "BOOTED",
    }

    async def scenario():
        async with ScriptedWorker(nodes=[ok([old])]).client() as cml:
            return (await cml.nodes("l"))[0]

    node = run(scenario())
    assert (node.cpus, node.ram_mb, node.boot_disk_gb, node.data_volume_gb) == (1, 128, 16, None)
