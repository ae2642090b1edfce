"""Merged observations: sums of known values, and everything that is missing."""

from datetime import UTC, datetime
from decimal import Decimal

from lcm.cml.observation.merge import merge_observations
from lcm.cml.observation.model import MissingPart, NodeObservation, PoolUsage, ResourceObservation

AT = datetime(2026, 1, 1, tzinfo=UTC)
MISSING = MissingPart("nodes", "no response")


def lab(key, **fields):
    return ResourceObservation(observed_at=AT, observer="manual", lab_id=key, cml_version="2.10.0", **fields)


def test_a_single_observation_is_unchanged():
    alone = lab("a", total_memory_mb=5)
    assert merge_observations([alone]) is alone


def test_values_are_summed_or_combined():
    first = lab(
        "a",
        total_cpu_cores=Decimal("1.50"),
        actual_node_count=1,
        nodes=(NodeObservation("n1", "r1", "iosv"),),
        node_definitions_used=("iosv",),
        observed_ports={"r1_serial": 2001},
        simulation_stats={"nodes": {"n1": {}}, "links": {}},
        resource_pool_usage=(PoolUsage("p1", "pool", licenses_used=2),),
    )
    second = lab(
        "b",
        total_cpu_cores=Decimal("2.00"),
        actual_node_count=2,
        nodes=(NodeObservation("n2", "r2", "iosv"), NodeObservation("n3", "host", "alpine")),
        node_definitions_used=("alpine", "iosv"),
        observed_ports={"host_pat": 2002},
        simulation_stats={"nodes": {"n2": {}, "n3": {}}, "links": {"l": {}}},
    )
    merged = merge_observations([first, second])
    assert (merged.total_cpu_cores, merged.actual_node_count) == (Decimal("3.50"), 3)
    assert [node.label for node in merged.nodes] == ["r1", "r2", "host"]
    assert merged.node_definitions_used == ("alpine", "iosv")
    assert merged.observed_ports == {"r1_serial": 2001, "host_pat": 2002}
    assert merged.simulation_stats == {"nodes": {"n1": {}, "n2": {}, "n3": {}}, "links": {"l": {}}}
    assert merged.resource_pool_usage == first.resource_pool_usage
    assert (merged.lab_id, merged.is_complete) == ("a b", True)
    assert ResourceObservation.from_dict(merged.to_dict()) == merged


def test_a_value_unknown_in_one_part_is_incomplete():
    without_memory = lab("b", incomplete=("total_memory_mb",), errors=(MISSING,))
    merged = merge_observations([lab("a", total_memory_mb=512), without_memory])
    assert (merged.total_memory_mb, merged.used_memory_mb) == (512, None)
    assert (merged.incomplete, merged.errors) == (("total_memory_mb",), (MISSING,))


def test_a_value_that_only_some_parts_have_is_incomplete():
    """An older CML does not report used memory. Unknown is not 0."""
    newer = lab("a", total_memory_mb=512, used_memory_mb=100, observed_ports={"r1_serial": 2001})
    merged = merge_observations([newer, lab("b", total_memory_mb=256)])
    assert (merged.total_memory_mb, merged.incomplete) == (768, ("used_memory_mb", "observed_ports"))
