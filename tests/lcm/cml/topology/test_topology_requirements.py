"""Requirements of nodes, and assumptions about their sizes."""

from decimal import Decimal

import pytest

from lcm.cml.node_sizes import FAMILIES, NODE_SIZES, default_node_size
from lcm.cml.topology.parser import Topology, parse_topology
from lcm.domain.resources import round_up


def topology(*nodes: str) -> Topology:
    rows = "".join(f"- {{id: n{i}, {fields}}}\n" for i, fields in enumerate(nodes))
    return parse_topology(f"lab: {{title: t}}\nnodes:\n{rows}")


@pytest.mark.parametrize(
    ("fields", "cores", "memory_mb", "storage_gb"),
    [
        ("cpus: 4, ram: 8192, boot_disk_size: 20", "4", 8192, "20"),
        ("cpus: 4, ram: 8192, boot_disk_size: 20, cpu_limit: null", "4", 8192, "20"),
        ("cpus: 4, ram: 8192, boot_disk_size: 20, cpu_limit: 100", "4", 8192, "20"),
        ("cpus: 4, ram: 8192, boot_disk_size: 20, cpu_limit: 50", "2", 8192, "20"),
        ("cpus: 3, ram: 100, boot_disk_size: 20, cpu_limit: 25", "0.75", 100, "20"),
        ("cpus: 1, ram: 512, boot_disk_size: 8, data_volume: 30", "1", 512, "38"),
        ("ram: 1024", "1", 1024, "2"),
        ("cpu_limit: 20", "0.2", 768, "2"),
        ("cpus: 0, ram: 0, boot_disk_size: 0, data_volume: 0", "1", 768, "2"),
    ],
)
def test_a_node_has_the_size_of_its_fields_or_its_definition(fields, cores, memory_mb, storage_gb):
    (node,) = topology(f"label: R1, node_definition: iosv, {fields}").nodes
    assert (node.cpu_cores, node.memory_mb, node.storage_gb) == (
        Decimal(cores),
        memory_mb,
        Decimal(storage_gb),
    )


@pytest.mark.parametrize("definition", ["external_connector", "unmanaged_switch"])
def test_a_connector_or_unmanaged_switch_has_no_resources_whatever_the_file_states(definition):
    found = topology(f"label: X, node_definition: {definition}, cpus: 2, ram: 512, boot_disk_size: 4")
    (node,) = found.nodes
    assert (node.cpu_cores, node.memory_mb, node.storage_gb) == (0, 0, 0)
    assert (found.requirements.cpu_cores, found.assumptions, found.warnings) == (0, (), ())


def test_the_sum_is_rounded_up_to_steps():
    found = topology(
        "label: A, node_definition: x, cpus: 1, cpu_limit: 30, ram: 300, boot_disk_size: 1",
        "label: B, node_definition: x, cpus: 1, cpu_limit: 30, ram: 300, boot_disk_size: 2",
    )
    requirements = found.requirements
    assert (requirements.cpu_cores, requirements.memory_gb, requirements.storage_gb, requirements.gpu) == (
        Decimal("1.0"),
        Decimal("1.0"),
        Decimal(3),
        0,
    )


@pytest.mark.parametrize(
    ("value", "step", "rounded"),
    [
        ("0", "0.5", "0"),
        ("0.01", "0.5", "0.5"),
        ("0.5", "0.5", "0.5"),
        ("0.51", "0.5", "1"),
        ("1.2", "1", "2"),
    ],
)
def test_rounding_goes_up_to_the_next_step_only(value, step, rounded):
    assert round_up(Decimal(value), Decimal(step)) == Decimal(rounded)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            "node_definition: iosv, cpus: 1, boot_disk_size: 1",
            "R1: the topology does not set RAM. LCM assumes 768 MB, the default of iosv.",
        ),
        (
            "node_definition: iosv, ram: 512, boot_disk_size: 1",
            "R1: the topology does not set CPUs. LCM assumes 1 CPU, the default of iosv.",
        ),
        (
            "node_definition: nxosv9000",
            "R1: the topology does not set CPUs, RAM and disk. "
            "LCM assumes 2 CPUs, 10240 MB and 16 GB, the default of nxosv9000.",
        ),
        (
            "node_definition: cat-sdwan-manager, cpus: 8, ram: 16384, boot_disk_size: 32",
            "R1: the topology does not set a data volume. "
            "LCM assumes 256 GB of data, the default of cat-sdwan-manager.",
        ),
        (
            "node_definition: vendor-x, cpus: 1, boot_disk_size: 1",
            "R1: the topology does not set RAM. LCM assumes 2048 MB, which is a guess.",
        ),
    ],
)
def test_assumptions_are_reported(fields, sentence):
    assert topology(f"label: R1, {fields}").assumptions == (sentence,)


def test_nothing_is_assumed_if_all_sizes_are_set():
    found = topology("label: R1, node_definition: vendor-x, cpus: 1, ram: 512, boot_disk_size: 4")
    assert (found.assumptions, found.warnings) == ((), ())


def test_an_unknown_definition_has_one_warning():
    found = topology(*[f"label: F{i}, node_definition: vendor-x" for i in range(5)])
    (warning,) = found.warnings
    assert "vendor-x is an unknown node definition" in warning
    assert "F0, F1, F2 and 2 more" in warning
    assert len(found.assumptions) == 5


@pytest.mark.parametrize(("limit", "warned"), [(1, True), (19, True), (20, False), (100, False)])
def test_a_cpu_limit_below_the_minimum_of_cml_has_a_warning(limit, warned):
    found = topology(f"label: R1, node_definition: iosv, cpu_limit: {limit}")
    assert any("R1: a cpu_limit of" in warning for warning in found.warnings) is warned


@pytest.mark.parametrize(
    ("definition", "family"),
    [
        ("cat9000v-q200", "cat9000v"),
        ("cat9000v-uadp", "cat9000v"),
        ("nxosv9500-148", "nxosv9000"),
        ("iol-xe-serial-4eth", "iol-xe"),
        ("IOSv", "iosv"),
    ],
)
def test_a_variant_has_the_size_of_its_family(definition, family):
    assert default_node_size(definition) == NODE_SIZES[family]


def test_every_family_has_a_size():
    assert all(default_node_size(f"{family}variant") for family in FAMILIES)


def test_an_unknown_definition_has_no_default_size():
    assert default_node_size("vendor-x") is None
