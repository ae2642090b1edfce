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
from lcm.web.charts.columns import ByDay, stacked
from lcm.web.charts.dots import ChartDot, dot_chart
from lcm.web.charts.points import Point, point_chart
from lcm.web.charts.scales import format_number, places_along, scale_over, times_along
from lcm.web.charts.series import Series, named_count
from lcm.web.charts.sparklines import sparkline
from lcm.web.charts.time_axis import TimeAxis
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


@pytest.mark.parametrize(
    ("values", "low"), [([400, 420], 395), ([2, 8], 0), ([0, 0], 0), ([6, 8], 5.5), ([5, 8], 0)]
)
def test_an_axis_starts_at_zero_unless_all_values_are_close(values, low):
    scale = scale_over(values, bottom=200, top=10)
    assert (scale.low, scale.is_broken) == (low, low > 0)


def test_a_broken_axis_is_marked_and_names_its_start():
    for value, is_marked in ((400, True), (10, False)):
        chart = chart_of_dots([], {"current": value, "max": 420})
        drawn = render_to_string("charts/dots.html", {"chart": chart})
        assert ('class="axis-break"' in drawn) == ("GB, axis from 395" in drawn) == is_marked


def test_a_date_is_not_repeated_below_an_axis():
    labels = times_along([NOON, NOON + timedelta(days=1)], 0, 10)
    assert [text for _, _, text in labels] == ["02 Mar", "03 Mar"]


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


def points_of(*points, start=NOON - 10 * MINUTE, **options):
    axis = TimeAxis(start, start + timedelta(hours=1))
    return point_chart(points, axis=axis, title="Tick duration", unit="ms", **options)


def test_points_are_placed_on_the_whole_range_and_not_joined():
    chart = points_of(Point(NOON + MINUTE, 100), Point(NOON, 50))
    (series,) = chart.series
    assert [(mark.x, mark.y) for mark in series.marks] == [(16.67, 89.3), (18.33, 42.7)]
    drawn = render_to_string("charts/points.html", {"chart": chart})
    assert drawn.count('<circle class="point"') == 2
    assert "<polyline" not in drawn


def test_each_series_has_its_own_colour_and_shows_its_maximum():
    points = [Point(NOON, 50, "cml-us"), Point(NOON, 100, "cml-eu"), Point(NOON + MINUTE, 7, "cml-eu")]
    chart = points_of(*points)
    assert [(series.name, series.kind, series.most) for series in chart.series] == [
        ("cml-eu", 1, "100 ms"),
        ("cml-us", 2, "50 ms"),
    ]
    assert chart.series[0].marks[0].title == "02 Mar 12:00:00 UTC\ncml-eu 100 ms"
    assert chart.table.heads == ["cml-eu, ms", "cml-us, ms"]
    assert chart.table.rows == [("02 Mar 12:01:00 UTC", ["7", ""]), ("02 Mar 12:00:00 UTC", ["100", "50"])]


def test_a_point_is_in_the_middle_of_the_step_that_its_time_begins():
    early, late = Point(NOON - 14 * MINUTE, 9), Point(NOON + 49 * MINUTE, 7)
    (series,) = points_of(early, Point(NOON, 50), late, step=6 * MINUTE).series
    assert [(mark.x, mark.title) for mark in series.marks] == [
        (0.0, "02 Mar 11:46 UTC\n9 ms"),
        (21.67, "02 Mar 12:00 UTC\n50 ms"),
        (100.0, "02 Mar 12:49 UTC\n7 ms"),
    ]


def test_series_without_a_name_of_their_own_are_grey_and_last():
    chart = points_of(Point(NOON, 1), Point(NOON, 2, "cml-eu"), rest="3 other pools")
    assert [(series.name, series.kind) for series in chart.series] == [("cml-eu", 1), ("3 other pools", 5)]


@pytest.mark.parametrize("maximum", [1, 7, 83, 150, 185, 420])
def test_the_ends_of_an_axis_have_their_numbers(maximum):
    chart = points_of(Point(NOON, maximum))
    (first, zero), *_, (last, highest) = chart.grid
    assert (first, zero, last) == (136, "0", 24)
    assert float(highest) >= maximum
    assert len(chart.grid) <= 9


@pytest.mark.parametrize(
    ("totals", "rest", "named"),
    [
        ([9, 8, 7, 6], 0, 4),
        ([9, 8, 7, 6, 5, 4], 0, 4),
        ([9, 8, 7, 6, 5, 4, 3], 0, 5),
        ([9, 8, 7, 6, 5, 4, 3], 3, 6),
        ([9, 8, 7, 6, 5, 4, 3, 2], 50, 8),
        ([9, 8], 0, 2),
        ([], 0, 0),
    ],
)
def test_so_many_are_named_that_the_rest_does_not_exceed_the_largest(totals, rest, named):
    assert named_count(totals, rest) == named


def test_a_rest_that_is_larger_than_every_named_series_is_mentioned():
    day, text = date(2026, 3, 1), "together they exceed each named one"
    for rest, is_mentioned in ((10.0, False), (10.1, True)):
        series = [Series("academy", [10.0]), Series("others", [rest], is_rest=True)]
        chart = stacked(ByDay([day], series), unit="core-hours")
        assert [layer.kind for layer in chart.layers] == [1, 5]
        assert (text in render_to_string("charts/columns.html", {"chart": chart})) == is_mentioned


@pytest.mark.parametrize(
    ("days", "css_class", "texts"),
    [
        (5, "wide-label", ["29 Mar", "30", "31", "1 Apr", "2"]),
        (14, "narrow-label", ["29 Mar", "1 Apr", "4", "7", "10"]),
        (28, "narrow-label", ["29 Mar", "8 Apr", "13", "18", "23"]),
        (30, "wide-label", ["29 Mar", "1 Apr", "4", "7", "10", "13", "16", "19", "22", "25"]),
        (21, "wide-label", ["29 Mar", "31", "2 Apr", "4", "6", "8", "10", "12", "14", "16", "18"]),
    ],
)
def test_day_labels_include_the_month_where_it_begins(days, css_class, texts):
    found = [date(2026, 3, 29) + timedelta(days=number) for number in range(days)]
    chart = stacked(ByDay(found, [Series("academy", [1.0] * days)]), unit="core-hours")
    assert [label.text for label in chart.labels if css_class in label.css_class.split()] == texts


def test_a_label_at_the_end_stays_within_the_chart():
    for last, css_class in ((date(2026, 4, 1), "end wide-label"), (date(2026, 4, 2), "mid wide-label")):
        days = [last - timedelta(days=age) for age in range(3, -1, -1)]
        chart = stacked(ByDay(days, [Series("academy", [1.0] * 4)]), unit="core-hours")
        assert [label.css_class for label in chart.labels if "wide-label" in label.css_class][-1] == css_class


def test_columns_fill_the_width_whatever_it_is():
    days = [date(2026, 3, 1) + timedelta(days=number) for number in range(14)]
    (layer,) = stacked(ByDay(days, [Series("academy", [1.0] * 14)]), unit="core-hours").layers
    columns = layer.segments
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
    "points": {"chart": "point_chart"},
    "share_bar": {"bar": "bar"},
    "sparkline": {"spark": "spark"},
    "topology": {"picture": "picture"},
}
CHARTS = sorted({path.stem for path in TEMPLATES.glob("*.html")} - {"table", "plot_start"})


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
    assert points_of() is None
    assert sparkline([(0, 3)], title="t") is None


def test_a_long_table_notes_the_rows_it_omits():
    chart = points_of(*(Point(NOON + n * MINUTE, n) for n in range(150)))
    assert len(chart.table.rows) == 100
    assert chart.table.note == "The newest 100 of 150."


def test_a_sparkline_reaches_the_top_at_its_maximum():
    spark = sparkline([(0, 0), (1, 10), (2, 5)], title="t")
    assert spark.strokes == ["0.0,34.0 120.0,2.0 240.0,18.0"]
    assert spark.areas == ["0.0,36 0.0,34.0 120.0,2.0 240.0,18.0 240.0,36"]


def test_a_sparkline_breaks_at_gaps_and_uses_the_given_scale():
    spark = sparkline([(10, 5), (11, 5), (18, 5)], title="t", span=(0, 20), gap=1.5, most=10)
    assert spark.strokes == ["120.0,18.0 132.0,18.0", "216.0,36.0 216.0,18.0"], "a single point is a stem"


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
        dots,
        levels,
        text=lambda value: f"{value:g}",
        with_unit=lambda value: f"{value:g} GB",
        label=lambda kind, value: f"{kind} {value:g}",
        unit="GB",
        least=1,
    )


def test_labels_of_close_lines_are_moved_apart():
    chart = chart_of_dots([], {"current": 10, "max": 10.1, "p95": 10.2})
    places = [line.label_y for line in chart.lines]
    assert [line.kind for line in chart.lines] == ["p95", "max", "current"]
    assert all(following - previous > 12.9 for previous, following in pairwise(places))


def test_a_chart_of_dots_can_be_zoomed_if_its_dots_have_different_times():
    assert chart_of_dots([ChartDot(NOON, 1, "a")], {"current": 8}).zoom is None
    dots = [ChartDot(NOON + timedelta(hours=hours), 1, "a") for hours in (0, 10)]
    chart = chart_of_dots(dots, {"current": 8})
    places = re.findall(r'cx="([\d.]+)"', chart.dots)
    seconds = chart.zoom.end - chart.zoom.start
    times = [chart.zoom.start + float(x) / chart.width * seconds for x in places]
    assert times == pytest.approx([dot.at.timestamp() for dot in dots], abs=60)


def test_dots_are_drawn_by_kind_with_titles():
    dots = [
        ChartDot(NOON, 2, "Session a", url=""),
        ChartDot(NOON + MINUTE, 9, "Session b", "over", "above the proposal", "/b"),
    ]
    chart = chart_of_dots(dots, {"current": 8})
    assert "<title>02 Mar 12:00 UTC\nSession a: 2 GB</title>" in chart.dots
    assert [(mark.kind, mark.title, mark.url) for mark in chart.marks] == [
        ("over", "02 Mar 12:01 UTC\nSession b: 9 GB, above the proposal", "/b")
    ]
    assert chart.table.rows[0] == ("Session b, 02 Mar 12:01 UTC, above the proposal", ["9"])


def test_a_chart_with_links_in_it_is_a_group_and_others_are_images():
    plain = [ChartDot(NOON, 2, "Session a")]
    over = ChartDot(NOON + MINUTE, 9, "Session b", "over", "above the proposal", "/b")
    assert chart_of_dots(plain, {"current": 8}).role == "img"
    assert chart_of_dots([*plain, over], {"current": 8}).role == "group"


def test_names_in_titles_are_escaped():
    assert "<script>" not in chart_of_dots([ChartDot(NOON, 1, "<script>")], {"current": 1}).dots
