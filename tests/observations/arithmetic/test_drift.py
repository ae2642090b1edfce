"""Comparison of allocated and observed ports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations.arithmetic.drift import DriftItem, compare_ports, kinds_text, leaked_ports

OTHER = "3f9c2a"


@pytest.mark.parametrize(
    ("allocated", "observed", "others", "items"),
    [
        ({}, {}, {}, []),
        ({"a": 1}, {"a": 1}, {}, []),
        ({"a": 1}, {}, {}, [("missing", "a", 1, None)]),
        ({}, {"a": 1}, {}, [("extra", "a", None, 1)]),
        ({"a": 1}, {"a": 2}, {}, [("changed", "a", 1, 2)]),
        ({"a": 1}, {"b": 1}, {}, [("extra", "b", None, 1), ("missing", "a", 1, None)]),
        ({"a": 1}, {"a": 2}, {2: OTHER}, [("conflict", "a", 1, 2)]),
        ({}, {"a": 2}, {2: OTHER}, [("conflict", "a", None, 2)]),
        ({"a": 2}, {"a": 2}, {2: OTHER}, [("conflict", "a", 2, 2)]),
        ({"a": 2}, {}, {2: OTHER}, [("missing", "a", 2, None)]),
        ({"a": 1, "b": 2}, {"a": 2, "b": 1}, {}, [("changed", "a", 1, 2), ("changed", "b", 2, 1)]),
    ],
)
def test_drift_has_one_item_per_difference(allocated, observed, others, items):
    found = compare_ports(allocated, observed, others)
    assert [(item.kind, item.name, item.allocated, item.observed) for item in found] == items
    assert all(item.other == (OTHER if item.kind == "conflict" else "") for item in found)


def test_deviations_are_sorted_worst_first_and_counted_by_kind():
    items = compare_ports({"m": 1, "c": 2, "x": 3}, {"c": 9, "e": 4, "x": 8}, {8: OTHER})
    assert [item.kind for item in items] == ["conflict", "extra", "changed", "missing"]
    assert kinds_text(items) == "1 conflict, 1 extra, 1 changed, 1 missing"


def test_every_unplanned_port_in_use_is_leaked():
    items = compare_ports({"c": 2, "m": 3}, {"c": 9, "e": 4, "x": 8}, {8: OTHER})
    assert leaked_ports(items) == {4: "e", 8: "x", 9: "c"}


def test_the_fingerprint_depends_on_name_and_kind_only():
    assert DriftItem("extra", "a", None, 1).fingerprint == DriftItem("extra", "a", None, 2).fingerprint
    assert DriftItem("extra", "a").fingerprint != DriftItem("changed", "a").fingerprint
    assert DriftItem("extra", "a").fingerprint != DriftItem("extra", "b").fingerprint


ports = st.dictionaries(st.text("abcde", min_size=1, max_size=2), st.integers(1, 20), max_size=12)
MIRROR = {"missing": "extra", "extra": "missing", "changed": "changed"}


@given(ports, ports)
def test_swapping_allocated_and_observed_ports_mirrors_the_drift(one, other):
    mirrored = {
        (MIRROR[item.kind], item.name, item.observed, item.allocated) for item in compare_ports(one, other)
    }
    reverse = {(item.kind, item.name, item.allocated, item.observed) for item in compare_ports(other, one)}
    assert mirrored == reverse


@given(ports, ports, st.dictionaries(st.integers(1, 20), st.just(OTHER)))
def test_every_differing_name_is_listed_once(one, other, others):
    items = compare_ports(one, other, others)
    names = [item.name for item in items]
    assert len(names) == len(set(names))
    assert {name for name in {*one, *other} if one.get(name) != other.get(name)} <= set(names)
    assert [DriftItem.from_json(item.to_json()) for item in items] == items
