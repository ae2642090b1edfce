"""Unquoted values are read as by a YAML 1.1 parser."""

import pytest

from lcm.cml.topology.yaml_scalars import UnsupportedScalar, display_value, is_storable, read_plain


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("Yes", True),
        ("on", True),
        ("no", False),
        ("off", False),
        ("5041", 5041),
        ("-7", -7),
        ("0", 0),
        ("1.5", 1.5),
        ("1.5e+3", 1500.0),
        ("R1", "R1"),
        ("0.1.0", "0.1.0"),
        ("serial:5041", "serial:5041"),
        ("007", UnsupportedScalar("007")),
        ("0x1F", UnsupportedScalar("0x1F")),
        ("1_000", UnsupportedScalar("1_000")),
        ("22:22", UnsupportedScalar("22:22")),
        ("2024-01-01", UnsupportedScalar("2024-01-01")),
        (".nan", UnsupportedScalar(".nan")),
        ("-.inf", UnsupportedScalar("-.inf")),
        ("1.0e+999", UnsupportedScalar("1.0e+999")),
        ("9" * 19, UnsupportedScalar("9" * 19)),
        ("=", UnsupportedScalar("=")),
        ("1." + "1" * 100, "1." + "1" * 100),
    ],
)
def test_an_unquoted_value_is_read_by_its_form(written, value):
    found = read_plain(written)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("two", '"two"'),
        (2, "2"),
        (True, "true"),
        (None, "null"),
        (UnsupportedScalar("0x1F"), "0x1F"),
        ([1], "a list"),
        ({}, "a mapping"),
        ("x" * 99, f'"{"x" * 40}…"'),
    ],
)
def test_a_value_in_a_message_is_short(value, text):
    assert display_value(value) == text


@pytest.mark.parametrize(("text", "fits"), [("é😀\n", True), ("a\x00", False), ("\ud800", False)])
def test_text_that_a_database_cannot_store(text, fits):
    assert is_storable(text) is fits
