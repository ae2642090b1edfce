"""JSON readers return the right type or None, and never guess."""

import math
from decimal import Decimal
from typing import Annotated

import pytest
from hypothesis import given

from lcm.cml import json_values
from lcm.cml.json_values import NotJson, parse_json
from tests.lcm.cml.client.test_fuzz import anything

ANY_NUMBER = Annotated[float | None, json_values.number(float)]
DECIMAL = Annotated[Decimal | None, json_values.decimal()]


def read_as(kind, value):
    return json_values.adapter(kind).validate_python(value)


@pytest.mark.parametrize(
    ("value", "integer", "number"),
    [
        (0, 0, 0.0),
        (7, 7, 7.0),
        (7.0, 7, 7.0),
        (7.5, None, 7.5),
        (-1, None, None),
        (True, None, None),
        (False, None, None),
        ("7", None, None),
        (None, None, None),
        ([], None, None),
        (2**53, 2**53, None),
        (2**53 + 1, None, None),
        (10**400, None, None),
        (1e300, None, None),
        (float("nan"), None, None),
        (float("inf"), None, None),
    ],
)
def test_numbers_are_read_within_limits(value, integer, number):
    assert read_as(json_values.Integer, value) == integer
    assert read_as(ANY_NUMBER, value) == number


def test_a_decimal_keeps_its_written_form():
    assert read_as(DECIMAL, 0.1) == Decimal("0.1")
    assert read_as(DECIMAL, "0.1") is None


@given(anything)
def test_every_reader_accepts_any_value(value):
    text = json_values.as_text(value)
    assert text is None or (isinstance(text, str) and text.encode() is not None)
    number = read_as(ANY_NUMBER, value)
    assert number is None or math.isfinite(number)
    assert isinstance(json_values.as_mapping(value), dict)
    assert isinstance(json_values.as_list(value), list)
    assert all(isinstance(each, str) for each in json_values.as_texts(value))
    assert read_as(json_values.Flag, value) in (None, True, False)
    figures = json_values.plain_numbers(json_values.as_mapping(value))
    assert all(math.isfinite(each) for each in figures.values())


def test_unstorable_characters_are_replaced_and_long_text_is_truncated():
    assert json_values.as_text("a\x00b\ud800") == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"
    assert len(json_values.as_text("x" * 5000)) == json_values.MAX_TEXT


def test_the_number_of_plain_numbers_is_limited():
    assert len(json_values.plain_numbers({str(n): n for n in range(500)}, most=64)) == 64
    assert json_values.plain_numbers({"a": -1.5, "b": True, "c": "1", "d": None}) == {"a": -1.5}


@pytest.mark.parametrize(
    "text", [b"", b"{", b"nan", b"NaN", b"[Infinity]", b"-Infinity", b"\xff", b"[" * 200_000]
)
def test_invalid_json_has_a_short_message(text):
    with pytest.raises(NotJson) as caught:
        parse_json(text)
    assert len(str(caught.value)) <= 200


@pytest.mark.parametrize(("text", "value"), [(b'"a"', "a"), (b"true", True), (b" [1, null] ", [1, None])])
def test_bare_values_are_json(text, value):
    assert parse_json(text) == value
