"""Time zone of a page: chosen by the person, else the installation's with its name."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from lcm.web.wording import clock_text
from lcm.web.zones import use_zone_of

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("chosen", "installation", "text"),
    [
        ("Asia/Tokyo", "UTC", "21:00"),
        ("UTC", "UTC", "12:00"),
        ("", "Asia/Tokyo", "21:00 JST"),
        ("", "UTC", "12:00 UTC"),
        ("Mars/Base", "Asia/Tokyo", "21:00 JST"),
    ],
)
def test_a_time_names_its_zone_unless_the_person_chose_it(chosen, installation, text, settings, time_machine):
    settings.TIME_ZONE = installation
    time_machine.move_to(NOON)
    with use_zone_of(SimpleNamespace(time_zone=chosen)):
        assert clock_text(NOON) == text
    assert clock_text(NOON).endswith(" UTC" if installation == "UTC" else " JST")
