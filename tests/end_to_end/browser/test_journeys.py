"""User journeys in a browser."""

from __future__ import annotations

import csv
import json
import re
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from lcm.cml.topology.parser import parse_topology
from tests.end_to_end.browser.keyboard import WIDTHS, check, press, size, tab_to, type_into
from tests.support.page_list import request_session

pytestmark = pytest.mark.xdist_group("browser")

TOPOLOGIES = Path(__file__).parents[3] / "lcm" / "demo" / "topologies"
TOPOLOGY = (TOPOLOGIES / "ccna-ospf-basics.yaml").read_text()


def fresh_name() -> str:
    return f"lab-{uuid.uuid4().hex[:8]}"


def import_definition(page: Page, name: str) -> None:
    page.goto("/definitions/import")
    page.get_by_label("Or paste the topology").fill(TOPOLOGY)
    page.get_by_role("button", name="Read topology").click()
    expect(page.get_by_text("Check the imported values, then save.")).to_be_visible()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Save definition").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()


def test_a_wrong_password_is_reported_in_the_form(open_page, console_errors):
    page = open_page(None, "/sessions/")
    expect(page).to_have_url(re.compile(r"/login\?next=/sessions/"))
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Wrong user name or password")


def test_login_redirects_to_the_requested_page(open_page):
    page = open_page(None, "/definitions/?q=ospf")
    page.get_by_label("Name").fill("viewer")
    page.get_by_label("Password").fill("demo-viewer")
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(re.compile(r"/definitions/\?q=ospf"))
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_import_a_definition(open_page):
    page = open_page("admin")
    name = fresh_name()
    import_definition(page, name)
    expect(page.get_by_text(f"{name} v1.0 imported.")).to_be_visible()
    expect(page.get_by_role("img", name="Topology: 5 nodes, 5 links")).to_be_visible()
    expect(page.get_by_role("cell", name="R1_serial")).to_be_visible()
    requirements = parse_topology(TOPOLOGY).requirements
    lead = page.locator(".page-head .lead").first
    expect(lead).to_contain_text(f"Requires {requirements.cpu_cores.normalize()} cores")


def test_an_invalid_topology_is_rejected_with_the_locations(open_page, console_errors):
    page = open_page("admin", "/definitions/import")
    page.get_by_label("Or paste the topology").fill(
        "nodes:\n- {id: a, label: R1}\n- {id: a, label: R1, node_definition: iosv}"
    )
    page.get_by_role("button", name="Read topology").click()
    for location in ("nodes[0].node_definition", "nodes[1].label"):
        expect(page.locator(".field-error", has_text=location)).to_be_visible()
    console_errors.clear()  # Chromium reports the 422 of the form as a failed resource


def wait_until_stable(page: Page) -> None:
    """Wait until the session stops changing: a tick during an open dialog would cause a conflict."""
    for _ in range(20):
        if page.locator(".badge", has_text="Scheduled").count():
            return
        page.wait_for_timeout(500)
        page.reload()


def test_request_a_session_and_cancel_it(open_page):
    page = open_page("operator")
    request_session(page)
    wait_until_stable(page)
    page.get_by_role("link", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("Reason")).to_be_focused()
    dialog.get_by_label("Reason").fill("Requested the wrong lab")
    dialog.get_by_role("button", name="Cancel session").click()
    expect(page.locator(".badge", has_text="Cancelled")).to_be_visible()
    expect(page.locator(".steps", has_text="Requested the wrong lab").first).to_be_visible()


def test_a_closed_dialog_restores_the_focus(open_page):
    page = open_page("operator")
    request_session(page)
    button = page.get_by_role("link", name="Extend…")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(button).to_be_focused()


def test_an_error_of_a_service_is_shown_in_the_dialog(open_page, console_errors):
    page = open_page("operator")
    request_session(page)
    page.get_by_role("link", name="Extend…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("New end").fill("2020-01-01T00:00")
    dialog.get_by_role("button", name="Extend session").click()
    expect(dialog.locator(".field-error")).to_contain_text("must be later")
    console_errors.clear()  # Chromium reports the 422 of the form as a failed resource


@WIDTHS
def test_a_session_is_requested_with_the_keyboard_alone(width, open_page):
    page = open_page("operator", "/sessions/", **size(width))
    keyboard = page.keyboard
    press(page, "a[href='/sessions/new']")
    definition = page.get_by_role("combobox", name="Definition")
    tab_to(page, "[name=definition]")
    keyboard.type("vxlan")
    option = page.get_by_role("option", name=re.compile("^dc-vxlan-fabric"))
    expect(option).to_have_count(1)
    expect(definition).to_have_attribute("aria-expanded", "true")
    keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "true")
    expect(definition).to_have_attribute("aria-activedescendant", option.get_attribute("id") or "")
    check(page)
    keyboard.press("Enter")
    expect(definition).to_have_value(re.compile("^dc-vxlan-fabric v"))
    expect(option).to_be_hidden()
    expect(page.locator("#request-preview .notice")).to_contain_text("In the pool")
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    keyboard.press("Escape")
    expect(page.get_by_role("option").first).to_be_hidden()
    keyboard.type("ccna-spring")
    keyboard.press("ArrowUp")
    expect(page.locator("#id_project_list [aria-selected=true]")).to_be_visible()
    keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Project")).to_have_value("academy / ccna-spring")
    type_into(page, "owner", "ccna-spring-01")
    ends = page.get_by_label("Ends")
    expect(ends).to_be_hidden()
    tab_to(page, "[name=duration]")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowRight")
    expect(page.get_by_role("radio", name="Custom")).to_be_checked()
    expect(ends).to_be_visible()
    keyboard.press("ArrowLeft")
    expect(page.get_by_role("radio", name="4 hours")).to_be_checked()
    check(page)
    press(page, "main button[type=submit]")
    expect(page.get_by_role("heading", name=re.compile("^Session "))).to_be_visible()


def test_an_impossible_requirement_is_named_before_it_is_saved_and_requested(open_page, console_errors):
    page = open_page("admin", "/definitions/", **size())
    name = fresh_name()
    import_definition(page, name)
    tab_to(page, "a[href$='/revise']")
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()
    type_into(page, "cpu_cores", "900")
    type_into(page, "reason", "A larger lab")
    tab_to(page, "dialog [type=submit]")
    page.keyboard.press("Enter")
    problem = re.compile(r"No cml pool has a slot with 900 cores; the largest has [\d,]+\.")
    expect(page.locator("dialog .field-error")).to_have_text(problem)
    check(page)
    tab_to(page, "[name=confirmed]")
    page.keyboard.press("Space")
    press(page, "dialog [type=submit]")
    expect(page.locator(".lead").first).to_contain_text("Requires 900 cores")

    page.goto("/sessions/new")
    type_into(page, "definition", f"{name} v1.0")
    page.keyboard.press("Tab")
    preview = page.locator("#request-preview .notice")
    expect(preview).to_contain_text("It never fits.")
    expect(preview).to_contain_text(problem)
    check(page)
    console_errors.clear()  # Chromium reports the 422 of the form as a failed resource


def test_a_dialog_stays_open_when_its_suggestions_close(open_page):
    page = open_page("admin", "/projects/")
    page.locator("tbody a").first.click()
    person = page.get_by_role("combobox", name="User name")
    person.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    page.get_by_role("option").first.click()
    expect(person).not_to_have_value("")


def test_filter_search_sort_and_page(open_page):
    page = open_page("viewer", "/sessions/")
    page.locator("summary", has_text="Status").click()
    page.get_by_role("checkbox", name="Terminated").check()
    expect(page.locator(".chip")).to_have_text("Status: Terminated")
    expect(page).to_have_url(re.compile("status=TERMINATED"))
    expect(page.locator("tbody .status:not(:has-text('Terminated'))")).to_have_count(0)
    first = page.locator("tbody tr .id").first.inner_text()
    page.get_by_role("link", name="Next", exact=True).click()
    expect(page.locator("[data-count]")).to_contain_text("26–")
    expect(page.locator("tbody tr .id").first).not_to_have_text(first)
    page.get_by_role("link", name="Previous", exact=True).click()
    expect(page.locator("tbody tr .id").first).to_have_text(first)
    page.get_by_role("link", name="Timeslot").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Timeslot")
    page.get_by_role("link", name="50 rows per page").click()
    expect(page).to_have_url(re.compile("size=50"))
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Timeslot")
    expect(page.locator("tbody tr").nth(25)).to_be_visible()
    page.get_by_role("link", name="Remove filter Status: Terminated").click()
    expect(page.locator(".chip")).to_have_count(0)
    page.get_by_label("Search sessions").fill("bgp")
    expect(page.locator("tbody tr", has_not_text="ccnp-bgp-policy")).to_have_count(0)
    page.go_back()
    expect(page.locator("tbody tr", has_not_text="ccnp-bgp-policy")).not_to_have_count(0)


def test_an_empty_result_explains_what_to_do(open_page):
    page = open_page("viewer", "/sessions/?q=no-such-thing")
    expect(page.get_by_role("heading", name="No session matches")).to_be_visible()
    page.get_by_role("link", name="Clear filters").click()
    expect(page.locator("tbody tr")).not_to_have_count(0)


def test_bulk_cancel_of_selected_rows(open_page):
    page = open_page("admin")
    name = fresh_name()
    import_definition(page, name)
    for _ in range(3):
        request_session(page, name)
    page.goto(f"/sessions/?q={name}")
    expect(page.locator(".bulk-bar")).to_be_hidden()
    page.get_by_role("checkbox", name="Select this page").check()
    expect(page.locator("[data-selected-count]")).to_have_text("3 selected")
    page.locator("tbody .select").first.uncheck()
    page.locator(".bulk-bar").get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel 2 sessions?")
    dialog.get_by_label("Reason").fill("Course moved")
    dialog.get_by_role("button", name="Cancel 2 sessions").click()
    expect(page.locator(".toast")).to_contain_text("2 sessions cancelled")
    page.goto(f"/sessions/?q={name}&status=CANCELLED")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_bulk_actions_can_include_all_matching_rows(open_page):
    page = open_page("operator", "/sessions/?status=TERMINATED")
    page.locator("tbody .select").first.check()
    page.get_by_label(re.compile("All .* matches")).check()
    page.locator(".bulk-bar").get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(re.compile(r"None of the [\d,]+ sessions can be cancelled"))
    expect(dialog.get_by_role("button")).to_have_text(["Close"])
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_the_change_log_is_filtered_by_person_and_time(open_page):
    page = open_page("admin")
    name = fresh_name()
    import_definition(page, name)
    page.goto("/changes/")
    page.locator("summary", has_text="Person").click()
    page.get_by_role("textbox", name="Person").fill("admin")
    page.get_by_role("textbox", name="Person").press("Enter")
    expect(page.locator(".chip")).to_have_text("Person: admin")
    page.locator("summary", has_text="Time").click()
    page.get_by_role("textbox", name="From").fill("2020-01-01T08:30")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator(".chip")).to_have_text(["Person: admin", "Time, from: 2020-01-01 08:30 UTC"])
    expect(page.locator("tbody tr").first).to_contain_text(name)


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_export_the_rows_of_a_list(kind, open_page):
    page = open_page("viewer", "/sessions/?status=TERMINATED")
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name=kind.upper()).click()
    text = Path(download.value.path()).read_text()
    rows = list(csv.DictReader(text.splitlines())) if kind == "csv" else json.loads(text)
    assert len(rows) >= 38
    key = "Status" if kind == "csv" else "status"
    assert {row[key] for row in rows} == {"Terminated"}


def test_revise_a_definition_and_revert_it(open_page):
    page = open_page("admin")
    name = fresh_name()
    import_definition(page, name)
    page.get_by_role("link", name="Revise…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("CPU (cores)").fill("9")
    dialog.get_by_label("Reason").fill("Measured more")
    dialog.get_by_role("button", name="Apply revision").click()
    expect(page.locator(".lead").first).to_contain_text("Requires 9 cores")
    page.get_by_role("link", name="Revert…").click()
    dialog.get_by_label("Reason").fill("It was a mistake")
    dialog.get_by_role("button", name="Revert to revision 1").click()
    expect(page.locator(".lead").first).to_contain_text("Revision 3")


def test_create_a_project_with_a_member(open_page):
    page = open_page("admin", "/projects/new")
    name = fresh_name()
    page.get_by_label("Domain").select_option("research")
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create project").click()
    page.get_by_label("User name").fill("viewer")
    page.get_by_role("button", name="Add").click()
    expect(page.locator(".member", has_text="viewer")).to_be_visible()
    page.get_by_role("link", name="Remove viewer…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("Joined by mistake")
    page.get_by_role("button", name="Remove member").click()
    expect(page.locator(".member", has_text="No members yet")).to_be_visible()


def test_a_token_is_shown_once(open_page):
    page = open_page("admin", "/tokens/new")
    name = fresh_name()
    page.get_by_label("Name").fill(name)
    page.get_by_label("cml-eu", exact=True).check()
    page.get_by_role("button", name="Create token").click()
    key = page.get_by_label("Key").input_value()
    assert key.startswith("lcm_")
    response = page.request.get("/api/lablet-sessions/", headers={"Authorization": f"Bearer {key}"})
    assert response.ok
    assert {row["pool"] for row in response.json()["results"]} == {"cml-eu"}
    page.get_by_role("link", name="Done").click()
    assert key not in page.content()
    page.get_by_role("row", name=name).get_by_role("link", name="Revoke…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("Not needed")
    page.get_by_role("button", name="Revoke token").click()
    expect(page.get_by_role("row", name=name)).to_contain_text("Revoked")
    response = page.request.get("/api/lablet-sessions/", headers={"Authorization": f"Bearer {key}"})
    assert response.status == 401


def test_a_row_stays_selected_after_a_search(open_page):
    page = open_page("operator", "/sessions/")
    page.get_by_label("Search sessions").fill("ccna")
    expect(page).to_have_url(re.compile("q=ccna"))
    page.locator("tbody .select").first.check()
    page.wait_for_load_state("networkidle")
    expect(page.locator("tbody .select:checked")).to_have_count(1)


def test_a_sort_survives_a_filter_set_after_it(open_page):
    page = open_page("viewer", "/sessions/")
    page.get_by_role("link", name="Timeslot").click()
    expect(page.locator("th[aria-sort]")).to_contain_text("Timeslot")
    page.get_by_label("Search sessions").fill("ccna")
    expect(page).to_have_url(re.compile("q=ccna"))
    expect(page.locator("th[aria-sort]")).to_contain_text("Timeslot")


def test_an_expired_login_redirects_the_whole_page(open_page):
    page = open_page("viewer", "/sessions/?status=RUNNING")
    page.context.clear_cookies(name="lcm_session")
    page.get_by_label("Search sessions").fill("ccna")
    expect(page).to_have_url(re.compile(r"/login\?next=/sessions/"))
    expect(page.locator("main")).to_have_count(1)
