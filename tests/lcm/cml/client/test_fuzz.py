"""Anything in place of each answer of CML: no crash, no hang, and what is missing is said."""

import copy
import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.cml.observation.model import OBSERVATION
from tests.support.cml_lab_responses import ANSWERS, PARTS, answers, observed

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
        for key in json.dumps(ANSWERS[part]).replace('"', " ").split()
        if key.isidentifier()
    }
)
looks_real = st.dictionaries(st.one_of(st.sampled_from(KEYS), st.text(max_size=5)), anything, max_size=10)
LISTS = ("nodes", "interfaces", "resource_pool_usage")


def shaped(part):
    """JSON of the outer shape that this answer has."""
    if part in LISTS:
        return st.lists(st.one_of(looks_real, anything), max_size=6)
    return st.one_of(
        looks_real, st.dictionaries(st.text(max_size=4), st.one_of(looks_real, anything), max_size=5)
    )


def check(seen):
    """What holds of any observation."""
    stored = json.loads(json.dumps(seen.to_dict(), allow_nan=False))
    problems = {}
    read = OBSERVATION.read(stored, "", problems)
    # Only figures that are too large for LCM are refused.
    assert all(" to 1" in problem for problem in problems.values())
    assert problems or read == seen
    assert bool(seen.incomplete) <= bool(seen.errors)
    for total in (seen.total_cpu_cores, seen.total_memory_mb, seen.total_storage_mb, seen.used_memory_mb):
        assert total is None or total >= 0
    assert seen.actual_node_count is None or seen.actual_node_count >= len(seen.nodes)
    return seen


@pytest.mark.parametrize("part", [*PARTS, "authenticate"])
@PER_PART
@given(data=st.data())
def test_any_json_in_place_of_an_answer(part, data):
    value = data.draw(anything)
    seen = check(observed(answers(**{part: value})))
    expected = list if part in LISTS else dict
    if part in PARTS[1:] and not isinstance(value, expected):
        assert part in {error.part for error in seen.errors}


@pytest.mark.parametrize("part", PARTS)
@PER_PART
@given(data=st.data())
def test_json_of_the_right_outer_shape(part, data):
    value = data.draw(shaped(part))
    seen = check(observed(answers(**{part: value})))
    if part == "nodes":
        assert seen.actual_node_count == len(value)


@pytest.mark.parametrize("part", PARTS[1:])
@PER_PART
@given(data=st.data())
def test_an_answer_cut_off_anywhere(part, data):
    body = json.dumps(ANSWERS[part]).encode()
    seen = check(observed(answers(**{part: body[: data.draw(st.integers(0, len(body) - 1))]})))
    assert part in {error.part for error in seen.errors}
    assert seen.incomplete


@pytest.mark.parametrize("part", PARTS[1:])
@PER_PART
@given(body=st.binary(max_size=200))
def test_bytes_that_mean_nothing(part, body):
    check(observed(answers(**{part: body})))


def places(value, path=()):
    """All places in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("part", PARTS)
@PER_PART
@given(data=st.data())
def test_one_value_spoiled_in_an_answer_that_is_right(part, data):
    spoiled = copy.deepcopy(ANSWERS[part])
    *outer, last = data.draw(st.sampled_from(list(places(spoiled))))
    holder = spoiled
    for key in outer:
        holder = holder[key]
    if data.draw(st.booleans()) and isinstance(holder, dict):
        del holder[last]
    else:
        holder[last] = data.draw(anything)
    seen = check(observed(answers(**{part: spoiled})))
    if part == "nodes" and isinstance(spoiled, list):
        assert seen.actual_node_count == len(spoiled)


HUGE = {
    "spaces": b" " * 10_000_000,
    "one text": json.dumps("x" * 10_000_000).encode(),
    "nested": b"[" * 5_000_000 + b"]" * 5_000_000,
    "digits": b"9" * 10_000_000,
    "entries": json.dumps([{"id": "n", "configuration": "x" * 1000}] * 9_000).encode(),
    "keys": json.dumps({f"k{n}": {"nodes": n} for n in range(300_000)}).encode(),
    "floats": b"[" + b"1e308," * 1_500_000 + b"1]",
    "beyond the limit": b"x" * 17_000_000,
}


@pytest.mark.parametrize("body", HUGE.values(), ids=HUGE.keys())
@pytest.mark.parametrize("part", ["nodes", "simulation_stats"])
def test_ten_megabytes_are_read_or_refused_in_time(part, body):
    before = time.process_time()
    seen = check(observed(answers(**{part: body}), deadline=20))
    assert time.process_time() - before < 15
    assert seen.errors or (part, body) in [("nodes", HUGE["entries"]), ("simulation_stats", HUGE["keys"])]
    assert len(json.dumps(seen.to_dict())) < 20_000_000
