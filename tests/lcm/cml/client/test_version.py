"""CML versions compare as numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.cml.client.version import Version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.9.1+build.7", (2, 9, 1)),
        ("2.10.0+build.3", (2, 10, 0)),
        ("2.10", (2, 10, 0)),
        ("2.11.0-dev0+build.1.abc", (2, 11, 0)),
        ("v3.0.12", (3, 0, 12)),
        ("10", None),
        ("latest", None),
        ("", None),
        (None, None),
        (2.9, None),
        (["2.9"], None),
    ],
)
def test_a_version_is_parsed(text, version):
    assert Version.read(text) == version


@given(st.tuples(*[st.integers(0, 999)] * 3), st.tuples(*[st.integers(0, 999)] * 3))
def test_versions_are_ordered_as_numbers(one, other):
    texts = [".".join(map(str, numbers)) for numbers in (one, other)]
    assert (Version.read(texts[0]) < Version.read(texts[1])) == (one < other)


@given(st.text())
def test_any_text_is_a_version_or_none(text):
    version = Version.read(text)
    assert version is None or str(version).count(".") == 2
