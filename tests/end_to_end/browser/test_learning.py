"""From observations back to the definition: flag, review, preview, apply, verify, revert."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from datetime import UTC, datetime

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.accessibility import serious_violations
from tests.end_to_end.browser.keyboard import check, confirm, press, size, tab_to, type_into
from tests.support.control_plane import ROOT, ControlPlane
from tests.support.observed_labs import seen
from tests.support.page_list import make_controller_token

pytestmark = pytest.mark.xdist_group("browser")

OVER, UNDER = "sdwan-edge-lab", "soc-range-firewall"


@pytest.fixture
def live(plane: ControlPlane):
    """`live("observed", name, 10, …)`: seed observed sessions and return the output of the seed."""

    def run(*arguments: object) -> list[list[str]]:
        command = [sys.executable, "-m", "tests.support.observation_seed", *map(str, arguments)]
        result = subprocess.run(
            command, cwd=ROOT, env=plane._environment(), capture_output=True, text=True, timeout=100
        )
        assert result.returncode == 0, result.stderr[-2000:]
        return [line.split() for line in result.stdout.splitlines() if line]

    return run


def definition_page(page: Page, name: str) -> None:
    page.goto(f"/definitions/?q={name}")
    page.get_by_role("link", name=name).first.click()
    expect(page.locator("#review-form")).to_be_visible()


def test_an_over_provisioned_lab_is_reviewed_applied_and_verified(open_page, live):
    live("observed", OVER, 12, 0.3, 0.4, 0.6)
    page = open_page("admin", "/definitions/")
    row = page.get_by_role("row").filter(has_text=OVER)
    expect(row.get_by_text("Over-provisioned", exact=True)).to_be_visible()
    definition_page(page, OVER)
    expect(page.get_by_text("CPU, memory and storage are set too high.")).to_be_visible()
    impact, derivation = page.locator("#review-impact"), page.locator("#review-derivation")
    impact_text = impact.locator(".impact-value").first
    expect(impact_text).to_contain_text("none of 12")

    # The preview and the chart change with the choice, and typing keeps the focus.
    page.get_by_label("CPU: Avg").check()
    expect(derivation).to_contain_text("average")
    value = page.get_by_label("CPU, custom value in cores")
    value.press_sequentially("2")
    expect(page.get_by_label("CPU: custom", exact=True)).to_be_checked()
    expect(impact_text).to_contain_text("12 of 12")
    expect(value).to_be_focused()
    expect(page.locator("#chart-cpu_cores .label-proposal")).to_have_text("proposal 2")
    expect(page.locator("#chart-cpu_cores").get_by_role("link").first).to_be_visible()
    assert serious_violations(page, around=False) == []
    impact.get_by_text("Sessions by CPU").click()
    expect(impact.get_by_role("link").first).to_be_visible()

    page.get_by_label("CPU: Recommended").check()
    expect(impact_text).to_contain_text("none of 12")
    page.get_by_label("Reason").fill("Twelve sessions never came near")
    page.get_by_role("button", name="Apply as revision 2").click()
    expect(page.get_by_text("Revision 2 applied.")).to_be_visible()
    expect(page.get_by_text("Watching revision 2: 0 of 5 sessions stayed within limits.")).to_be_visible()

    live("observed", OVER, 5, 0.3, 0.4, 0.6)
    page.reload()
    expect(page.get_by_text("Verified revision 2: 5 of 5 sessions stayed within limits.")).to_be_visible()


def test_a_reduced_lab_regresses_is_reverted_and_its_recommendation_snoozed(open_page, live):
    """By keyboard on a phone."""
    live("observed", UNDER, 6, 1.2, 0.9, 0.6)
    page = open_page("admin", f"/definitions/?class=under_provisioned&q={UNDER}&view=", **size())
    press(page, "tbody td.card-title a")
    expect(page.locator("#review-form")).to_be_visible()
    expect(page.get_by_text("CPU is set too low.")).to_be_visible()
    type_into(page, "memory_gb_custom", "10")
    expect(page.locator("#review-impact").get_by_text("High", exact=True)).to_be_visible()
    type_into(page, "reason", "Let us see")
    press(page, "#review-form [type=submit], #review-apply [type=submit]")
    expect(page.get_by_text("Revision 2 applied.")).to_be_visible()
    live("observed", UNDER, 1, 1.2, 0.9, 0.6)
    page.reload()
    expect(page.get_by_text("Revision 2 has regressed:")).to_be_visible()
    tab_to(page, "a[href$='/revisions/1/revert']")
    page.keyboard.press("Enter")
    confirm(page, "It ran out of memory")
    expect(page.get_by_text("Reverted to revision 1 as revision 3.")).to_be_visible()
    expect(page.get_by_role("heading", name=re.compile("^Snooze the same recommendation"))).to_be_visible()
    expect(page.get_by_label("Reason")).to_have_value("It ran out of memory")
    check(page)
    press(page, "main form.form [type=submit]")
    expect(page.get_by_text(re.compile("nooze")).first).to_be_visible()
    live("observed", UNDER, 1, 1.2, 1.2, 0.6)
    page.reload()
    expect(page.get_by_text("Revision 3 has regressed:")).to_be_visible()
    expect(page.get_by_role("link", name="Revert to revision 2…")).to_have_count(0)
    page.get_by_role("link", name="Choose other values").press("Enter")
    expect(page).to_have_url(re.compile("#review-form$"))


def test_two_administrators_apply_at_once_and_one_gets_a_conflict(open_page, console_errors):
    first, second = open_page("admin"), open_page("admin")
    for page in (first, second):
        definition_page(page, "ccna-ospf-basics")
        page.get_by_label("Reason").fill("Both of us")
    first.get_by_role("button", name="Apply as revision 2").click()
    expect(first.get_by_text("Revision 2 applied.")).to_be_visible()
    second.get_by_role("button", name="Apply as revision 2").click()
    expect(second.get_by_text("admin applied revision 2 after the preview; review it first.")).to_be_visible()
    expect(second.get_by_label("Reason")).to_have_value("Both of us")
    console_errors.clear()  # Chromium reports the 422 of the form as a failed resource


def test_a_viewer_sees_the_preview_and_cannot_apply(open_page):
    page = open_page("viewer")
    definition_page(page, "dc-vxlan-fabric")
    page.get_by_label("CPU, custom value in cores").fill("3")
    expect(page.locator("#chart-cpu_cores .label-proposal")).to_have_text("proposal 3")
    expect(page.get_by_text("Only Admins can apply changes: ")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Apply"))).to_have_count(0)


def test_the_review_works_without_javascript(open_page):
    page = open_page("admin", "/definitions/?q=devnet", java_script_enabled=False)
    page.get_by_role("link", name="devnet-netconf-intro").click()
    page.locator("#panel-review").get_by_role("link", name="Show").click()
    page.get_by_label("Memory: Max").check()
    page.get_by_role("button", name="Preview these choices").click()
    expect(page.locator("#review-derivation")).to_contain_text("max")
    page.get_by_label("Reason").fill("Without a script")
    page.get_by_role("button", name="Apply as revision 2").click()
    expect(page.get_by_text("Revision 2 applied.")).to_be_visible()


def key_of_a_controller(page: Page) -> str:
    return make_controller_token(page, f"learning-{datetime.now(UTC):%H%M%S%f}", "cml-eu", "cml-us")


def observe_as_the_controller(
    plane: ControlPlane, key: str, session: str, ports: dict[str, int], **first_node: object
) -> dict:
    body = seen(datetime.now(UTC), ports=ports)
    body["nodes"][0] |= first_node
    request = urllib.request.Request(
        f"http://{plane.address}/api/internal/lablet-sessions/{session}/resource-observations",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.load(response)


def test_a_lab_edited_by_hand_is_observed_drifts_and_is_acknowledged(open_page, live, plane):
    [[session, *pairs]] = live("running", "ccna-vlan-trunking")
    ports = {name: int(port) for name, port in (pair.split("=") for pair in pairs)}
    page = open_page("admin")
    key = key_of_a_controller(page)
    page.goto(f"/sessions/{session}/")
    page.get_by_role("button", name="Observe now").click()
    expect(page.get_by_text("Observing…")).to_be_visible()
    response = observe_as_the_controller(plane, key, session, {**ports, "by-hand_vnc": 7990})
    assert response["port_drift_detected"]
    expect(page.get_by_text(re.compile("completed in"))).to_be_visible()
    line = page.get_by_role("row").filter(has_text="by-hand_vnc")
    expect(line.get_by_text("Leaked")).to_be_visible()

    # The port stays reserved on its worker.
    url = page.url
    page.locator("#panel-capacity").get_by_role("link", name=re.compile("^cml-")).click()
    expect(page.locator(".port.is-leaked, .port-swatch.is-leaked").first).to_be_visible()
    page.goto(url)

    line.get_by_role("link", name="Acknowledge…").click()
    dialog = page.locator("dialog")
    dialog.get_by_label("Reason").fill("A helper of the teacher")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_text("by-hand_vnc acknowledged.")).to_be_visible()
    page.goto("/port-drift/?state=acknowledged")
    expect(page.get_by_text("“A helper of the teacher”")).to_be_visible()


def test_an_observed_port_is_added_to_the_template_and_removed_by_hand(
    open_page, live, plane, console_errors
):
    name = "ccna-vlan-trunking"
    [[session, *pairs]] = live("running", name)
    ports = {each: int(port) for each, port in (pair.split("=") for pair in pairs)}
    page = open_page("admin")
    key = key_of_a_controller(page)
    seen_ports = {**ports, "SW1_https": 7443}
    observe_as_the_controller(plane, key, session, seen_ports, label="SW1", tags=["https:7443:443"])
    definition_page(page, name)
    panel = page.locator("#panel-ports")
    expect(panel.get_by_role("row").filter(has_text="SW1_https")).to_contain_text("1 of")
    panel.get_by_label("Add SW1_https").check()
    assert serious_violations(page, around=False) == []
    panel.get_by_label("Reason").fill("Labs use the web interface")
    panel.get_by_role("button", name="Apply ports as revision 2").click()
    expect(page.get_by_text("Revision 2 applied.")).to_be_visible()
    expect(page.get_by_text("Ports: added SW1_https")).to_be_visible()

    page.get_by_role("link", name="Edit ports…").click()
    dialog = page.locator("dialog")
    lines = dialog.get_by_label("Ports")
    expect(lines).to_have_value(re.compile("SW1 https:7443:443"))
    dialog.get_by_label("Reason").fill("Not needed")
    lines.fill(lines.input_value().replace("SW1 https:7443:443", "SW9 https:7443:443"))
    dialog.get_by_role("button", name="Apply revision").click()
    expect(dialog.get_by_text("There is no node “SW9”.")).to_be_visible()
    lines.fill(lines.input_value().replace("SW9 https:7443:443", ""))
    dialog.get_by_role("button", name="Apply revision").click()
    expect(page.get_by_text("Ports: removed SW1_https")).to_be_visible()
    console_errors.clear()  # Chromium reports the 422 of the form as a failed resource
