"""Fuzzing of CML's responses: no crash, no hang, and missing data is reported."""

import copy
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.cml.observation.model import ObservationMalformed, ResourceObservation
from tests.support.cml_lab_responses import LAB_RESPONSES, PARTS, lab_responses, observation_from

pytestmark = pytest.mark.slow

PER_PART = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**60, max_value=10**400),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["serial:5041", "pat:udp:1:2", "vnc:x", "n1", "i1", "BOOTED", "\x00", "\ud800"]),
)
anything = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = sorted(
    {
        key
        for part in PARTS
        for key in json.dumps(LAB_RESPONSES[part]).replace('"', " ").split()
        if key.isidentifier()
    }
)
realistic = st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=5)), anything, max_size=10)
LISTS = ("nodes", "interfaces", "resource_pool_usage")


def json_of_outer_shape(part):
    """Return JSON of the outer shape of this response."""
    if part in LISTS:
        return st.lists(st.one_of(realistic, anything), max_size=6)
    return st.one_of(
        realistic, st.dictionaries(st.text(max_size=4), st.one_of(realistic, anything), max_size=5)
    )


def check_observation(observation):
    """Check what holds for any observation."""
    stored = json.loads(json.dumps(observation.to_dict(), allow_nan=False))
    read, problems = observation, {}
    try:
        read = ResourceObservation.from_dict(stored)
    except ObservationMalformed as error:
        problems = error.problems
    # Only values too large for LCM are rejected.
    assert all(" to 1" in problem for problem in problems.values())
    assert problems or read == observation
    assert bool(observation.incomplete) <= bool(observation.errors)
    for total in (
        observation.total_cpu_cores,
        observation.total_memory_mb,
        observation.total_storage_mb,
        observation.used_memory_mb,
    ):
        assert total is None or total >= 0
    assert observation.actual_node_count is None or observation.actual_node_count >= len(observation.nodes)
    return observation


@pytest.mark.parametrize("part", [*PARTS, "authenticate"])
@PER_PART
@given(data=st.data())
def test_any_json_as_a_response(part, data):
    value = data.draw(anything)
    observation = check_observation(observation_from(lab_responses(**{part: value})))
    expected = list if part in LISTS else dict
    if part in PARTS[1:] and not isinstance(value, expected):
        assert part in {error.part for error in observation.errors}


@pytest.mark.parametrize("part", PARTS)
@PER_PART
@given(data=st.data())
def test_any_json_of_the_right_outer_shape(part, data):
    value = data.draw(json_of_outer_shape(part))
    observation = check_observation(observation_from(lab_responses(**{part: value})))
    if part == "nodes":
        assert observation.actual_node_count == len(value)


@pytest.mark.parametrize("part", PARTS[1:])
@PER_PART
@given(data=st.data())
def test_a_response_truncated_anywhere_is_an_error(part, data):
    body = json.dumps(LAB_RESPONSES[part]).encode()
    observation = check_observation(
        observation_from(lab_responses(**{part: body[: data.draw(st.integers(0, len(body) - 1))]}))
    )
    assert part in {error.part for error in observation.errors}
    assert observation.incomplete


@pytest.mark.parametrize("part", PARTS[1:])
@PER_PART
@given(body=st.binary(max_size=200))
def test_random_bytes_as_a_response_are_an_error(part, body):
    check_observation(observation_from(lab_responses(**{part: body})))


def paths(value, path=()):
    """Yield the paths of all values in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


@pytest.mark.parametrize("part", PARTS)
@PER_PART
@given(data=st.data())
def test_one_corrupted_value_in_a_valid_response_is_read_or_rejected(part, data):
    corrupted = copy.deepcopy(LAB_RESPONSES[part])
    *outer, last = data.draw(st.sampled_from(list(paths(corrupted))))
    parent = corrupted
    for key in outer:
        parent = parent[key]
    if data.draw(st.booleans()) and isinstance(parent, dict):
        del parent[last]
    else:
        parent[last] = data.draw(anything)
    observation = check_observation(observation_from(lab_responses(**{part: corrupted})))
    if part == "nodes" and isinstance(corrupted, list):
        assert observation.actual_node_count == len(corrupted)


HUGE_BODIES = {
    "spaces": b" " * 10_000_000,
    "one text": json.dumps("x" * 10_000_000).encode(),
    "nested": b"[" * 5_000_000 + b"]" * 5_000_000,
    "digits": b"9" * 10_000_000,
    "entries": json.dumps([{"id": "n", "configuration": "x" * 1000}] * 9_000).encode(),
    "keys": json.dumps({f"k{n}": {"nodes": n} for n in range(300_000)}).encode(),
    "floats": b"[" + b"1e308," * 1_500_000 + b"1]",
    "beyond the limit": b"x" * 17_000_000,
}


@pytest.mark.parametrize("body", HUGE_BODIES.values(), ids=HUGE_BODIES.keys())
@pytest.mark.parametrize("part", ["nodes", "simulation_stats"])
def test_ten_megabytes_are_read_or_rejected_in_time(part, body):
    start = time.process_time()
    observation = check_observation(observation_from(lab_responses(**{part: body}), deadline=20))
    assert time.process_time() - start < 15
    assert observation.errors or (part, body) in [
        ("nodes", HUGE_BODIES["entries"]),
        ("simulation_stats", HUGE_BODIES["keys"]),
    ]
    assert len(json.dumps(observation.to_dict())) < 20_000_000
