"""How a plugin's score is written."""

from __future__ import annotations

import pytest

from scheduling.templatetags.scores import score


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.53, "0.53"),
        (100, "100"),
        (500, "0.5 in the band resource type"),
        (2_000_000, "2 in the band availability"),
        (1_000_000_000, "1 in the band spot"),
        (-1_000_000_000, "-1 in the band spot"),
        (100_000_000_000_000, "100 in the band topology"),
    ],
)
def test_a_score_is_written_with_its_band(value, words):
    assert score(value) == words
