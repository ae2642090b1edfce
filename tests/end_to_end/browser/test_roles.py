"""Pages by role: allowed actions are offered and work, the others are refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_list import example_ids, request_session

pytestmark = pytest.mark.xdist_group("browser")

ROLES = ["admin", "operator", "viewer"]


@dataclass(frozen=True)
class RolePage:
    """A page, a heading that every role sees, and the actions it offers by role."""

    path: str
    heading: str
    operator: tuple[str, ...] = ()
    admin: tuple[str, ...] = ()

    def offers(self, role: str) -> set[str]:
        return {*(self.operator if role != "viewer" else ()), *(self.admin if role == "admin" else ())}

    @property
    def roles(self) -> list[str]:
        """Return the lowest role that is offered everything, then the roles below it."""
        return ROLES[ROLES.index("admin" if self.admin else "operator" if self.operator else "viewer") :]


ROLE_PAGES = (
    RolePage("/", "Needs attention", admin=("People", "Tokens")),
    RolePage("/definitions/", "Definitions", admin=("Import", "Activate…", "Deprecate…")),
    RolePage(
        "/definitions/{definition}/",
        "Revisions",
        operator=("New session",),
        admin=("Edit", "Status…", "Delete…", "Revise…"),
    ),
    RolePage("/definitions/{definition}/review", "Review", admin=("Apply as revision", "Exclude…")),
    RolePage("/sessions/", "Sessions", operator=("New session", "Cancel…")),
    RolePage("/sessions/{session}/", "Lifecycle", operator=("Extend…", "Stop…")),
    RolePage("/sessions/{session}/observation", "Planned and observed", operator=("Observe now",)),
    RolePage("/sessions/{waiting}/wait-reasons", "Wait reasons", operator=("Open dry run",)),
    RolePage("/port-drift/", "Port drift", operator=("Acknowledge…",)),
    RolePage("/pools/", "Capacity", admin=("New pool",)),
    RolePage("/pools/{pool}/", "Slots", admin=("Edit", "Edit scheduler")),
    RolePage("/slots/", "Slots", operator=("Cordon…", "Uncordon…", "Drain…")),
    RolePage("/slots/{slot}/", "Port map", operator=("Cordon…", "Labels…", "Drain…")),
    RolePage("/queue/", "Queue", operator=("Dry run",)),
    RolePage("/ticks/{tick}/", "Steps"),
    RolePage(
        "/fair-share/",
        "Shares",
        operator=("Calculate now", "Check again"),
        admin=("Policy", "Preview and save…"),
    ),
    RolePage("/observers/", "Lifecycle handlers", operator=("Run now",)),
    RolePage("/controllers/", "Heartbeats", admin=("Tokens",)),
    RolePage("/projects/{project}/", "Members", admin=("Edit…", "Delete…", "Add")),
    RolePage("/changes/", "Change log"),
)
# Button → method and URL of its request.
Actions = dict[str, tuple[str, str]]
READ = """() => ({
    headings: [...document.querySelectorAll("h1, h2")].map(each => each.textContent.trim()),
    controls: [...document.querySelectorAll("a, button[type=submit]")].map(each => [
        each.textContent.trim().replace(/ \\d+$/, ""),
        each.href ? "GET" : "POST",
        each.getAttribute("href") || each.getAttribute("formaction") || each.form.getAttribute("action"),
    ]),
})"""


def read_actions(page: Page, role_page: RolePage, path: str) -> Actions:
    """Return the labels of all buttons and links on a page."""
    page.goto(path)
    found = page.evaluate(READ)
    assert role_page.heading in found["headings"], path
    return {name: (method, address) for name, method, address in found["controls"]}


def is_refused(page: Page, method: str, address: str) -> bool:
    """Submit as an open form would: with a valid CSRF token, but without the role."""
    token = next(each["value"] for each in page.context.cookies() if each["name"] == "lcm_csrf")
    response = page.request.fetch(address, method=method, headers={"X-CSRFToken": token, "Referer": page.url})
    return response.status == 403 and "Access denied" in response.text()


def test_each_role_sees_only_the_actions_it_may_perform(open_page):
    """Without JavaScript, so that panels are pages that load immediately."""
    people = {role: open_page(role, java_script_enabled=False) for role in ROLES}
    request_session(people["operator"], is_advance_booking=True)
    ids = example_ids(people["viewer"])
    problems = []
    for role_page in ROLE_PAGES:
        path = role_page.path.format(**ids)
        highest, *lower = role_page.roles
        actions = read_actions(people[highest], role_page, path)
        all_actions = role_page.offers(highest)
        assert all_actions <= set(actions), (path, sorted(actions))
        for role in lower:
            shown = all_actions & set(read_actions(people[role], role_page, path))
            if shown != role_page.offers(role):
                problems.append(f"{role} on {role_page.path} is offered {sorted(shown)}")
            problems += [
                f"{role} on {role_page.path} is not refused {name}"
                for name in sorted(all_actions - role_page.offers(role))
                if not is_refused(people[role], *actions[name])
            ]
    assert problems == []


def test_an_operator_manages_workers_and_observers(open_page):
    page = open_page("operator", "/pools/")
    ids = example_ids(page)
    page.goto(f"/slots/{ids['slot']}/")
    for action, badges in (("Cordon", 1), ("Uncordon", 0)):
        page.get_by_role("link", name=f"{action}…", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill("A disk is changed")
        dialog.get_by_role("button", name=action, exact=False).click()
        expect(page.locator(".badge", has_text="Cordoned")).to_have_count(badges)
    page.goto("/observers/usage-record/")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator(".toast")).to_be_visible()
    page.goto("/fair-share/")
    page.get_by_role("button", name="Check again").click()
    expect(page.locator(".toast")).to_contain_text("Usage consistency check enqueued.")
    page.goto("/port-drift/")
    page.get_by_role("link", name="Acknowledge…").first.click()
    page.get_by_role("dialog").get_by_label("Reason").fill("Known")
    page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
    expect(page.locator(".toast")).to_contain_text("acknowledged")
