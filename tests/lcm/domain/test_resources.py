"""The table of resources, and amounts of all resources."""

from dataclasses import fields
from decimal import Decimal
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.domain.resources import (
    RESOURCE,
    RESOURCE_NAMES,
    RESOURCES,
    Amounts,
    hundredths,
)
from scheduling.placement.framework.amounts import CPU, GPU, MEMORY, STORAGE

amount = st.decimals(0, 9999, places=2)
amounts = st.builds(Amounts.read, st.fixed_dictionaries(dict.fromkeys(RESOURCE_NAMES, amount)))


def test_amounts_have_one_field_for_each_resource():
    assert tuple(field.name for field in fields(Amounts)) == RESOURCE_NAMES
    assert [RESOURCE_NAMES[which] for which in (CPU, MEMORY, STORAGE, GPU)] == [
        "cpu_cores", "memory_gb", "storage_gb", "gpu",
    ]  # fmt: skip


@given(amounts, amounts)
def test_sums_add_each_resource(left, right):
    assert (left + right).as_dict() == {name: left[name] + right[name] for name in RESOURCE_NAMES}
    assert left + right == right + left
    assert left + Amounts() == left


@given(amounts, amounts)
def test_resources_are_lacking_exactly_where_more_is_requested_than_available(requested, available):
    lacking = requested.lacking_in(available)
    assert [resource.name for resource in lacking] == [
        name for name in RESOURCE_NAMES if requested[name] > available[name]
    ]
    assert not requested.lacking_in(requested + available)


@given(amounts)
def test_amounts_survive_the_units_of_the_scheduler_and_being_read(given_amounts):
    assert Amounts.from_hundredths(given_amounts.to_hundredths()) == given_amounts
    assert Amounts.of(SimpleNamespace(**given_amounts.as_dict())) == given_amounts
    assert bool(given_amounts) == any(given_amounts.as_dict().values())


@given(amounts)
def test_rounding_up_gives_the_next_multiple_of_each_step(given_amounts):
    for resource, rounded in given_amounts.rounded_up():
        assert rounded % resource.step == 0
        assert 0 <= rounded - given_amounts[resource.name] < resource.step


@given(st.lists(amounts, min_size=1, max_size=4))
def test_the_most_of_several_amounts_is_the_least_that_covers_them(many):
    most = Amounts.most(many)
    assert not any(each.lacking_in(most) for each in many)
    assert all(any(each[name] == most[name] for each in many) for name in RESOURCE_NAMES)


def test_missing_amounts_are_zero():
    assert Amounts.read({"cpu_cores": Decimal(2), "gpu": None}) == Amounts(cpu_cores=Decimal(2))


@pytest.mark.parametrize(("value", "units"), [(Decimal("2.5"), 250), (0.1, 10), ("0.001", 1), (3, 300)])
def test_hundredths_are_rounded_up(value, units):
    assert hundredths(value) == units


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("cpu_cores", ["4 cores", "CPU, cores", "CPU (cores)", "CPU cores", "core-hours", "CPU"]),
        ("memory_gb", ["4 GB", "Memory, GB", "Memory (GB)", "Memory GB", "GB-hours", "memory"]),
        ("storage_gb", ["4 GB", "Storage, GB", "Storage (GB)", "Storage GB", "GB-hours", "storage"]),
        ("gpu", ["4 GPUs", "GPUs", "GPUs", "GPUs", "GPU-hours", "GPUs"]),
    ],
)
def test_every_text_of_a_resource_comes_from_its_label_and_unit(name, texts):
    resource = RESOURCE[name]
    assert [
        str(resource.amount("4", 4)),
        str(resource.label_with_unit),
        str(resource.label_with_brackets),
        str(resource.column_name),
        str(resource.hours),
        str(resource.plural),
    ] == texts


def test_one_of_a_unit_is_singular():
    assert [str(each.amount("1", 1)) for each in RESOURCES[:4]] == ["1 core", "1 GB", "1 GB", "1 GPU"]
