"""From running labs back to the definition, in a browser, with a simulator and a controller."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

from tests.support.controller_plane import FINAL, Plane
from tests.support.factories import LAB, PASSWORD
from tests.support.page_list import FLAGS, log_in

pytestmark = [pytest.mark.integration, pytest.mark.browser, pytest.mark.xdist_group("learning")]

# The node uses all four of its cores; the definition requires only one.
BUSY_LAB = """
lab: {title: Route reflector, version: 0.3.0}
nodes:
  - {id: n0, label: rr, node_definition: csr1000v, cpus: 4, ram: 4096, boot_disk_size: 8,
     tags: ["serial:5041", "load:1000"], interfaces: [{id: i0, label: Gi1}]}
links: []
"""
ROOMY, TIGHT, CUT = "over-provisioned", "under-provisioned", "cut-off"
TOPOLOGIES = {ROOMY: LAB, TIGHT: BUSY_LAB, CUT: LAB}
REQUIREMENTS = {
    ROOMY: {"cpu_cores": "4", "memory_gb": "8", "storage_gb": "40"},
    TIGHT: {"cpu_cores": "1", "memory_gb": "6", "storage_gb": "20"},
    CUT: {"cpu_cores": "2", "memory_gb": "4", "storage_gb": "10"},
}
SECONDS = 25


class Learning:
    """Sessions that run to their end on the simulator."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._ids = {name: self._import(name) for name in REQUIREMENTS}

    def _import(self, name: str) -> str:
        body = {"name": name, "topology": TOPOLOGIES[name], "requirements": REQUIREMENTS[name]}
        response = self._plane.call(
            "POST", "lablet-definitions/import", body | {"pool": "cml-eu", "status": "active"}
        )
        assert response.status_code == 201, response.text
        return str(response.json()["definition"]["id"])

    def live(self, counts: dict[str, int], seconds: int = SECONDS) -> list[dict[str, Any]]:
        """Run this many sessions of each definition to their end, longer if the machine is slow."""
        assert seconds < 300, self._plane.logs()
        requested = [
            (name, self._plane.request_session(seconds, definition=self._ids[name]))
            for name, count in counts.items()
            for _ in range(count)
        ]
        for _, session in requested:
            self._plane.until(session, *FINAL, seconds=seconds + 150)
        counted = [(name, session) for name, session in requested if self._counts(session)]
        sessions = [self._plane.session(session) for _, session in counted]
        missing = {name: count - [each for each, _ in counted].count(name) for name, count in counts.items()}
        return sessions + (self.live(missing, seconds * 2) if any(missing.values()) else [])

    def _counts(self, session: str) -> bool:
        response = self._plane.call("GET", f"lablet-sessions/{session}/resource-observations")
        return bool(response.json()["counted"])


@pytest.fixture(scope="module")
def learning(plane: Plane) -> Iterator[Learning]:
    controller = plane.controller("learning")
    yield Learning(plane)
    assert controller.stop() == 0


@pytest.fixture
def page(plane: Plane) -> Iterator[Page]:
    """A page of an administrator."""
    console_errors: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=FLAGS)
        page = browser.new_page(base_url=plane.url)
        page.set_default_timeout(30_000)
        page.on(
            "console",
            lambda message: console_errors.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        log_in(page, "boss", PASSWORD)
        yield page
        browser.close()
    assert console_errors == []


def open_definition(page: Page, name: str) -> None:
    page.goto(f"/definitions/?q={name}")
    page.get_by_role("link", name=name).first.click()
    expect_visible(page.locator("#review-form"))


def expect_visible(locator: Locator) -> None:
    expect(locator).to_be_visible(timeout=30_000)


def expect_text(locator: Locator, text: str) -> None:
    expect(locator).to_contain_text(text, timeout=30_000)


def apply(page: Page, reason: str) -> None:
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("button", name="Apply as revision 2").click()
    expect_visible(page.get_by_text("Revision 2 applied."))
    expect_visible(page.get_by_text("Watching revision 2: 0 of 5 sessions stayed within limits."))


def test_live_usage_is_flagged_reviewed_applied_verified_and_reverted(learning: Learning, page: Page) -> None:
    learning.live({ROOMY: 10, TIGHT: 5, CUT: 5})
    page.goto("/definitions/")
    for name, judgement in ((ROOMY, "Over-provisioned"), (TIGHT, "Under-provisioned")):
        row = page.get_by_role("row").filter(has_text=name)
        expect_visible(row.get_by_text(judgement, exact=True))

    # Over-provisioned: the preview changes with the choice.
    open_definition(page, ROOMY)
    impact = page.locator("#review-impact .impact-value").first
    expect_text(impact, "none of 10")
    memory = page.get_by_label("Memory, custom value in GB")
    memory.fill("0.5")
    expect_text(impact, "10 of 10")
    # Enough for a lab that warmed up longer than these did.
    memory.fill("3")
    expect_text(impact, "none of 10")
    apply(page, "Ten labs never came near")

    open_definition(page, TIGHT)
    expect_visible(page.get_by_text("CPU is set too low."))
    apply(page, "It has been busy with all it had")

    # This value is not recommended, and the preview warns.
    open_definition(page, CUT)
    page.get_by_label("Memory, custom value in GB").fill("0.5")
    expect_visible(page.locator("#review-impact").get_by_text("High", exact=True))
    apply(page, "Let us see")

    # The next sessions are placed by the new requirements and decide the outcome.
    sessions = learning.live({ROOMY: 5, TIGHT: 5, CUT: 1})
    assert {each["revision"] for each in sessions} == {2}
    by_name = {each["definition_name"]: each["requirements"] for each in sessions}
    assert float(by_name[ROOMY]["memory_gb"]) == 3
    assert float(by_name[TIGHT]["cpu_cores"]) > 4
    assert float(by_name[CUT]["memory_gb"]) == 0.5
    for name in (ROOMY, TIGHT):
        open_definition(page, name)
        expect_visible(page.get_by_text("Verified revision 2: 5 of 5 sessions stayed within limits."))
    page.goto("/")
    expect_text(page.locator("section", has=page.locator("#attention")), "regressed")
    open_definition(page, CUT)
    expect_visible(page.get_by_text("Revision 2 has regressed:"))
    page.get_by_role("link", name="Revert to revision 1…").click()
    page.locator("dialog").get_by_label("Reason").fill("It ran out of memory")
    page.get_by_role("button", name="Revert to revision 1").click()
    expect_visible(page.get_by_text("Reverted to revision 1 as revision 3."))
