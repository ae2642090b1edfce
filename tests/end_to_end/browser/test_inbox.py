"""Watch an object, see its event at the bell, and read it, by keyboard and on a phone."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.accessibility import low_contrast, overflowing_elements, serious_violations
from tests.end_to_end.browser.keyboard import tab_to
from tests.support.control_plane import wait_until
from tests.support.page_list import request_session

pytestmark = pytest.mark.xdist_group("browser")

PHONE = {"width": 390, "height": 844}


def wait_for_panels(page: Page) -> None:
    """A page that is left while htmx loads its panels reports an error."""
    page.wait_for_function("() => !document.querySelector('[hx-trigger^=load], .htmx-request')")


def read_all(page: Page) -> None:
    page.goto("/inbox/")
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("link", name="Inbox", exact=True).first).to_be_visible()


def test_a_watched_session_that_is_cancelled_comes_to_the_inbox_by_keyboard(open_page):
    page: Page = open_page("operator", "/")
    read_all(page)
    request_session(page, is_advance_booking=True)
    session = page.url
    wait_for_panels(page)
    tab_to(page, "#watch")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop watching")).to_be_visible()
    wait_for_panels(page)
    page.get_by_role("link", name="Cancel…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("The course was moved")
    page.get_by_role("dialog").get_by_role("button", name="Cancel session").click()
    expect(page.locator("#session")).to_have_attribute("data-status", "Cancelled")

    unread = "/api/inbox/?type=session.cancelled&read=false"
    wait_until(lambda: page.request.get(unread).json()["results"], "the event is routed", pause=0.5)
    wait_for_panels(page)
    page.reload()
    wait_for_panels(page)
    expect(page.get_by_role("link", name=re.compile(r"^Inbox, \d+ unread$"))).to_be_visible()
    tab_to(page, ".bell")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Inbox", exact=True)).to_be_visible()
    row = page.locator("tbody tr", has_text="Session cancelled").first
    expect(row).to_contain_text("Unread")
    expect(row).to_contain_text("You watch it")
    assert serious_violations(page) == []
    assert low_contrast(page, around=True) == []

    tab_to(page, "tbody tr:first-child a.name")
    page.keyboard.press("Enter")
    expect(page).to_have_url(session)
    wait_for_panels(page)
    page.goto("/inbox/")
    expect(row).to_contain_text("Read")
    expect(row).not_to_contain_text("Unread")


def test_entries_are_marked_and_watching_ends_on_a_phone(open_page):
    page: Page = open_page("viewer", "/inbox/", viewport=PHONE, reduced_motion="reduce")
    entry = page.locator("tbody tr").first
    expect(entry).to_be_visible()
    assert overflowing_elements(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    entry.locator("input.select").check()
    page.get_by_role("button", name="Mark as unread").click()
    expect(page.locator(".toast")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile(r"^Inbox, \d+ unread$"))).to_be_visible()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.get_by_role("link", name="Inbox", exact=True).first).to_be_visible()

    page.goto("/profile/notifications")
    assert serious_violations(page) == []
    stop = page.get_by_role("button", name=re.compile("^Stop watching definition"))
    count = stop.count()
    stop.first.click()
    expect(stop).to_have_count(count - 1)
    page.get_by_label("Session ended: inbox").check()
    page.get_by_role("button", name="Save notifications").click()
    expect(page.locator(".toast")).to_contain_text("Notifications saved.")
    expect(page.get_by_label("Session ended: inbox")).to_be_checked()
