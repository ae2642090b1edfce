"""The time range of a chart page: presets, two times, and what is wrong with an address."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import RequestFactory
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from lcm.web.time_range import KeptData, kept_days, range_of, read_range

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
TEN = "2026-03-10T10:00"
DAY = timedelta(days=1)
TICKS = KeptData(NOW - 2 * DAY, NOW, "LCM keeps ticks for 2 days.")
USAGE = kept_days(730, "LCM keeps usage for 730 days.", now=NOW)
LAB = KeptData(NOW - timedelta(minutes=20), NOW, "The session has figures since 11:40.", whole="Session")


def custom(start, end, **others):
    return {"range": "custom", "from": start, "to": end, **others}


@pytest.mark.parametrize(
    ("kept", "presets"),
    [
        (TICKS, ["1h", "6h", "24h"]),
        (USAGE, ["7d", "30d"]),
        (LAB, ["all"]),
        (KeptData(NOW - 40 * DAY, NOW, "", whole="Session"), ["1h", "6h", "24h", "7d", "30d", "all"]),
    ],
)
def test_only_ranges_with_data_are_offered(kept, presets):
    assert kept.presets == presets
    assert len(read_range({}, kept).choices) == len(presets)


@pytest.mark.parametrize(
    ("query", "kept", "key", "start", "end"),
    [
        ({}, TICKS, "1h", NOW - timedelta(hours=1), NOW),
        ({"range": "6h"}, TICKS, "6h", NOW - timedelta(hours=6), NOW),
        ({}, LAB, "all", LAB.oldest, NOW),
        ({"range": "7d"}, USAGE, "7d", datetime(2026, 3, 4, tzinfo=UTC), datetime(2026, 3, 11, tzinfo=UTC)),
        (
            custom("2026-03-10T09:00", "2026-03-10T10:30"), TICKS, "custom",
            NOW - timedelta(hours=3), NOW - timedelta(hours=1.5),
        ),
        (
            custom("2026-03-10T10:00", "2026-03-10T11:30", zone="Europe/Vienna"), TICKS, "custom",
            NOW - timedelta(hours=3), NOW - timedelta(hours=1.5),
        ),
        (
            custom("2026-03-10T09:00:00Z", "2026-03-10T10:30:00+00:00", zone="Asia/Tokyo"), TICKS, "custom",
            NOW - timedelta(hours=3), NOW - timedelta(hours=1.5),
        ),
        (
            custom(f"{TEN}:20Z", f"{TEN}:50Z"), TICKS, "custom",
            NOW - timedelta(hours=2), NOW - timedelta(minutes=119),
        ),
        (custom("2026-01-01T00:00", "2027-01-01T00:00"), TICKS, "custom", TICKS.oldest, NOW),
        (
            custom("2026-03-01", "2026-03-02"), USAGE, "custom",
            datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC),
        ),
    ],
)  # fmt: skip
def test_an_address_names_a_range(query, kept, key, start, end):
    found = read_range(query, kept, default="1h")
    assert (found.key, found.start, found.end, found.problem) == (key, start, end, "")


@pytest.mark.parametrize(
    ("query", "kept", "problem"),
    [
        ({"range": "2w"}, TICKS, "The range “2w” is unknown. Choose one of 1h, 6h, 24h, custom."),
        ({"range": "7d"}, TICKS, "The range 7 d cannot be shown. LCM keeps ticks for 2 days."),
        ({"range": "1h"}, USAGE, "The range 1 h cannot be shown. LCM keeps usage for 730 days."),
        (custom("", ""), TICKS, "“” is not a time. Enter it as 2026-03-02T12:00."),
        (custom("noon", "2026-03-10"), USAGE, "“noon” is not a day. Enter it as 2026-03-02."),
        (custom("2026-02-31", "2026-03-10"), USAGE, "“2026-02-31” is not a day. Enter it as 2026-03-02."),
        (custom("2026-03-10T25:00", "x"), TICKS, "“2026-03-10T25:00” is not a time. Enter"),
        (custom(TEN, "2026-03-10T09:00"), TICKS, "The range must start before it ends."),
        (custom("2026-03-10T13:00", "2026-03-10T14:00"), TICKS, "The range starts after the newest data"),
        (custom("2026-03-01T13:00", "2026-03-02T14:00"), TICKS, "There is no data for this range. LCM keeps"),
        (custom(TEN, "2026-03-10T11:00", zone="Mars"), TICKS, "“Mars” is not a time zone. "),
        (custom("0001-01-01T00:00+14:00", TEN), TICKS, "“0001-01-01T00:00+14:00” is too early or too late."),
        (custom("9999-12-31", "9999-12-31"), USAGE, "“9999-12-31” is too early or too late."),
    ],
)  # fmt: skip
def test_a_wrong_address_is_explained_and_the_default_is_used(query, kept, problem):
    found = read_range(query, kept, default="1h")
    assert found.problem.startswith(problem)
    usual = read_range({}, kept, default="1h")
    assert (found.key, found.start, found.end) == (usual.key, usual.start, usual.end)


@given(
    query=st.fixed_dictionaries(
        {},
        optional={
            "range": st.sampled_from(["custom", "1h", "30d", "all"]) | st.text(max_size=8),
            "from": st.datetimes().map(datetime.isoformat) | st.text(max_size=12),
            "to": st.datetimes().map(datetime.isoformat) | st.dates().map(str) | st.text(max_size=12),
            "zone": st.sampled_from(["UTC", "Europe/Vienna", "Pacific/Apia"]) | st.text(max_size=8),
        },
    ),
    kept=st.sampled_from([TICKS, USAGE, LAB]),
)
def test_every_address_gives_a_range_of_kept_data_in_few_steps(query, kept):
    found = read_range(query, kept)
    assert kept.oldest <= found.start < found.end
    assert kept.daily or found.end <= kept.newest
    assert (found.end - found.start) / found.step(60) <= 60


def test_a_custom_range_leads_to_itself_in_any_time_zone():
    found = read_range(custom("2026-03-10T09:00", "2026-03-10T10:30"), TICKS)
    with timezone.override("America/St_Johns"):
        assert found.from_value == "2026-03-10T06:30"
        query = RequestFactory().get(f"/?{found.query}").GET
    again = read_range(query, TICKS)
    assert (again.start, again.end) == (found.start, found.end)


@pytest.mark.parametrize("hour", [0, 1], ids=["first", "repeated"])
def test_a_custom_range_in_the_repeated_hour_of_a_clock_change_leads_to_itself(hour):
    start = datetime(2025, 10, 26, hour, 30, tzinfo=UTC)
    kept = KeptData(start - DAY, start + DAY, "")
    with timezone.override("Europe/Vienna"):
        found = read_range(custom(f"{start:%Y-%m-%dT%H:%M}", "2025-10-26T05:00", zone="UTC"), kept)
        assert found.zone == "UTC"
        again = read_range(RequestFactory().get(f"/?{found.query}").GET, kept)
        later = read_range(custom("2025-10-26T04:00", "2025-10-26T05:00"), kept)
    assert (again.start, again.end) == (found.start, found.end) == (start, start.replace(hour=5, minute=0))
    assert later.start == start.replace(hour=3, minute=0)


class Htmx:
    def __init__(self, url=None):
        self.current_url_abs_path = url


def request_for(path, around=None):
    request = RequestFactory().get(path)
    request.htmx = Htmx(around)
    return request


def test_links_keep_the_other_parameters_of_the_address():
    found = range_of(request_for("/usage/?pool=cml-eu&range=7d&from=2026-01-01"), USAGE)
    assert found.choices == [("pool=cml-eu&range=7d", "7 d", True), ("pool=cml-eu&range=30d", "30 d", False)]


def test_a_panel_reads_the_range_of_the_page_around_it():
    assert range_of(request_for("/sessions/1/live", "/sessions/1/?range=6h"), TICKS).key == "6h"
    assert range_of(request_for("/sessions/1/live?range=24h", "/sessions/1/?range=6h"), TICKS).key == "24h"
