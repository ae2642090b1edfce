"""Charts: positions of marks, texts of axes and tables."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from lcm.web.charts.bars import Share, share_bar
from lcm.web.charts.columns import ByDay, Series, stacked
from lcm.web.charts.dots import ChartDot, dot_chart
from lcm.web.charts.lines import Point, line_chart
from lcm.web.charts.scales import format_number, places_along, scale_over, times_along
from lcm.web.charts.sparklines import sparkline
from lcm.web.charts.topology import picture_of
from tests.support.chart_samples import sample_charts

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TEMPLATES = Path(__file__).parents[3] / "templates" / "charts"


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.booleans())
def test_every_value_is_placed_between_the_ends(values, from_zero):
    scale = scale_over(values, bottom=200, top=10, from_zero=from_zero)
    assert all(9.9 <= scale.place(value) <= 200.1 for value in values)
    assert scale.ticks[0] == scale.low <= min(values)
    assert scale.ticks[-1] == pytest.approx(scale.high)
    assert 2 <= len(scale.ticks) <= 14


def test_ticks_are_round_numbers():
    assert scale_over([0, 83], bottom=1, top=0, from_zero=True).ticks == [0, 20, 40, 60, 80, 100]
    assert scale_over([400, 420], bottom=1, top=0).ticks == [395, 400, 405, 410, 415, 420, 425]


def test_labels_within_a_day_are_times_and_others_are_dates():
    assert [text for _, _, text in times_along([NOON, NOON + 2 * MINUTE], 0, 10)] == [
        "12:00",
        "12:01",
        "12:02",
    ]
    assert [text for _, _, text in times_along([NOON, NOON + MINUTE], 0, 10)] == [
        "12:00:00",
        "12:00:30",
        "12:01:00",
    ]
    assert [text for _, _, text in times_along([NOON, NOON + timedelta(days=2)], 0, 10)] == [
        "02 Mar",
        "03 Mar",
        "04 Mar",
    ]
    assert times_along([], 0, 10) == []


def test_a_single_time_is_in_the_middle():
    assert places_along([NOON], 10, 30) == [20]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.75, "0.75"),
        (9.94, "9.94"),
        (68.41, "68.4"),
        (99.97, "100"),
        (146.2, "146"),
        (12_345, "12.3 k"),
    ],
)
def test_numbers_have_three_significant_digits(value, text):
    assert format_number(value) == text


def test_a_line_goes_through_its_points_in_order_of_time():
    chart = line_chart([Point(NOON + MINUTE, 100), Point(NOON, 50)], title="Tick duration", unit="ms")
    (line,) = chart.lines
    assert [place.split(",")[0] for place in line.points.split()] == ["0.0", "1000.0"]
    assert chart.area.startswith("0.0,136 ")


def test_each_series_has_its_own_line_and_shows_its_last_value():
    points = [Point(NOON + MINUTE, 100, "cml-eu"), Point(NOON, 50)]
    chart = line_chart(points, title="Tick duration", unit="ms")
    assert chart.area == ""
    assert [(line.name, line.last) for line in chart.lines] == [("", "50 ms"), ("cml-eu", "100 ms")]
    assert chart.figures == [("p95", "100 ms"), ("max", "100 ms")]
    assert chart.marks[1][2] == "02 Mar 12:01:00: 100 ms, cml-eu"
    assert chart.table.rows == [("02 Mar 12:01:00, cml-eu", ["100"]), ("02 Mar 12:00:00", ["50"])]


def test_lines_beyond_the_colours_share_one_and_are_counted():
    chart = line_chart([Point(NOON, n, f"pool-{n}") for n in range(1, 8)], title="t", unit="ms")
    assert [line.kind for line in chart.lines] == [1, 2, 3, 4, 5, 5, 5]
    assert ([line.name for line in chart.named], chart.others) == (
        ["pool-1", "pool-2", "pool-3", "pool-4"],
        3,
    )


@pytest.mark.parametrize("maximum", [1, 7, 83, 150, 185, 420])
def test_the_ends_of_an_axis_have_their_numbers(maximum):
    chart = line_chart([Point(NOON, maximum)], title="t", unit="ms")
    (first, zero), *_, (last, highest) = chart.grid
    assert (first, zero, last) == (136, "0", 24)
    assert float(highest) >= maximum
    assert len(chart.grid) <= 9


@pytest.mark.parametrize(
    ("days", "css_class", "texts"),
    [
        (5, "wide-label", ["29 Mar", "30", "31", "1 Apr", "2"]),
        (14, "narrow-label", ["29 Mar", "1 Apr", "4", "7", "10"]),
        (28, "narrow-label", ["29 Mar", "3 Apr", "8", "13", "18", "23"]),
        (21, "wide-label", ["29 Mar", "31", "2 Apr", "4", "6", "8", "10", "12", "14", "16", "18"]),
    ],
)
def test_day_labels_include_the_month_where_it_begins(days, css_class, texts):
    found = [date(2026, 3, 29) + timedelta(days=number) for number in range(days)]
    chart = stacked(ByDay(found, [Series("academy", [1.0] * days)]), unit="core-hours")
    assert [label.text for label in chart.labels if css_class in label.look.split()] == texts


def test_a_label_at_the_end_stays_within_the_chart():
    for last, css_class in ((date(2026, 4, 1), "end wide-label"), (date(2026, 4, 2), "mid wide-label")):
        days = [last - timedelta(days=age) for age in range(3, -1, -1)]
        chart = stacked(ByDay(days, [Series("academy", [1.0] * 4)]), unit="core-hours")
        assert [label.look for label in chart.labels if "wide-label" in label.look][-1] == css_class


def test_columns_fill_the_width_whatever_it_is():
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(14)]
    columns = stacked(ByDay(days, [Series("academy", [1.0] * 14)]), unit="core-hours").columns
    assert columns[0].x > 0
    assert columns[-1].x + columns[-1].width < 100
    assert all(left.x + left.width < right.x for left, right in pairwise(columns))


def test_the_table_of_a_chart_has_its_unit():
    chart = stacked(ByDay([date(2026, 3, 1)], [Series("academy", [1.0])]), unit="core-hours")
    assert (chart.table.first, chart.table.heads) == ("Day, UTC", ["academy, core-hours"])


def test_links_of_a_topology_are_listed_by_node_labels():
    nodes = [
        {"id": f"n{number}", "label": name, "node_definition": "iosv", "x": number, "y": 0}
        for number, name in enumerate(("R1", "R2"))
    ]
    assert picture_of(nodes, [{"n1": "n0", "n2": "n1"}]).ends == [("R1", "R2")]


# Context name of each chart in its template.
SHOWN = {
    "columns": {"chart": "column_chart"},
    "dots": {"chart": "dot_chart"},
    "lines": {"chart": "line_chart"},
    "share_bar": {"bar": "bar"},
    "sparkline": {"spark": "spark"},
    "topology": {"picture": "picture"},
}
CHARTS = sorted({path.stem for path in TEMPLATES.glob("*.html")} - {"table"})


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_has_a_title_and_a_data_table(name):
    found = sample_charts()
    context = {key: found[sample] for key, sample in SHOWN[name].items()}
    chart_html = render_to_string(f"charts/{name}.html", {**context, "sentence": "CPU of 12 sessions"})
    (label,) = re.findall(r'<svg[^>]* role="(?:img|group)" aria-label="([^"]+)"', chart_html)
    assert label.strip()
    assert "<title>" in chart_html
    # A bar has its numbers in its title; a sparkline is shown beside its numbers.
    if name not in ("share_bar", "sparkline"):
        assert '<details class="more">' in chart_html


def test_a_chart_without_points_is_none():
    assert line_chart([], title="t", unit="ms") is None
    assert sparkline([(0, 3)], title="t") is None


def test_a_long_table_notes_the_rows_it_omits():
    chart = line_chart([Point(NOON + n * MINUTE, n) for n in range(150)], title="t", unit="ms")
    assert len(chart.table.rows) == 100
    assert chart.table.note == "The newest 100 of 150."


def test_a_sparkline_reaches_the_top_at_its_maximum():
    spark = sparkline([(0, 0), (1, 10), (2, 5)], title="t")
    assert spark.strokes == ["0.0,34.0 120.0,2.0 240.0,18.0"]
    assert spark.areas == ["0.0,36 0.0,34.0 120.0,2.0 240.0,18.0 240.0,36"]


def test_a_sparkline_breaks_at_gaps_and_uses_the_given_scale():
    spark = sparkline([(10, 5), (11, 5), (18, 5)], title="t", span=(0, 20), gap=1.5, most=10)
    assert spark.strokes == ["120.0,18.0 132.0,18.0", "216.0,18.0"]


def test_segments_are_as_wide_as_their_numbers():
    bar = share_bar(
        [Share("Ready", 3, "READY"), Share("Error", 0, "ERROR"), Share("Booting", 1, "BOOTING")], of=8
    )
    assert [(each.x, each.width, each.share.label) for each in bar.segments] == [
        (0.0, 375.0, "Ready"),
        (375.0, 125.0, "Booting"),
    ]
    assert bar.title == "3 ready, 1 booting"


def test_an_empty_bar_is_titled_none():
    assert share_bar([]).title == "none"


def chart_of_dots(dots, levels):
    return dot_chart(
        dots, levels, text=lambda value: f"{value:g}", said=lambda value: f"{value:g} GB", unit="GB", least=1
    )


def test_labels_of_close_lines_are_moved_apart():
    chart = chart_of_dots([], {"current": 10, "max": 10.1, "p95": 10.2})
    places = [line.label_y for line in chart.lines]
    assert [line.kind for line in chart.lines] == ["p95", "max", "current"]
    assert all(following - previous > 12.9 for previous, following in pairwise(places))


def test_dots_are_drawn_by_their_look_with_titles():
    dots = [
        ChartDot(NOON, 2, "Session a", url=""),
        ChartDot(NOON + MINUTE, 9, "Session b", "over", "above the proposal", "/b"),
    ]
    chart = chart_of_dots(dots, {"current": 8})
    assert "<title>Session a: 2 GB</title>" in chart.dots
    assert [(mark.look, mark.title, mark.url) for mark in chart.marks] == [
        ("over", "Session b: 9 GB, above the proposal", "/b")
    ]
    assert chart.table.rows[0] == ("Session b, 02 Mar 12:01, above the proposal", ["9"])


def test_a_chart_with_links_in_it_is_a_group_and_others_are_images():
    plain = [ChartDot(NOON, 2, "Session a")]
    over = ChartDot(NOON + MINUTE, 9, "Session b", "over", "above the proposal", "/b")
    assert chart_of_dots(plain, {"current": 8}).role == "img"
    assert chart_of_dots([*plain, over], {"current": 8}).role == "group"


def test_names_in_titles_are_escaped():
    assert "<script>" not in chart_of_dots([ChartDot(NOON, 1, "<script>")], {"current": 1}).dots
