"""The overview, the search, jobs and the profile, as people use them."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.bench.visiting import places

pytestmark = pytest.mark.xdist_group("browser")

ASKED = """() => [
    ...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource"),
].map(each => ({name: each.name, size: each.encodedBodySize, origin: new URL(each.name).origin}))"""


def test_the_overview_tells_what_needs_someone_and_leads_there(open_page):
    page = open_page("admin")
    expect(page.locator(".lead").first).to_contain_text("need")
    line = page.locator(".row-link", has_text="to review")
    expect(line).to_be_visible()
    expect(page.locator("#panel-usage .chart")).to_be_visible()
    line.click()
    expect(page).to_have_url(re.compile("needs_review=true"))


def test_the_overview_is_fresh_by_itself(open_page):
    page = open_page("viewer")
    with page.expect_response(lambda answer: answer.request.headers.get("hx-request") == "true"):
        pass


def test_a_lab_is_found_from_anywhere(open_page):
    page = open_page("viewer", "/projects/")
    page.keyboard.press("/")
    page.keyboard.type("soc-range")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=re.compile("soc-range-firewall")).click()
    expect(page.get_by_role("heading", name=re.compile("soc-range-firewall"))).to_be_visible()


def test_the_search_finds_while_typing(open_page):
    page = open_page("viewer", "/search")
    page.get_by_label("Search for").fill("academy")
    expect(page.locator("#found")).to_contain_text("academy / ccna-spring")
    expect(page).to_have_url(re.compile("q=academy"))


def test_times_are_shown_in_the_zone_a_person_chose(open_page):
    page = open_page("viewer", "/profile")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_role("button", name="Save profile").click()
    expect(page.locator(".toast")).to_contain_text("Your profile is saved")
    page.goto("/changes/")
    expect(page.locator("td time").first).to_have_attribute("title", re.compile("JST"))
    page.goto("/profile")
    page.get_by_label("Time zone").select_option("")
    page.get_by_role("button", name="Save profile").click()


def test_an_admin_gives_and_takes_a_role_in_a_dialog(open_page):
    page = open_page("admin", "/people/?q=ccnp-core-01")
    for role, word in (("Viewer", "Viewer"), ("None", "none")):
        page.get_by_role("link", name="Role…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Role").select_option(label=role)
        dialog.get_by_label("Reason").fill("Helps in the course")
        dialog.get_by_role("button", name="Save role").click()
        expect(page.locator(".toast")).to_contain_text(f"has the role {role} now")
        page.goto("/people/?q=ccnp-core-01")
        expect(page.locator("td[data-label=Role]")).to_have_text(word)


def test_usage_is_rebuilt_by_a_job_that_shows_its_progress(open_page):
    page = open_page("admin", "/fair-share/rebuild")
    page.get_by_label("Reason").fill("After a restore")
    page.get_by_role("button", name="Rebuild usage").click()
    expect(page.get_by_role("heading", name=re.compile("Rebuild usage of"))).to_be_visible()
    expect(page.locator(".badge", has_text="Done")).to_be_visible()
    expect(page.locator(".lead")).to_contain_text("mended")
    page.goto("/jobs/")
    expect(page.get_by_role("link", name=re.compile("Rebuild usage of")).first).to_be_visible()


def test_main_pages_are_light_and_ask_for_few_files_of_our_own(open_page):
    """One style sheet, not one after the other; the rest is a script or a panel that comes later."""
    page = open_page("viewer")
    known = places(page)
    for path in ("/", "/sessions/", "/definitions/{definition}/", "/slots/{slot}/"):
        page.goto(path.format(**known))
        expect(page.locator("[hx-trigger=load]")).to_have_count(0)
        asked = page.evaluate(ASKED)
        assert {each["origin"] for each in asked} == {page.evaluate("location.origin")}, path
        assert 10_000 < sum(each["size"] for each in asked) < 150_000, path
        assert sum(each["name"].endswith(".css") for each in asked) == 1, path
        assert len(asked) < 12, path
