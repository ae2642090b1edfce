"""Charts in a browser: crosshair, legend, ranges and zoom, by keyboard, mouse and on a phone."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.keyboard import PHONE, WIDTHS, check, press, size, tab_to

pytestmark = pytest.mark.xdist_group("browser")

SHOWN_SERIES = "groups => groups.filter(each => getComputedStyle(each).display !== 'none').length"

RELOAD = "htmx.ajax('GET', '/overview/usage?range=30d', {target: '#live', swap: 'outerHTML'})"
BOTTOMS = """bars => bars.map(
    bar => Math.round(Number(bar.getAttribute("y")) + Number(bar.getAttribute("height")))
)"""


def query_of(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


@pytest.fixture(params=[1280, PHONE["width"]], ids=["wide", "phone"])
def usage(open_page, request) -> Page:
    return open_page("viewer", "/usage/", **size(request.param))


def test_the_crosshair_moves_by_keyboard(usage):
    crosshair = usage.get_by_role("slider", name=re.compile("Values of the chart: Core-hours a day"))
    values = usage.locator(".crosshair-values")
    expect(values).to_be_hidden()
    tab_to(usage, "[role=slider]")
    usage.keyboard.press("End")
    expect(values).to_be_visible()
    last = crosshair.get_attribute("aria-valuetext")
    assert re.match(r"\d\d \w{3}, core-hours, .+ [\d.]+", last or "")
    usage.keyboard.press("ArrowLeft")
    expect(crosshair).not_to_have_attribute("aria-valuetext", last)
    heading = (crosshair.get_attribute("aria-valuetext") or "").partition(",")[0]
    expect(values.locator("b")).to_have_text(f"{heading}, core-hours")
    usage.keyboard.press("Home")
    expect(crosshair).to_have_attribute("aria-valuenow", "1")
    box = values.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= usage.viewport_size["width"], "the values stay on the page"
    check(usage)
    usage.keyboard.press("Escape")
    expect(values).to_be_hidden()


def test_the_crosshair_follows_the_pointer_and_the_page_keeps_its_size(usage):
    area = usage.locator(".plot-area").first
    box = area.bounding_box()
    usage.mouse.move(box["x"] + box["width"] * 0.95, box["y"] + 40)
    expect(usage.locator(".crosshair-values b")).to_be_visible()
    assert usage.evaluate("document.documentElement.scrollWidth") <= usage.viewport_size["width"]
    usage.mouse.move(0, 0)
    expect(usage.locator(".crosshair-values")).to_be_hidden()


def test_a_series_is_isolated_in_the_legend_by_keyboard(usage):
    series = usage.locator(".plot-area g[data-series]")
    count = series.count()
    assert count > 1
    button = usage.locator(".legend button").nth(1)
    tab_to(usage, ".legend li:nth-child(2) button")
    usage.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert series.evaluate_all(SHOWN_SERIES) == 1
    bottoms = series.nth(1).locator("rect").evaluate_all(BOTTOMS)
    assert set(bottoms) == {206}, "columns of one series start at the axis"
    check(usage)
    usage.keyboard.press("Space")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert series.evaluate_all(SHOWN_SERIES) == count


@WIDTHS
def test_a_range_is_chosen_by_keyboard_and_stays_in_the_address(width, open_page):
    page = open_page("viewer", "/fair-share/?pool=cml-eu", **size(width))
    press(page, "nav[aria-label='Time range'] a[href*='range=7d']")
    assert query_of(page) == {"pool": "cml-eu", "range": "7d"}
    press(page, "nav[aria-label='Resource'] a[href*='resource=memory_gb']")
    assert query_of(page)["range"] == "7d"
    page.reload()
    expect(page.locator("[aria-label='Time range'] [aria-current]")).to_have_text("7 d")
    expect(page.locator(".legend .sub").first).to_contain_text("in 7 days")


def test_dragging_zooms_to_the_selected_days(open_page):
    page = open_page("viewer", "/usage/?level=domain")
    box = page.locator(".plot-area").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.705, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 60, steps=3)
    expect(page.locator(".crosshair-part")).to_be_visible()
    page.mouse.move(box["x"] + box["width"] * 0.895, box["y"] + 60, steps=3)
    page.mouse.up()
    page.wait_for_url("**range=custom*")
    found = query_of(page)
    assert found["level"] == "domain"
    expect(page.locator(".legend .sub").first).to_contain_text("in 6 days")
    expect(page.get_by_label("From", exact=True)).to_have_value(found["from"])
    page.reload()
    expect(page.get_by_label("To", exact=True)).to_have_value(found["to"])


@WIDTHS
def test_the_keyboard_zooms_too(width, open_page):
    page = open_page("viewer", "/fair-share/", **size(width))
    tab_to(page, "[role=slider]")
    page.keyboard.press("End")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator(".crosshair-part")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**range=custom*")
    expect(page.locator(".time-range summary")).to_have_attribute("aria-current", "true")


def test_the_charts_of_a_definition_have_a_range_that_keeps_the_choices_of_the_review(open_page):
    page = open_page("admin", "/definitions/?needs_review=true")
    page.locator("tbody .card-title a").first.click()
    ranges = page.locator("#review-range")
    page.locator("#cpu_cores-keep").check()
    expect(ranges.get_by_role("link", name="All")).to_have_attribute("aria-current", "true")
    ranges.get_by_role("link", name="7 d").focus()
    page.keyboard.press("Enter")
    expect(ranges.get_by_role("link", name="7 d")).to_have_attribute("aria-current", "true")
    assert query_of(page) == {"range": "7d"}
    expect(page.locator("#cpu_cores-keep")).to_be_checked()
    expect(page.locator("#chart-cpu_cores .line-proposal")).to_have_count(0)
    # A chart with fewer than two sessions has no zoom.
    ranges.get_by_role("link", name="All").click()
    expect(ranges.get_by_role("link", name="All")).to_have_attribute("aria-current", "true")
    # Panels that load later, and the preview, would move the chart.
    page.wait_for_function(
        "() => !document.querySelector('[hx-trigger^=load], .htmx-request, .htmx-settling')"
    )
    area = page.locator("#chart-memory_gb .plot-area")
    width = area.bounding_box()["width"]
    # `hover` waits until the chart no longer moves and is not covered.
    area.hover(position={"x": width * 0.3, "y": 60})
    page.mouse.down()
    area.hover(position={"x": width * 0.6, "y": 60})
    page.mouse.up()
    page.wait_for_url(re.compile("range=custom"))
    expect(ranges.locator("summary[aria-current=true]")).to_be_visible()


def test_a_custom_range_is_entered_by_keyboard_on_a_phone(open_page):
    page = open_page("viewer", "/overview/ticks", **size())
    tab_to(page, ".time-range summary")
    page.keyboard.press("Enter")
    start = page.get_by_label("From", exact=True)
    start.fill("2020-01-01T00:00")
    start.press("Enter")
    page.wait_for_url("**range=custom*")
    assert query_of(page)["zone"]
    expect(page.locator(".plot-area circle.point").first).to_be_visible()
    check(page)


def test_the_chart_keeps_series_crosshair_and_focus_when_its_panel_reloads(open_page):
    page = open_page("viewer", "/overview/usage")
    button = page.locator(".legend button").first
    button.click()
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    heading = page.locator(".crosshair-values b").text_content()
    page.locator("#live").evaluate("part => part.classList.add('old')")
    page.evaluate(RELOAD)
    expect(page.locator("#live")).not_to_contain_class("old")
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".crosshair-values b")).to_have_text(heading)
    expect(page.get_by_role("slider")).to_be_focused()


def test_a_wrong_range_is_explained(open_page):
    page = open_page("viewer", "/overview/ticks?range=7d")
    problem = "The range 7 d cannot be shown. LCM keeps ticks for 2 days. Showing last 1 h."
    expect(page.get_by_role("alert")).to_have_text(problem)
    expect(page.locator("[aria-label='Time range'] [aria-current]")).to_have_text("1 h")


def test_ranges_work_without_javascript(open_page):
    page = open_page("viewer", "/overview/ticks", java_script_enabled=False)
    page.get_by_role("link", name="6 h").click()
    expect(page.locator("[aria-label='Time range'] [aria-current]")).to_have_text("6 h")
    expect(page.locator(".plot-area circle.point").first).to_be_visible()
    page.locator(".time-range summary").click()
    page.get_by_role("button", name="Show range").click()
    assert query_of(page)["range"] == "custom"
    expect(page.get_by_text("Show data table")).to_be_visible()
    expect(page.locator(".legend button")).to_have_count(0)
