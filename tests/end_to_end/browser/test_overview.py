"""The overview, search, jobs and profile in a browser."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, Request, expect

pytestmark = pytest.mark.xdist_group("browser")

UNSEEN = "window.unseen = true; Object.defineProperty(document, 'hidden', {get: () => window.unseen})"
POLLED = {"/", "/overview/ticks", "/overview/usage"}
LOADED_AND_POLLED = """() => {
    const part = document.createElement("div");
    part.id = "both";
    part.setAttribute("hx-get", "/overview/ticks");
    part.setAttribute("hx-trigger", "load, every 10s");
    part.setAttribute("hx-select", "h2");
    document.getElementById("main").append(part);
    htmx.process(part);
}"""


def has_requested(request: Request, path: str) -> bool:
    """Return whether htmx has requested exactly this URL."""
    return is_from_htmx(request) and urlsplit(request.url).path == path


def is_from_htmx(request: Request) -> bool:
    return request.headers.get("hx-request") == "true"


def htmx_requests(page: Page) -> list[str]:
    """Record htmx requests from now on; the list grows."""
    requests: list[str] = []
    page.on(
        "request",
        lambda request: requests.append(urlsplit(request.url).path) if is_from_htmx(request) else None,
    )
    return requests


def wait_for_reload(page: Page, panel: Locator, path: str, seconds: int) -> None:
    """Advance the clock until the panel has been replaced."""
    panel.evaluate("panel => panel.classList.add('old')")
    with page.expect_response(lambda response: has_requested(response.request, path)):
        page.clock.fast_forward(seconds * 1000)
    expect(panel).not_to_contain_class("old")


@pytest.fixture
def page_with_clock(plane, chromium, open_page):
    """`page_with_clock(person)`: a page with a controllable clock; its browser context is not reused."""
    contexts = []

    def make(person: str) -> Page:
        cookies = open_page(person).context.cookies()
        contexts.append(chromium.new_context(base_url=f"http://{plane.address}"))
        contexts[-1].add_cookies(cookies)
        page = contexts[-1].new_page()
        page.clock.install()
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def viewer_page_with_clock(page_with_clock) -> Page:
    return page_with_clock("viewer")


def test_the_overview_lists_items_that_need_attention_with_links(open_page):
    page = open_page("admin")
    expect(page.locator(".lead").first).to_contain_text("need")
    line = page.locator(".row-link", has_text="to review")
    expect(line).to_be_visible()
    expect(page.locator("#panel-usage .chart")).to_be_visible()
    line.click()
    expect(page).to_have_url(re.compile("needs_review=true"))


def test_the_overview_updates_itself(open_page):
    page = open_page("viewer")
    updated = page.locator("#live > header .updated time")
    before = updated.get_attribute("datetime")
    line = page.locator(".row-link").first
    line.focus()
    with page.expect_response(lambda response: has_requested(response.request, "/")):
        pass
    expect(updated).not_to_have_attribute("datetime", before)
    expect(updated).to_have_text("Updated just now")
    expect(line).to_be_focused()


@pytest.mark.parametrize(("name", "seconds"), [("ticks", 10), ("usage", 60)])
def test_lazy_panels_update_too(viewer_page_with_clock, name, seconds):
    viewer_page_with_clock.goto("/")
    panel = viewer_page_with_clock.locator(f"#panel-{name}")
    expect(panel.locator(".updated")).to_contain_text("Updated")
    wait_for_reload(viewer_page_with_clock, panel, f"/overview/{name}", seconds)
    expect(panel.locator(".updated")).to_have_text("Updated just now")


def test_a_part_that_fails_to_reload_is_marked_as_stale_without_a_toast(viewer_page_with_clock):
    viewer_page_with_clock.goto("/")
    updated = viewer_page_with_clock.locator("#live > header .updated")
    viewer_page_with_clock.route("**/*", lambda route: route.abort())
    viewer_page_with_clock.clock.run_for(8_000)
    expect(updated).to_have_text("Updated 8 s ago")
    viewer_page_with_clock.clock.run_for(90_000)
    expect(updated).to_have_text("Stale, updated 1 min 38 s ago")
    expect(updated).to_contain_class("is-stale")
    expect(viewer_page_with_clock.locator(".toast")).to_have_count(0)


def test_a_button_keeps_the_focus_when_its_part_reloads(page_with_clock):
    page = page_with_clock("operator")
    page.goto("/observers/")
    button = page.locator("button", has_text="Run now").nth(2)
    action = button.evaluate("each => each.form.action")
    button.focus()
    wait_for_reload(page, page.locator("#live"), "/observers/board", 10)
    assert page.evaluate("document.activeElement.form.action") == action


def test_nothing_reloads_behind_a_dialog(viewer_page_with_clock):
    viewer_page_with_clock.goto("/")
    requests = htmx_requests(viewer_page_with_clock)
    viewer_page_with_clock.evaluate("document.getElementById('dialog').showModal()")
    viewer_page_with_clock.clock.fast_forward(20_000)
    assert requests == []
    viewer_page_with_clock.evaluate("document.getElementById('dialog').close()")
    with viewer_page_with_clock.expect_response(lambda response: has_requested(response.request, "/")):
        viewer_page_with_clock.clock.fast_forward(20_000)


def test_lazy_panels_stay_when_the_live_part_reloads(viewer_page_with_clock):
    viewer_page_with_clock.goto("/")
    panel = viewer_page_with_clock.locator("#panel-ticks")
    expect(panel.locator(".updated")).to_contain_text("Updated")
    panel.evaluate("panel => panel.classList.add('old')")
    requests = htmx_requests(viewer_page_with_clock)
    wait_for_reload(viewer_page_with_clock, viewer_page_with_clock.locator("#live"), "/", 7)
    expect(panel).to_contain_class("old")
    wait_for_reload(viewer_page_with_clock, panel, "/overview/ticks", 10)
    assert requests.count("/overview/ticks") == 1


def test_open_details_stay_open_when_their_panel_reloads(viewer_page_with_clock):
    viewer_page_with_clock.goto("/")
    panel = viewer_page_with_clock.locator("#panel-ticks")
    panel.locator("summary").click()
    wait_for_reload(viewer_page_with_clock, panel, "/overview/ticks", 10)
    expect(panel.locator("details")).to_have_attribute("open", "")


def test_panels_load_in_a_hidden_tab_and_polling_pauses(viewer_page_with_clock):
    viewer_page_with_clock.add_init_script(UNSEEN)
    viewer_page_with_clock.goto("/")
    expect(viewer_page_with_clock.locator("#panel-ticks .updated")).to_be_visible()
    expect(viewer_page_with_clock.locator("#panel-usage .updated")).to_be_visible()
    requests = htmx_requests(viewer_page_with_clock)
    for _ in range(3):
        viewer_page_with_clock.clock.fast_forward(61_000)
    assert requests == []
    viewer_page_with_clock.evaluate("window.unseen = false")
    for _ in range(100):
        viewer_page_with_clock.clock.fast_forward(61_000)
        viewer_page_with_clock.wait_for_timeout(100)
        if set(requests) >= POLLED:
            break
    assert set(requests) >= POLLED


def test_a_polled_panel_loads_once_in_a_hidden_tab(viewer_page_with_clock):
    viewer_page_with_clock.add_init_script(UNSEEN)
    viewer_page_with_clock.goto("/profile")
    requests = htmx_requests(viewer_page_with_clock)
    viewer_page_with_clock.evaluate(LOADED_AND_POLLED)
    expect(viewer_page_with_clock.locator("#both")).to_contain_text("Tick duration")
    viewer_page_with_clock.clock.fast_forward(11_000)
    assert requests == ["/overview/ticks"]
    viewer_page_with_clock.evaluate("window.unseen = false")
    with viewer_page_with_clock.expect_response("**/overview/ticks"):
        viewer_page_with_clock.clock.fast_forward(11_000)


def test_the_global_search_finds_a_lab_from_any_page(open_page):
    page = open_page("viewer", "/projects/")
    page.keyboard.press("/")
    page.keyboard.type("soc-range")
    page.keyboard.press("Enter")
    page.get_by_role("link", name=re.compile("soc-range-firewall")).click()
    expect(page.get_by_role("heading", name=re.compile("soc-range-firewall"))).to_be_visible()


def test_the_search_updates_while_typing(open_page):
    page = open_page("viewer", "/search")
    page.get_by_label("Search for").fill("academy")
    expect(page.locator("#found")).to_contain_text("academy / ccna-spring")
    expect(page).to_have_url(re.compile("q=academy"))


def test_times_are_shown_in_the_time_zone_of_the_profile(open_page):
    page = open_page("viewer", "/profile")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_role("button", name="Save profile").click()
    expect(page.locator(".toast")).to_contain_text("Profile saved")
    page.goto("/changes/")
    expect(page.locator("td time").first).to_have_attribute("title", re.compile("JST"))
    page.goto("/profile")
    page.get_by_label("Time zone").select_option("")
    page.get_by_role("button", name="Save profile").click()
    expect(page.locator(".toast")).to_contain_text("Profile saved")


def test_an_admin_assigns_and_removes_a_role_in_a_dialog(open_page):
    page = open_page("admin", "/people/?q=ccnp-core-01")
    for role, role_text, label in (("Viewer", "the role Viewer", "Viewer"), ("None", "no role", "none")):
        page.get_by_role("link", name="Role…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Role").select_option(label=role)
        dialog.get_by_label("Reason").fill("Helps in the course")
        dialog.get_by_role("button", name="Save role").click()
        expect(page.locator(".toast")).to_contain_text(f"now has {role_text}")
        page.goto("/people/?q=ccnp-core-01")
        expect(page.locator("td[data-label=Role]")).to_have_text(label)


def test_usage_is_rebuilt_by_a_job_that_shows_its_progress(open_page):
    page = open_page("admin", "/observers/usage-record/")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator(".toast")).to_be_visible()
    page.goto("/fair-share/rebuild")
    page.get_by_label("Reason").fill("After a restore")
    page.get_by_role("button", name="Rebuild usage").click()
    expect(page.get_by_role("heading", name=re.compile("Rebuild usage of"))).to_be_visible()
    expect(page.locator(".badge", has_text="Done")).to_be_visible()
    expect(page.locator(".lead")).to_contain_text("repaired")
    page.goto("/jobs/")
    expect(page.get_by_role("link", name=re.compile("Rebuild usage of")).first).to_be_visible()
