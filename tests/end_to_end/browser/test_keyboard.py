"""Search suggestions, the command palette and keyboard shortcuts, by keyboard alone and on a phone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.keyboard import PHONE, WIDTHS, check, check_in_both_themes, size, tab_to
from tests.support.page_list import example_ids, request_session

pytestmark = pytest.mark.xdist_group("browser")


def option(page: Page, name: str | re.Pattern[str]):
    return page.get_by_role("option", name=name)


def test_search_is_the_second_tab_stop_and_suggests_while_typing(open_page):
    page = open_page("viewer", "/sessions/", reduced_motion="reduce")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    search = page.get_by_role("combobox", name="Search LCM")
    expect(search).to_be_focused()
    page.keyboard.type("vxlan")
    expect(option(page, re.compile("dc-vxlan-fabric"))).to_be_visible()
    expect(search).to_have_attribute("aria-expanded", "true")
    check_in_both_themes(page)
    page.keyboard.press("ArrowDown")
    expect(option(page, re.compile("dc-vxlan-fabric"))).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#suggestions")).to_be_hidden()
    expect(search).to_have_value("vxlan")
    page.keyboard.type("-")
    expect(option(page, re.compile("dc-vxlan-fabric"))).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="dc-vxlan-fabric")).to_be_visible()


def test_enter_without_a_chosen_suggestion_opens_the_search_page(open_page):
    page = open_page("viewer", "/")
    page.keyboard.press("/")
    page.keyboard.type("ccna")
    expect(option(page, re.compile("^All results"))).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/search\?q=ccna$"))


@WIDTHS
def test_the_palette_opens_a_session_and_runs_its_action_by_keyboard_alone(width, open_page):
    page = open_page("operator", "/", **size(width))
    request_session(page, is_advance_booking=True)
    path = page.url.partition("127.0.0.1")[2].partition("/")[2]
    short_id = page.locator("h1 .id").text_content()
    page.goto("/queue/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Search, or choose a page or an action")
    expect(field).to_be_focused()
    page.keyboard.type(short_id)
    expect(option(page, re.compile(f"^{short_id}")).first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/{path}$"))
    # htmx handles links once the page has loaded.
    page.wait_for_load_state()
    page.keyboard.press("Control+k")
    page.keyboard.type("canc")
    expect(option(page, "Cancel…")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    reason = page.get_by_role("dialog").get_by_label("Reason")
    expect(reason).to_be_focused()
    page.keyboard.type("No longer needed")
    for key in ("Tab", "Tab", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".badge", has_text="Cancelled")).to_be_visible()


def test_the_palette_keeps_the_focus_and_returns_it(open_page):
    page = open_page("admin", "/sessions/", reduced_motion="reduce")
    link = page.locator("#results .name").first
    link.focus()
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Command palette")
    expect(palette).to_be_visible()
    expect(option(page, re.compile("^People"))).to_be_visible()
    check_in_both_themes(page)
    for _ in range(8):
        page.keyboard.press("Tab")
        assert page.evaluate("!document.activeElement.closest('.shell')")
    page.locator("#palette-q").focus()
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    expect(link).to_be_focused()
    link.blur()
    page.keyboard.press("Control+k")
    expect(palette).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search LCM")).to_be_focused()


def test_pages_that_a_person_may_not_open_are_not_in_the_palette(open_page):
    page = open_page("viewer", "/")
    page.keyboard.press("Control+k")
    expect(option(page, re.compile("^Sessions"))).to_be_visible()
    expect(option(page, re.compile("^People"))).to_have_count(0)


def test_recent_objects_are_offered_until_someone_signs_out(open_page):
    page = open_page("viewer", "/")
    page.goto(f"/definitions/{example_ids(page)['definition']}/")
    name = page.locator(".crumbs [aria-current]").text_content()
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", name="Queue", exact=True)).to_be_visible()
    page.keyboard.press("Control+k")
    recent = page.get_by_role("group", name="Recent").get_by_role("option")
    expect(recent.first).to_contain_text(name)
    page.context.clear_cookies()
    page.goto("/login")
    assert page.evaluate("localStorage.getItem('lcm-recent')") is None


@WIDTHS
def test_rows_are_chosen_with_j_and_k_and_opened_with_enter(width, open_page):
    page = open_page("viewer", "/", **size(width))
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    rows = page.locator("#results tbody .name")
    page.keyboard.press("j")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(rows.nth(1)).to_be_focused()
    short_id = rows.nth(1).text_content()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Session {short_id}")).to_be_visible()


def test_shortcuts_do_nothing_while_typing(open_page):
    page = open_page("viewer", "/sessions/")
    field = page.locator("#filters input[type=search]")
    field.click()
    page.keyboard.type("gq?jk/")
    expect(field).to_have_value("gq?jk/")
    expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_question_mark_lists_the_shortcuts_and_they_can_be_switched_off(open_page):
    page = open_page("viewer", "/sessions/", reduced_motion="reduce")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    switch = dialog.get_by_role("checkbox")
    expect(switch).to_be_focused()
    expect(dialog.get_by_role("row", name="g then q Queue")).to_be_visible()
    check_in_both_themes(page)
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.keyboard.press("?")
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("heading", name="Sessions", exact=True)).to_be_visible()
    page.set_viewport_size(PHONE)
    page.goto("/shortcuts")
    check(page)
    tab_to(page, "main [type=checkbox]")
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("?")
    expect(dialog).to_be_visible()


def test_the_palette_opens_on_a_phone(open_page):
    page = open_page("viewer", "/", **size())
    page.get_by_role("link", name="Search", exact=True).tap()
    field = page.get_by_role("combobox", name="Search, or choose a page or an action")
    expect(field).to_be_focused()
    page.keyboard.type("vxlan")
    found = option(page, re.compile("dc-vxlan-fabric"))
    expect(found).to_be_visible()
    check_in_both_themes(page)
    box = found.bounding_box()
    assert box is not None
    assert box["height"] >= 40
    found.tap()
    expect(page.get_by_role("heading", name="dc-vxlan-fabric")).to_be_visible()


@WIDTHS
def test_sections_and_the_menu_of_a_definition_are_reached_by_keyboard(width, open_page):
    page = open_page("admin", "/", **size(width))
    page.goto(f"/definitions/{example_ids(page)['definition']}/")
    page.wait_for_function("() => !document.querySelector('[hx-trigger^=load], .htmx-request')")
    page.locator(".section-nav").get_by_role("link", name="Revisions").press("Enter")
    heading = page.locator("#revisions")
    expect(heading).to_be_in_viewport()
    nav, top = page.locator(".section-nav").bounding_box(), heading.bounding_box()
    assert nav is not None
    assert top is not None
    assert top["y"] >= nav["y"] + nav["height"], "the section is not below the navigation"
    more = page.locator(".page-head summary")
    more.press("Enter")
    delete = page.get_by_role("link", name="Delete…")
    expect(delete).to_be_visible()
    expect(delete).to_be_in_viewport(ratio=1)
    delete.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()


@pytest.mark.parametrize(
    "path", ["/", "/sessions/", "/definitions/{definition}/", "/pools/{pool}/", "/queue/"]
)
def test_every_page_prints_its_content_in_light_colours_without_controls(path, open_page):
    page = open_page("operator", "/", color_scheme="dark")
    page.goto(path.format(**example_ids(page)))
    page.wait_for_function("() => !document.querySelector('[hx-trigger^=load], .htmx-request')")
    page.emulate_media(media="print", color_scheme="dark")
    expect(page.locator("h1")).to_be_visible()
    assert page.locator("main table >> visible=true").count() > 0
    for hidden in (".sidebar", ".topbar", "button", ".filters", ".local-nav", ".menu"):
        assert page.locator(f"{hidden} >> visible=true").count() == 0, hidden
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(22, 25, 29)"
