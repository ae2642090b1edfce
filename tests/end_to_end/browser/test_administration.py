"""Administration in a browser: pools, slots, shares, tokens, imports and the change log."""

from __future__ import annotations

import re
import uuid
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.keyboard import check, press, size, tab_to, type_into

pytestmark = pytest.mark.xdist_group("browser")

TOPOLOGIES = Path(__file__).parents[3] / "lcm" / "demo" / "topologies"
AT_ONCE = ("launch_seconds", "boot_seconds")
SCHEDULER = "actions: [allocate]\nplugins:\n- name: resources\n- name: spread\n"
WITH_AND_WITHOUT = pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])


def fresh_name(kind: str) -> str:
    return f"{kind}-{uuid.uuid4().hex[:8]}"


def make_pool(page: Page) -> str:
    """Create a pool with one slot and end on its page."""
    name = fresh_name("pool")
    page.goto("/pools/new")
    page.locator("#id_name").fill(name)
    page.get_by_label("Minimum slots").fill("1")
    page.get_by_label("Maximum slots").fill("3")
    for setting in AT_ONCE:
        page.locator(f"[name=runtime_settings-{setting}]").fill("0")
    page.get_by_role("button", name="Create pool").click()
    expect(page.get_by_text(f"Pool {name} created.")).to_be_visible()
    return name


def confirm(page: Page, reason: str, button: str) -> None:
    """Confirm in the dialog, or on its page without JavaScript."""
    page.get_by_role("textbox", name="Reason").fill(reason)
    page.get_by_role("button", name=button).click()


@WITH_AND_WITHOUT
def test_static_workers_are_entered_as_rows_and_tested(script, open_page):
    """By keyboard on a phone."""
    page = open_page("admin", "/pools/", java_script_enabled=script, **size())
    press(page, "a[href='/pools/new']")
    name = fresh_name("pool")
    type_into(page, "name", name)
    tab_to(page, "[name=runtime]")
    page.keyboard.type("Static")
    press(page, ".runtime-actions button")
    expect(page.locator("#id_name")).to_have_value(name)
    type_into(page, "max_slots", "1")
    type_into(page, "idle_seconds", "1 h 30 min")
    type_into(page, "runtime_settings-workers-0-name", "cml-1")
    type_into(page, "runtime_settings-workers-0-endpoint", f"http://127.0.0.1:9/{name}")
    press(page, "[name=test_worker][value='0']")
    result = page.get_by_role("status").filter(has_text="cannot be probed")
    expect(result).to_be_visible()
    expect(result).to_be_focused()
    press(page, "[name=add_row][value=workers]")
    expect(page.get_by_role("group", name="Workers 2").get_by_label("Address")).to_have_value("")
    address = page.get_by_role("group", name="Workers 1").get_by_label("Address")
    expect(address).to_have_value(f"http://127.0.0.1:9/{name}")
    if script:
        check(page)
    tab_to(page, "[name=boot_timeout]")
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"Pool {name} created.")).to_be_visible()
    press(page, "a[href$='/edit']")
    expect(page.get_by_label("Idle time")).to_have_value("1 h 30 min")


@WITH_AND_WITHOUT
def test_a_pool_is_created_edited_and_disabled(script, open_page, console_errors):
    page = open_page("admin", java_script_enabled=script)
    name = make_pool(page)
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Minimum slots").fill("9")
    page.get_by_role("button", name="Save pool").click()
    expect(page.get_by_role("alert")).to_contain_text("The minimum cannot exceed the maximum")
    page.get_by_label("Minimum slots").fill("0")
    page.get_by_label("Maximum slots").fill("2")
    page.get_by_role("button", name="Save pool").click()
    expect(
        page.locator(".field-error", has_text="why").or_(page.locator(".field-error").first)
    ).to_be_visible()
    confirm(page, "Two are enough", "Save pool")
    expect(page.get_by_text(f"Pool {name} saved.")).to_be_visible()

    page.get_by_role("link", name="Edit scheduler").click()
    page.get_by_label("Actions and plugins").fill("plugins: [{name: nonsense}]")
    confirm(page, "A try", "Save scheduler")
    expect(page.locator(".field-error").first).to_contain_text("nonsense")
    page.get_by_label("Actions and plugins").fill(SCHEDULER)
    confirm(page, "One lab a worker", "Save scheduler")
    expect(page.locator("section", has=page.locator("#scheduler"))).to_contain_text("spread")

    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Enabled").uncheck()
    confirm(page, "No longer needed", "Save pool")
    expect(
        page.locator(".badge", has_text="Off").or_(page.locator(".badge", has_text="Disabled"))
    ).to_be_visible()
    console_errors.clear()  # Chromium reports the 422 of a form as a failed resource


def test_slots_are_cordoned_together_and_drained(open_page):
    page = open_page("admin")
    name = make_pool(page)
    slots = f"/slots/?pool={name}&state=READY"
    for _ in range(40):
        page.goto(slots)
        if page.locator("tbody .select").count():
            break
        page.wait_for_timeout(500)
    page.locator("tbody .select").first.check()
    page.locator(".bulk-bar").get_by_role("button", name="Cordon…", exact=True).click()
    confirm(page, "A disk is changed", "Cordon 1 slot")
    expect(page.locator(".toast")).to_contain_text("1 slot")
    page.goto(slots)
    page.locator("tbody .select").first.check()
    page.locator(".bulk-bar").get_by_role("button", name="Uncordon…", exact=True).click()
    confirm(page, "It is changed", "Uncordon 1 slot")
    expect(page.locator(".toast")).to_contain_text("1 slot")
    page.goto(slots)
    page.locator("tbody td.card-title a").first.click()
    page.get_by_role("link", name="Drain…", exact=True).click()
    confirm(page, "It is old", "Drain")
    expect(page.locator(".badge", has_text="Ready")).to_have_count(0)


@WITH_AND_WITHOUT
def test_weights_are_edited_inline_and_saved_with_a_reason(script, open_page):
    page = open_page("admin", "/fair-share/?pool=cml-eu", java_script_enabled=script)
    weight = page.locator("input.weight").first
    new_weight = str(uuid.uuid4().int % 80 + 10)
    weight.fill(new_weight)
    if script:
        weight.press("Tab")
        page.get_by_role("button", name="Preview and save…").click()
    else:
        page.get_by_role("button", name="Preview and save…").click()
    confirm(page, "A course begins", "Save weights")
    expect(page.get_by_text("1 weight saved")).to_be_visible()
    expect(page.locator("input.weight").first).to_have_value(new_weight)


@WITH_AND_WITHOUT
def test_a_policy_is_previewed_before_it_is_saved(script, open_page):
    page = open_page("admin", "/fair-share/policy?pool=cml-us", java_script_enabled=script)
    page.get_by_label("Half-life, days").fill("3" if script else "5")
    if script:
        page.get_by_label("Half-life, days").press("Tab")
    else:
        page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview strong")).to_be_visible()
    confirm(page, "Weeks are long", "Save policy")
    expect(page.get_by_text("Policy of cml-us saved")).to_be_visible()


def test_many_topologies_become_drafts_and_are_activated_together(open_page):
    page = open_page("admin", "/definitions/bulk-import")
    text = (TOPOLOGIES / "ccna-ospf-basics.yaml").read_text()
    mark = fresh_name("many")
    files = [
        {
            "name": f"{mark}-{number}.yaml",
            "mimeType": "application/yaml",
            "buffer": re.sub(r"title: .*", f"title: {mark} {number}", text, count=1).encode(),
        }
        for number in (1, 2)
    ]
    page.get_by_label("YAML files").set_input_files(files)
    page.get_by_role("button", name="Import files").click()
    expect(page.locator(".badge", has_text="Done")).to_be_visible()
    page.goto(f"/definitions/?q={mark}")
    page.get_by_role("checkbox", name="Select this page").check()
    page.locator(".bulk-bar").get_by_role("button", name="Activate…").click()
    confirm(page, "They are right", "Activate 2 definitions")
    expect(page.locator(".toast")).to_contain_text("2 definitions")
    page.goto(f"/definitions/?q={mark}&status=active")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_a_token_is_rotated(open_page):
    page = open_page("admin", "/tokens/new")
    name = fresh_name("token")
    page.get_by_label("Name").fill(name)
    page.get_by_label("cml-eu", exact=True).check()
    page.get_by_role("button", name="Create token").click()
    old = page.get_by_label("Key").input_value()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("row", name=name).get_by_role("link", name="Rotate").click()
    confirm(page, "It was in a mail", "Rotate")
    new = page.get_by_label("Key").input_value()
    assert new != old
    for key, status in ((old, 401), (new, 200)):
        response = page.request.get("/api/lablet-sessions/", headers={"Authorization": f"Bearer {key}"})
        assert response.status == status
    page.goto(f"/changes/?q={name}")
    expect(page.locator("tbody")).to_contain_text("It was in a mail")
