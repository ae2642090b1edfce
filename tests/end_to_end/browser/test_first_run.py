"""The checklist of an empty installation leads to the first session, by keyboard on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.browser.keyboard import check_in_both_themes, press, size, tab_to, type_into
from tests.end_to_end.browser.test_journeys import TOPOLOGY
from tests.support.control_plane import ControlPlane, control_plane, free_address, wait_until
from tests.support.page_list import log_in

pytestmark = pytest.mark.xdist_group("browser")

PASSWORD = "a-long-first-password"
NEXT = ".first-steps > [aria-current] > div > a"


@pytest.fixture
def empty_plane(tmp_path) -> Iterator[ControlPlane]:
    """LCM without the demo, with one Admin; its workers are ready at once."""
    settings = {"RECONCILE_INTERVAL": "1", "API_RATE": "10000/min"}
    with control_plane(tmp_path / "data", free_address(), **settings) as plane:
        account = {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
        plane.manage("createsuperuser", "--noinput", "--username=ada", "--email=ada@example.org", **account)
        plane.start()
        wait_until(lambda: plane.status("/login") == 200, "the sign-in page", details=lambda: plane.output)
        yield plane


@pytest.fixture
def page(empty_plane: ControlPlane, chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context(base_url=f"http://{empty_plane.address}", **size())
    page = context.new_page()
    log_in(page, "ada", PASSWORD)
    yield page
    context.close()


def start_step(page: Page, title: str) -> None:
    """Follow the link of the next step of the checklist."""
    page.goto("/")
    expect(page.locator(NEXT)).to_have_text(title)
    press(page, NEXT)


def test_the_checklist_leads_to_the_first_session(page: Page) -> None:
    helps = page.locator(".first-steps > li > a")
    expect(helps).to_have_count(7)
    addresses = {str(each.get_attribute("href")) for each in helps.all()}
    assert [each for each in addresses if not page.request.get(each).ok] == []
    check_in_both_themes(page)

    start_step(page, "Create a domain")
    type_into(page, "name", "academy")
    press(page, "main [type=submit]")
    start_step(page, "Create a project and add a member")
    tab_to(page, "[name=domain]")
    page.keyboard.type("academy")
    type_into(page, "name", "ccna")
    press(page, "main [type=submit]")
    type_into(page, "person", "ada")
    press(page, ".inline-form [type=submit]")
    expect(page.locator(".member", has_text="ada")).to_be_visible()
    start_step(page, "Create a pool")
    type_into(page, "name", "cml-eu")
    type_into(page, "min_slots", "1")
    for setting in ("launch_seconds", "boot_seconds"):
        type_into(page, f"runtime_settings-{setting}", "0")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Pool cml-eu created.")).to_be_visible()
    wait_until(lambda: "Ready" in page.request.get("/slots/").text().partition("<tbody>")[2], "a ready slot")
    start_step(page, "Create a token for the controller")
    type_into(page, "name", "eu-1")
    tab_to(page, "main [type=checkbox]")
    page.keyboard.press("Space")
    press(page, "main [type=submit]")
    expect(page.get_by_label("Key")).to_have_value(re.compile("^lcm_"))
    start_step(page, "Import a definition")
    tab_to(page, "main textarea")
    page.keyboard.insert_text(TOPOLOGY)
    press(page, "main [type=submit]")
    press(page, "main [type=submit]")
    start_step(page, "Request a session")
    for name, text in (("definition", "ospf"), ("project", "ccna")):
        type_into(page, name, text)
        page.locator(f"#id_{name}_list [role=option]").wait_for()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator(f"[name={name}]")).to_have_value(re.compile(" "))
    press(page, "main button[type=submit]")
    expect(page.get_by_role("heading", name=re.compile("^Session "))).to_be_visible()
    page.goto("/")
    expect(page.locator(".first-steps")).to_have_count(0)
