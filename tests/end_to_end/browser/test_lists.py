"""Lists: columns, density, saved views, dates and bulk actions, with the keyboard alone and on a phone."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.accessibility import small_targets
from tests.end_to_end.browser.keyboard import PHONE, WIDTHS, check, size, tab_to
from tests.support.page_list import request_session

pytestmark = pytest.mark.xdist_group("browser")

LISTS = [
    "/sessions/",
    "/definitions/",
    "/slots/",
    "/reservations/",
    "/changes/",
    "/people/",
    "/ticks/",
    "/decisions/",
]


def fresh_name() -> str:
    return f"view-{uuid4().hex[:8]}"


def open_menu(page: Page, name: str) -> None:
    """Open a menu with the keyboard."""
    menu = page.locator("details.menu > summary", has_text=name).first
    menu.focus()
    page.keyboard.press("Enter")


def columns(page: Page, name: str) -> int:
    """Return the number of columns with this heading, which a phone hides."""
    return page.locator(".results thead th", has_text=name).count()


@WIDTHS
def test_columns_density_and_views_are_chosen_with_the_keyboard(width, open_page):
    page = open_page("viewer", "/sessions/?status=RUNNING", **size(width))
    assert columns(page, "Priority") == 1
    open_menu(page, "Columns")
    tab_to(page, "[name=columns][value=priority]")
    page.keyboard.press("Space")
    tab_to(page, "[name=density]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".results table")).to_have_class(re.compile("table-dense"))
    expect(page).to_have_url(re.compile(r"status=RUNNING"))
    assert columns(page, "Priority") == 0
    check(page)

    name = fresh_name()
    open_menu(page, "Views")
    tab_to(page, "a[href*='/views/new']")
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Name")).to_be_focused()
    page.keyboard.type(name)
    tab_to(page, "[name=shared]")
    page.keyboard.press("Space")
    check(page)
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text(f"View {name} saved.")
    expect(page.locator(".chip")).to_have_text(re.compile("Status: Running"))
    open_menu(page, name)
    expect(page.locator(".menu[open] [aria-current=true]")).to_contain_text("shared")
    tab_to(page, "[name=is_default]")
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text("The list now opens with the view")

    page.goto("/sessions/")
    expect(page).to_have_url(re.compile("status=RUNNING&view="))
    page.get_by_role("link", name="Clear", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".chip")).to_have_count(0)
    open_menu(page, name)
    expect(page.locator(".menu[open] > summary")).to_contain_text("changed")
    tab_to(page, ".menu[open] a[href*='/delete']")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Delete view").press("Enter")
    expect(page.locator(".toast")).to_contain_text(f"View {name} deleted.")
    page.goto("/sessions/")
    expect(page).to_have_url(re.compile("/sessions/$"))
    open_menu(page, "Columns")
    tab_to(page, "[name=reset]")
    page.keyboard.press("Enter")
    expect(page.locator("th", has_text="Priority")).to_have_count(1)


@WIDTHS
def test_a_period_is_chosen_or_typed_and_applied(width, open_page):
    page = open_page("viewer", "/sessions/?view=", **size(width))
    open_menu(page, "Requested")
    page.get_by_label("Yesterday").focus()
    page.keyboard.press("Space")
    expect(page.locator(".chip")).to_have_text(re.compile("Requested: yesterday"))
    expect(page.locator(".menu[open]")).to_contain_text("In UTC.")
    check(page)
    start = page.get_by_role("textbox", name="From")
    start.fill("2020-01-01T08:30")
    expect(page.locator(".chip")).to_have_text(re.compile("Requested: yesterday"))
    start.press("Enter")
    expect(page.locator(".chip")).to_have_text(re.compile("Requested, from: 2020-01-01 08:30"))
    open_menu(page, "Requested")
    page.get_by_label("Last 7 days").press("Space")
    expect(page.locator(".chip")).to_have_text(re.compile("Requested: last 7 days"))
    expect(start).to_have_value("")


@WIDTHS
def test_waiting_sessions_are_changed_together_and_the_filter_is_kept(width, open_page):
    page = open_page("operator", "/sessions/", **size(width))
    request_session(page, is_advance_booking=True)
    page.goto("/sessions/?status=PENDING&size=50")
    for action, key, done in (
        ("priority", "High", "Priority of 1 session changed."),
        ("extend", "1 hour", "1 session extended."),
    ):
        tab_to(page, "tbody .select")
        if not page.locator("tbody .select").first.is_checked():
            page.keyboard.press("Space")
        tab_to(page, f".bulk-bar [formaction*='/{action}'], .bulk-bar [hx-post*='/{action}']")
        page.keyboard.press("Enter")
        page.locator("dialog[open]").wait_for()
        check(page)
        tab_to(page, "dialog[open] select")
        page.keyboard.type(key)
        tab_to(page, "dialog[open] [name=reason]")
        page.keyboard.type("exam")
        tab_to(page, "dialog[open] [type=submit]")
        page.keyboard.press("Enter")
        expect(page.locator(".toast")).to_contain_text(done)
        expect(page).to_have_url(re.compile(r"\?status=PENDING&size=50$"))
    expect(page.locator("tbody tr").first).to_contain_text("High")


def test_rows_have_two_lines_on_a_phone_and_open_their_object(open_page):
    page = open_page("admin", "/sessions/", **size())
    for path in LISTS:
        page.goto(f"{path}?view=")
        rows = page.locator("tbody tr")
        heights = rows.evaluate_all("rows => rows.map(row => row.getBoundingClientRect().height)")
        assert 50 <= max(heights) <= 64, path
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
    page.goto("/sessions/?view=")
    row = page.locator("tbody tr").first
    name = row.locator(".name").inner_text()
    box = row.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] - 40, box["y"] + box["height"] - 12)
    expect(page.get_by_role("heading", name=name).first).to_be_visible()


def test_menus_and_selection_on_a_phone_are_large_enough_and_accessible(open_page):
    page = open_page("operator", "/sessions/?status=RUNNING&view=", **size())
    for name in ("Status", "Requested", "Views", "Columns", "Sort"):
        open_menu(page, name)
        expect(page.locator(".menu[open]")).to_have_count(1)
        assert small_targets(page) == [], name
        page.keyboard.press("Escape")
    page.locator("tbody .pick label").first.tap()
    expect(page.locator("[data-selected-count]")).to_have_text("1 selected")
    check(page)


def test_lists_work_without_javascript(open_page):
    page = open_page("viewer", "/sessions/")
    context = page.context.browser.new_context(
        base_url=page.url.split("/sessions")[0], java_script_enabled=False
    )
    context.add_cookies(page.context.cookies())
    plain = context.new_page()
    plain.goto("/definitions/")
    plain.locator("summary", has_text="Columns").click()
    plain.locator("[name=columns][value=class]").uncheck()
    plain.locator(".menu[open]").get_by_role("button", name="Apply").click()
    expect(plain.get_by_role("columnheader", name="Class")).to_have_count(0)
    name = fresh_name()
    plain.locator("summary", has_text="Views").click()
    plain.get_by_role("link", name="Save view…").click()
    plain.get_by_label("Name").fill(name)
    plain.get_by_role("button", name="Save view").click()
    expect(plain.locator("summary", has_text=name)).to_be_visible()
    plain.locator("summary", has_text="Imported").click()
    plain.get_by_role("textbox", name="From").first.fill("2020-01-01T08:30")
    plain.locator(".menu[open]").get_by_role("button", name="Apply").click()
    expect(plain.locator(".chip")).to_have_text(re.compile("Imported, from: 2020-01-01 08:30"))
    plain.locator("summary", has_text=name).click()
    plain.get_by_role("link", name="Delete view…").click()
    plain.get_by_role("button", name="Delete view").click()
    plain.locator("summary", has_text="Columns").click()
    plain.get_by_role("button", name="Reset").click()
    expect(plain.get_by_role("columnheader", name="Class")).to_be_visible()
    context.close()
