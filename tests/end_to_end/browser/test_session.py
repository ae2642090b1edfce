"""Tasks on the page of a session: connect to it and follow its start, by keyboard and on a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.keyboard import WIDTHS, check_in_both_themes, press, size, tab_to
from tests.support.page_list import example_ids, request_session

pytestmark = pytest.mark.xdist_group("browser")

CLIPBOARD = {"permissions": ["clipboard-read", "clipboard-write"]}


@pytest.fixture
def open_running(open_page):
    """`open_running()`: the page of a running session; it takes the options of `open_page`."""

    def open_it(person="viewer", **options) -> Page:
        page: Page = open_page(person, "/", **options)
        page.clock.install()
        page.goto(f"/sessions/{example_ids(page)['session']}/")
        return page

    return open_it


def wait_for_refresh(page: Page, *, seconds: int = 0) -> None:
    """Wait until the page has refreshed itself; advance its clock by this time."""
    path = page.url.partition("#")[0]
    with page.expect_response(
        lambda response: response.url == path and "hx-request" in response.request.headers
    ):
        if seconds:
            page.clock.run_for(seconds * 1000)
    page.wait_for_function("() => !document.querySelector('.htmx-request, .htmx-settling')")


@WIDTHS
def test_addresses_are_found_copied_and_printed_by_keyboard(width, open_running):
    page = open_running(**size(width), **CLIPBOARD)
    expect(page.locator("#session section").first).to_have_attribute("aria-labelledby", "access")
    tab_to(page, "#panel-access .addresses a")
    address = page.evaluate("document.activeElement.href")
    assert re.match(r"(telnet|ssh|vnc|https?)://[^/:]+:\d+", address)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_have_text(f"Copied {address}")
    assert page.evaluate("navigator.clipboard.readText()") == address
    assert page.evaluate("document.activeElement.dataset.copy") == address
    tab_to(page, "[data-copy-name='all addresses']", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_have_text("Copied all addresses")
    assert address in page.evaluate("navigator.clipboard.readText()")
    press(page, "a[href$='/access']")
    expect(page.get_by_role("heading", name=re.compile("how to connect"))).to_be_visible()
    expect(page.locator(f".addresses a[href='{address}']")).to_be_visible()
    page.go_back()
    check_in_both_themes(page)


@WIDTHS
def test_a_node_of_the_topology_leads_to_its_row_by_keyboard(width, open_running):
    page = open_running(**size(width))
    whole = page.locator("[data-topology] > svg").get_attribute("viewBox")
    tab_to(page, "[data-topology] > svg")
    page.keyboard.press("+")
    page.keyboard.press("ArrowRight")
    zoomed = page.locator("[data-topology] > svg").get_attribute("viewBox")
    assert zoomed != whole
    tab_to(page, ".node-link")
    label = page.locator(":focus text").text_content() or "unknown"
    state = page.locator(":focus").get_attribute("aria-label")
    assert state is not None
    assert state.startswith(label)
    # In CML, if a survey has found the lab already; else in LCM.
    assert re.search(": (Running|Queued|Started|Booted)", state)
    page.keyboard.press("Enter")
    expect(page.locator("tr:target .card-title")).to_contain_text(label)
    wait_for_refresh(page, seconds=6)
    assert page.locator("[data-topology] > svg").get_attribute("viewBox") == zoomed
    page.get_by_role("button", name="Whole topology").press("Enter")
    assert page.locator("[data-topology] > svg").get_attribute("viewBox") == "0.0 0.0 420.0 260.0"


def test_a_refresh_keeps_the_focus_the_live_panel_and_marked_text(open_running):
    # Without Prometheus only Admins see the live panel.
    page = open_running("admin")
    page.locator("#panel-live h2").wait_for()
    page.evaluate("document.getElementById('panel-live').dataset.mine = 'yes'")
    page.locator("#panel-access .addresses a").first.focus()
    focused = page.evaluate("document.activeElement.href")
    wait_for_refresh(page)
    assert page.evaluate("document.activeElement.href") == focused
    expect(page.locator("#panel-live[data-mine]")).to_have_count(1)
    page.locator("#panel-access .addresses a").first.evaluate(
        "link => getSelection().selectAllChildren(link)"
    )
    page.evaluate("document.getElementById('session').dataset.mine = 'yes'")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.clock.run_for(11_000)
    assert page.url not in requests
    expect(page.locator("#session[data-mine]")).to_have_count(1)


def test_the_parts_of_a_starting_session_do_not_contradict_each_other(open_page):
    page = open_page("operator", "/")
    request_session(page)
    for _ in range(4):
        wait_for_refresh(page)
        status, badge, reasons, message = page.evaluate(
            "() => [document.getElementById('session').dataset.status,"
            " document.querySelector('h1 + .badge').textContent, !!document.querySelector('#panel-why'),"
            " document.getElementById('panel-access').textContent]"
        )
        assert badge == status
        assert reasons == (status == "Pending")
        assert ("when the session has a slot" in message) == (status == "Pending")


def test_the_addresses_are_links_without_javascript_and_on_paper(open_running):
    page = open_running(java_script_enabled=False)
    expect(page.locator("#panel-access .addresses a").first).to_be_visible()
    expect(page.get_by_role("button", name="Copy all")).to_be_hidden()
    page.get_by_role("link", name="Print view").click()
    expect(page.get_by_role("heading", name=re.compile("how to connect"))).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator(".sidebar")).to_be_hidden()
    expect(page.locator(".addresses a").first).to_be_visible()
