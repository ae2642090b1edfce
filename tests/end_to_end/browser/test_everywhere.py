"""Checks of every page: themes, keyboard, phones, no JavaScript, accessibility, content security policy."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import unescape

import pytest
from playwright.sync_api import expect

from tests.end_to_end.browser.accessibility import (
    keep_one_of_each_kind,
    low_contrast,
    overflowing_elements,
    repeated_ids,
    serious_violations,
    small_targets,
)
from tests.end_to_end.browser.keyboard import check, check_in_both_themes, press, size, tab_to
from tests.end_to_end.browser.weight import too_heavy
from tests.support.page_list import (
    PAGES,
    PANELS,
    example_ids,
    filled_paths,
    log_in,
    real_paths,
    request_session,
    show,
)

pytestmark = pytest.mark.xdist_group("browser")

# Each part is a test of its own, so that none takes long.
PARTS = 6


@pytest.fixture(scope="module")
def paths(plane, chromium) -> list[str]:
    """URLs of every page with ids of existing objects, including lazy panels as pages."""
    context = chromium.new_context(base_url=f"http://{plane.address}")
    page = context.new_page()
    log_in(page, "admin")
    found = real_paths(page)
    assert len(found) == len(PAGES)
    standalone = [
        path for path in filled_paths(example_ids(page), PANELS) if "<main" in page.request.get(path).text()
    ]
    assert standalone
    context.close()
    return [*found, *standalone]


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_accessible_in_both_themes_and_fits_a_phone(part, paths, open_page):
    """One load per page: axe in light, contrast in dark, phone width, weight and console."""
    page = open_page("admin", color_scheme="light", reduced_motion="reduce")
    found = {}
    for path in paths[part::PARTS]:
        show(page, path)
        problems = [*(f"{each} twice" for each in repeated_ids(page)), *too_heavy(page)]
        is_first = path == paths[part]
        page.set_viewport_size({"width": 390, "height": 844})
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > 390:
            problems.append(f"{width} px wide")
        problems += [f"too small for a finger: {each}" for each in small_targets(page)]
        if is_first:
            problems += [f"{each} on a phone" for each in serious_violations(page)]
        page.set_viewport_size({"width": 1280, "height": 900})
        problems += [f"cut off: {each}" for each in overflowing_elements(page)]
        keep_one_of_each_kind(page)
        problems += serious_violations(page, around=is_first)
        page.emulate_media(color_scheme="dark")
        problems += [f"{each} in dark" for each in low_contrast(page, around=is_first)]
        page.emulate_media(color_scheme="light")
        if problems:
            found[path] = problems
    assert found == {}


def in_both_themes(page) -> list[str]:
    """Return serious violations in the light theme and contrast violations in the dark theme."""
    page.emulate_media(color_scheme="light")
    found = serious_violations(page)
    page.emulate_media(color_scheme="dark")
    return found + [f"{each} in dark" for each in low_contrast(page, around=True)]


def test_axe_finds_nothing_serious_before_logging_in(open_page):
    assert in_both_themes(open_page(None, "/login", reduced_motion="reduce")) == []


def test_axe_finds_nothing_serious_in_menus_dialogs_and_rejected_forms(open_page, console_errors):
    page = open_page("operator", reduced_motion="reduce")
    request_session(page, is_advance_booking=True)
    page.goto("/sessions/?status=PENDING")
    page.locator("summary", has_text="Status").click()
    expect(page.get_by_role("checkbox", name="Scheduled")).to_be_visible()
    assert in_both_themes(page) == []
    page.keyboard.press("Escape")
    page.locator("tbody .select").first.check()
    page.locator(".bulk-bar").get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Reason")).to_be_focused()
    assert in_both_themes(page) == []
    dialog.get_by_label("Reason").fill(" ")
    dialog.get_by_role("button", name="Cancel 1 session").click()
    expect(dialog.locator(".field-error")).to_be_visible()
    assert in_both_themes(page) == []
    assert all("422" in text for text in console_errors)
    console_errors.clear()


def test_the_keyboard_stays_in_a_dialog(open_page):
    page = open_page("operator")
    request_session(page, is_advance_booking=True)
    page.goto("/sessions/?status=PENDING")
    page.locator("tbody .select").first.check()
    opener = page.locator(".bulk-bar").get_by_role("button", name="Cancel…")
    opener.click()
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    for _ in range(10):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('.shell')")
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()


def test_the_navigation_opens_on_a_phone(open_page):
    page = open_page("viewer", "/sessions/", viewport={"width": 390, "height": 844})
    link = page.get_by_role("link", name="Definitions")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    link.click()
    expect(page.get_by_role("heading", name="Definitions")).to_be_visible()


def test_dark_mode_is_switched_and_remembered(open_page):
    page = open_page("viewer", "/sessions/", color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(246, 247, 248)"
    with page.expect_response("**/theme"):
        page.get_by_role("button", name="Dark").click()
    assert page.evaluate(background) == "rgb(14, 16, 18)"
    page.reload()
    assert page.evaluate(background) == "rgb(14, 16, 18)"
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    with page.expect_response("**/theme"):
        page.get_by_role("button", name="System").click()
    page.reload()
    assert page.evaluate(background) == "rgb(246, 247, 248)"


def test_a_session_is_requested_by_keyboard_only(open_page):
    page = open_page(None, "/login")
    expect(page.get_by_label("User name")).to_be_focused()
    page.keyboard.type("viewer")
    page.keyboard.press("Tab")
    page.keyboard.type("demo-viewer")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search LCM")).to_be_focused()
    page.keyboard.type("vxlan")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Sessions whose definition").focus()
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr", has_not_text="dc-vxlan-fabric")).to_have_count(0)
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('td.card-title a')"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("Session "))).to_be_visible()


def test_everything_works_without_javascript(open_page):
    page = open_page("operator", "/sessions/", java_script_enabled=False)
    page.locator("summary", has_text="Status").click()
    page.get_by_role("checkbox", name="Scheduled").check()
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".chip")).to_have_text("Status: Scheduled")
    page.get_by_role("link", name="Timeslot").click()
    expect(page.locator("th[aria-sort]")).to_contain_text("Timeslot")
    page.locator("tbody .select").first.check()
    page.locator(".bulk-bar").get_by_role("button", name="Cancel…").click()
    expect(page.get_by_role("heading", name="Cancel 1 session?")).to_be_visible()
    page.get_by_label("Reason").fill("Cancelled without JavaScript")
    page.get_by_role("button", name="Cancel 1 session").click()
    expect(page.locator(".toast")).to_contain_text("1 session cancelled")
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    request_session(page, is_advance_booking=True)
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_label("Reason").fill("No longer needed")
    page.get_by_role("button", name="Cancel session").click()
    expect(page.locator(".badge", has_text="Cancelled")).to_be_visible()


def path_kind(path: str) -> str:
    """Return a URL without ids and query."""
    return re.sub(r"[0-9a-f-]{36}|\d+|[?].*", "*", path)


def is_complete(text: str) -> bool:
    """The page has a title, and lazy panels are links to pages of their own."""
    later = re.findall(r'hx-get="([^"]+)" hx-trigger="load"', text)
    return "<h1" in text and set(later) <= set(re.findall(r'href="([^"]+)"', text))


def test_every_link_leads_to_a_page_that_works_without_javascript_and_complies_with_the_content_policy(
    paths, open_page, console_errors
):
    """Follow every link that the highest role can reach; visit each kind of page once."""
    page = open_page("admin", "/")
    page.context.on("weberror", lambda error: console_errors.append(str(error.error)))
    walked = {path_kind(path) for path in paths}
    waiting, kinds, problems = ["/", *paths], set(), []
    while waiting:
        path = waiting.pop()
        if path_kind(path) in kinds:
            continue
        kinds.add(path_kind(path))
        response = page.request.get(path)
        text = response.text()
        if not response.ok or not is_complete(text):
            problems.append(path)
        if path_kind(path) not in walked:
            page.goto(path)
        links = [unescape(href) for href in re.findall(r'href="(/[^"#]*)', text)]
        outside = ("/api", "/admin", "/logout", "/static", "/help")
        waiting += [href for href in links if not href.startswith(outside) and "format=" not in href]
    assert problems == []
    assert len(kinds) > 40


def test_the_admin_complies_with_the_content_policy(open_page):
    page = open_page("admin", "/admin/")
    expect(page.get_by_role("link", name="Back to LCM").first).to_be_visible()
    page.goto("/admin/lcm/labletsession/")
    page.locator("#result_list tbody th a").first.click()
    page.locator(".field-owner .select2-selection").click()
    page.locator(".select2-search__field").fill("ccna-spring-02")
    expect(page.locator(".select2-results__option", has_text="ccna-spring-02")).to_be_visible()


def test_the_api_documentation_works_under_its_content_policy(open_page):
    page = open_page("viewer", "/api/docs")
    # The page renders only the operations in view.
    expect(page.get_by_text("/api/changes/", exact=True).first).to_be_visible()


def test_errors_have_pages_with_a_way_on_by_keyboard_and_on_a_phone(open_page, console_errors, plane):
    page = open_page("viewer", "/", **size())
    page.goto("/no/such/page")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    check(page)
    page.goto("/tokens/")
    expect(page.get_by_role("heading", name="Access denied")).to_be_visible()
    expect(page.get_by_text("You have the role Viewer.")).to_be_visible()
    check_in_both_themes(page)
    press(page, "main .actions a")
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    with damaged_change(plane) as key:
        response = page.goto(f"/changes/{key}/")
        assert response is not None
        assert response.status == 500
        expect(page.get_by_role("heading", name="Something went wrong")).to_be_visible()
        expect(page.locator("footer .id")).to_have_text(response.headers["x-request-id"])
        check_in_both_themes(page)
        tab_to(page, f"a[href='/changes/{key}/']")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Something went wrong")).to_have_count(0)
    page.goto("/sessions/")
    page.context.clear_cookies(name="lcm_csrf")
    page.get_by_role("button", name="Menu").press("Enter")
    page.get_by_role("button", name="Sign out").press("Enter")
    expect(page.get_by_role("heading", name="The form has expired")).to_be_visible()
    assert all("Failed to load resource" in text for text in console_errors)
    console_errors.clear()


@contextmanager
def damaged_change(plane) -> Iterator[int]:
    """Damage an entry of the change log in the database, so that its page fails; repair it afterwards."""
    path = plane.data_dir / "lcm.sqlite3"
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        query = "SELECT id, before FROM lcm_changelog ORDER BY id LIMIT 1"
        key, before = connection.execute(query).fetchone()
        change = "UPDATE lcm_changelog SET before = ? WHERE id = ?"
        connection.execute(change, ("[1]", key))
        try:
            yield key
        finally:
            connection.execute(change, (before, key))


def test_a_list_is_sorted_and_selected_on_a_phone_too(open_page):
    page = open_page("operator", "/sessions/", viewport={"width": 390, "height": 844})
    expect(page.get_by_role("link", name="Priority")).to_be_hidden()
    page.locator(".card-tools summary").click()
    page.locator(".card-tools").get_by_role("link", name="Priority").click()
    expect(page).to_have_url(re.compile("sort=-?priority"))
    page.get_by_role("checkbox", name="Select this page").check()
    selected = page.locator("tbody .select:checked").count()
    assert selected == page.locator("tbody .select").count()
    expect(page.locator("[data-selected-count]")).to_have_text(f"{selected} selected")
    page.locator("[name=all]").check()
    expect(page.locator("[data-selected-count]")).to_have_text(re.compile(r"^All [\d,]+ match"))
