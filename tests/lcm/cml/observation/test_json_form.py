"""JSON form of an observation: round trip, and rejection with the path of the problem."""

import copy
import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.observation.model import (
    InterfaceObservation,
    MissingPart,
    NodeObservation,
    ObservationMalformed,
    PoolUsage,
    ResourceObservation,
)
from tests.support.cml_lab_responses import lab_responses, observation_from

texts = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=20)
integers = st.integers(0, 10**5)
decimals = st.decimals(0, 10**5, places=3, allow_nan=False, allow_infinity=False)
ports = st.dictionaries(texts.filter(bool), st.integers(1, 65_535), max_size=3)


def optional(strategy):
    return st.none() | strategy


KINDS = {
    "Text": texts,
    "Whole": integers,
    "Cpus": integers,
    "Megabytes": integers,
    "Cores": decimals,
    "Percent": decimals,
    "Flag": st.booleans(),
    "Texts": st.lists(texts, max_size=3).map(tuple),
    "Ports": ports,
    "dict[str, object]": st.dictionaries(texts, integers, max_size=3),
}
STRATEGIES = {
    **KINDS,
    **{f"{kind} | None": optional(strategy) for kind, strategy in KINDS.items()},
    **{f"Annotated[{kind}, NullIsDefault()]": strategy for kind, strategy in KINDS.items()},
    "Moment": st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5))])),
}


def record_strategy(record):
    """Return a strategy for a record by the types of its fields."""
    known = {each.name: STRATEGIES[each.type] for each in fields(record) if each.name != "observer"}
    if record is ResourceObservation:
        known["observer"] = st.sampled_from(["lablet-controller", "manual"])
    return st.builds(record, **known)


STRATEGIES["ListOf[InterfaceObservation] | None"] = optional(
    st.lists(record_strategy(InterfaceObservation), max_size=2).map(tuple)
)
STRATEGIES["Annotated[ListOf[NodeObservation], NullIsDefault()]"] = st.lists(
    record_strategy(NodeObservation), max_size=2
).map(tuple)
STRATEGIES["ListOf[PoolUsage] | None"] = optional(st.lists(record_strategy(PoolUsage), max_size=2).map(tuple))
STRATEGIES["Annotated[ListOf[MissingPart], NullIsDefault()]"] = st.lists(
    record_strategy(MissingPart), max_size=2
).map(tuple)


@given(record_strategy(ResourceObservation))
def test_the_json_form_round_trips(observation):
    stored = json.loads(json.dumps(observation.to_dict(), allow_nan=False))
    assert ResourceObservation.from_dict(stored) == observation


def test_decimals_are_text_times_iso_8601_and_tuples_lists():
    form = observation_from(lab_responses()).to_dict()
    assert form["total_cpu_cores"] == "2.00"
    assert form["observed_at"] == "2026-03-01T12:00:00+00:00"
    assert form["nodes"][0]["interfaces"][0]["ip4"] == ["10.0.0.1"]
    assert form["errors"] == form["incomplete"] == []


MINIMUM = {"observed_at": "2026-03-01T12:00:00Z", "observer": "manual"}


def test_only_the_time_and_the_observer_are_required():
    observation = ResourceObservation.from_dict(MINIMUM)
    assert observation == ResourceObservation(datetime(2026, 3, 1, 12, tzinfo=UTC), "manual")
    assert (observation.total_cpu_cores, observation.nodes, observation.observed_ports) == (None, (), None)


@pytest.mark.parametrize(
    ("place", "value", "path"),
    [
        (("observed_at",), "2026-03-01T12:00:00", "observed_at"),
        (("observed_at",), None, "observed_at"),
        (("observed_at",), 7, "observed_at"),
        (("observer",), None, "observer"),
        (("lab_id",), 7, "lab_id"),
        (("lab_id",), "x" * 1001, "lab_id"),
        (("observer",), "eu-1", "observer"),
        (("controller",), "a\x00", "controller"),
        (("total_cpu_cores",), "NaN", "total_cpu_cores"),
        (("total_cpu_cores",), "-1", "total_cpu_cores"),
        (("total_cpu_cores",), "1e999", "total_cpu_cores"),
        (("total_cpu_cores",), True, "total_cpu_cores"),
        (("total_cpu_cores",), "1" * 50, "total_cpu_cores"),
        (("total_memory_mb",), "12", "total_memory_mb"),
        (("total_memory_mb",), -1, "total_memory_mb"),
        (("total_memory_mb",), 2**60, "total_memory_mb"),
        (("nodes",), {}, "nodes"),
        (("nodes", 0), 7, "nodes.0"),
        (("nodes", 1, "label"), None, "nodes.1.label"),
        (("nodes", 0, "ram_mb"), 1.5, "nodes.0.ram_mb"),
        (("nodes", 0, "ports"), {"a": "1"}, "nodes.0.ports.a"),
        (("nodes", 0, "tags"), [1], "nodes.0.tags"),
        (("nodes", 0, "interfaces", 0, "ip4"), "10.0.0.1", "nodes.0.interfaces.0.ip4"),
        (("nodes", 0, "interfaces", 0, "is_connected"), 1, "nodes.0.interfaces.0.is_connected"),
        (("colour",), "red", "colour"),
        (("nodes", 0, "id"), "n1", "nodes.0.id"),
        (("nodes", 0, "interfaces", 0, "speed"), None, "nodes.0.interfaces.0.speed"),
        (("resource_pool_usage", 0, "pool_id"), None, "resource_pool_usage.0.pool_id"),
        (("observed_ports",), [], "observed_ports"),
        (("simulation_stats",), [], "simulation_stats"),
        (("incomplete",), "nodes", "incomplete"),
        (("errors",), [{"part": "x"}], "errors.0.message"),
        (("nodes",), [{}] * 10_001, "nodes"),
    ],
)
def test_an_invalid_value_is_rejected_with_its_path(place, value, path):
    form = copy.deepcopy(observation_from(lab_responses()).to_dict())
    *outer, last = place
    holder = form
    for key in outer:
        holder = holder[key]
    holder[last] = value
    with pytest.raises(ObservationMalformed) as caught:
        ResourceObservation.from_dict(form)
    assert list(caught.value.problems) == [path]


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_a_value_that_is_not_an_object_is_rejected(value):
    with pytest.raises(ObservationMalformed, match="must be an object"):
        ResourceObservation.from_dict(value)


@pytest.mark.parametrize("written", ["1.5", 1.5, "1.50"])
def test_decimals_are_accepted_as_text_or_number(written):
    assert ResourceObservation.from_dict({**MINIMUM, "total_cpu_cores": written}).total_cpu_cores == Decimal(
        "1.5"
    )
