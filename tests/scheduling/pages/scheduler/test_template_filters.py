"""Format of scores and reasons."""

from __future__ import annotations

import pytest

from scheduling.placement.framework.explanation import ReasonCount
from scheduling.templatetags.scheduling import reason_title, score


@pytest.mark.parametrize(
    ("value", "html"),
    [
        (0, '<span class="muted">0.00</span>'),
        (0.7, "<b>0.70</b>"),
        (100, "<b>100.00</b>"),
        (500, '<b title="Score in the band resource type, which is compared first">0.50</b>'),
        (2_000_000, '<b title="Score in the band availability, which is compared first">2.00</b>'),
        (1_000_000_000, '<b title="Score in the band spot, which is compared first">1.00</b>'),
        (-1_000_000_000, '<b title="Score in the band spot, which is compared first">-1.00</b>'),
        (100_000_000_000_000, '<b title="Score in the band topology, which is compared first">100.00</b>'),
    ],
)
def test_a_score_is_written_with_two_decimals_and_its_band_on_hover(value, html):
    assert score(value) == html


@pytest.mark.parametrize(
    ("reason", "title"),
    [
        (ReasonCount("memory_gb", "resources", 3, "lack memory"), "Not enough memory"),
        ({"code": "cordon", "plugin": "cordon"}, "Cordoned"),
        (ReasonCount("licences", "licence_server", 1, "is refused"), "Licence server"),
    ],
)
def test_a_reason_has_a_title_in_words(reason, title):
    assert reason_title(reason) == title
