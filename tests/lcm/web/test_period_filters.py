"""Presets and custom periods of date filters."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from lcm.models import User
from lcm.web.period_filters import PERIODS, period_of

NOW = datetime(2026, 3, 29, 22, 30, tzinfo=ZoneInfo("UTC"))


@pytest.mark.parametrize(
    ("zone", "name", "start", "end"),
    [
        ("UTC", "1h", "2026-03-29T21:30", None),
        ("UTC", "24h", "2026-03-28T22:30", None),
        ("UTC", "7d", "2026-03-22T22:30", None),
        ("UTC", "30d", "2026-02-27T22:30", None),
        ("UTC", "today", "2026-03-29T00:00", None),
        ("UTC", "yesterday", "2026-03-28T00:00", "2026-03-29T00:00"),
        # In Vienna it is past midnight, and the day before had 23 hours.
        ("Europe/Vienna", "today", "2026-03-29T22:00", None),
        ("Europe/Vienna", "yesterday", "2026-03-28T23:00", "2026-03-29T22:00"),
    ],
)
def test_a_period_begins_and_ends_in_the_time_zone(zone, name, start, end):
    with timezone.override(zone):
        found = period_of(name, NOW)
    assert [at and f"{at.astimezone(ZoneInfo('UTC')):%Y-%m-%dT%H:%M}" for at in found] == [start, end]


def test_every_preset_has_a_period():
    assert all(period_of(name, NOW)[0] < NOW for name in PERIODS)


@pytest.mark.parametrize(
    ("zone", "query"),
    [
        ("America/New_York", "starts_after=0001-01-01T00:00Z"),
        ("Asia/Tokyo", "starts_after=9999-12-31T23:59Z"),
    ],
)
def test_a_time_that_the_zone_of_the_person_cannot_show_is_rejected(zone, query, client, viewer):
    User.objects.filter(pk=viewer.pk).update(time_zone=zone)
    client.force_login(viewer)
    page = client.get(f"/sessions/?{query}")
    assert "This time is out of range." in page.content.decode()
