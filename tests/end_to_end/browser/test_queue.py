"""The queue in a browser: wait reasons and remedies."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.support.page_list import request_session

pytestmark = pytest.mark.xdist_group("browser")


def test_a_session_shows_its_wait_reason_and_can_be_simulated(open_page):
    page = open_page("operator", "/sessions/")
    request_session(page, is_advance_booking=True)
    panel = page.locator("#panel-why")
    expect(panel).to_contain_text("Advance booking. It joins the queue")
    expect(panel).to_contain_text("It is placed as soon as it has joined the queue")
    expect(panel.get_by_role("link", name="All reasons by slot")).to_have_count(0)
    panel.get_by_role("link", name="Open dry run").click()
    page.get_by_label("Add slots").fill("1")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("status").filter(has_text="would be placed")).to_be_visible()


def test_the_queue_is_filtered_in_place_and_shows_the_last_ticks(open_page):
    page = open_page("operator", "/sessions/")
    request_session(page, is_advance_booking=True)
    page.get_by_role("link", name="Queue", exact=True).click()
    expect(page.locator("#results")).to_contain_text("in the queue")
    expect(page.get_by_role("heading", name="Last ticks")).to_be_visible()
    page.get_by_label("Search reservations in the queue").fill("no-such-name")
    expect(page.locator("#results")).not_to_contain_text("Not yet")
    expect(page).to_have_url(re.compile("q=no-such-name"))


def test_on_a_phone_the_queue_position_is_in_the_first_line(open_page):
    page = open_page("operator", "/sessions/")
    request_session(page, is_advance_booking=True)
    page.goto("/queue/")
    page.set_viewport_size({"width": 390, "height": 844})
    row = page.locator("tbody tr").first
    title, place = (row.locator(each).bounding_box() for each in (".card-title", ".card-corner"))
    assert title["x"] + title["width"] <= place["x"]
    assert place["x"] + place["width"] <= 390
    assert abs(title["y"] - place["y"]) < 12


def test_the_queue_reloads_unless_a_row_is_selected(open_page):
    page = open_page("operator", "/sessions/")
    request_session(page, is_advance_booking=True)
    page.clock.install()
    page.goto("/queue/")
    requests = []
    page.on("request", lambda request: requests.append(request) if request.url.endswith("/queue/?") else None)
    box = page.locator("tbody .select").first
    box.check()
    page.clock.run_for(11_000)
    assert requests == []
    box.uncheck()
    page.get_by_role("heading", name="Queue", exact=True).click()
    with page.expect_response(lambda response: response.url.endswith("/queue/?")):
        page.clock.run_for(11_000)
    expect(page.locator("#lead")).to_contain_text("Updated")
