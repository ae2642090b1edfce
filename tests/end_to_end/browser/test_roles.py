"""Pages by role: allowed actions are offered and work, the others are refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_list import places, request_session

pytestmark = pytest.mark.xdist_group("browser")

ROLES = ["admin", "operator", "viewer"]


@dataclass(frozen=True)
class Stop:
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


STOPS = (
    Stop("/", "Needs attention", admin=("People", "Tokens")),
    Stop("/definitions/", "Definitions", admin=("Import", "Activate…", "Deprecate…")),
    Stop(
        "/definitions/{definition}/",
        "Revisions",
        operator=("New session",),
        admin=("Edit", "Status…", "Delete…", "Revise…"),
    ),
    Stop("/definitions/{definition}/review", "Review", admin=("Apply as revision", "Exclude…")),
    Stop("/sessions/", "Sessions", operator=("New session", "Cancel…")),
    Stop("/sessions/{session}/", "Lifecycle", operator=("Extend…", "Stop…")),
    Stop("/sessions/{session}/observation", "Planned and observed", operator=("Observe now",)),
    Stop("/sessions/{waiting}/wait-reasons", "Wait reasons", operator=("Open dry run",)),
    Stop("/port-drift/", "Port drift", operator=("Acknowledge…",)),
    Stop("/pools/", "Capacity", admin=("New pool",)),
    Stop("/pools/{pool}/", "Slots", admin=("Edit", "Edit scheduler")),
    Stop("/slots/", "Slots", operator=("Cordon…", "Uncordon…", "Drain…")),
    Stop("/slots/{slot}/", "Port map", operator=("Cordon…", "Labels…", "Drain…")),
    Stop("/queue/", "Queue", operator=("Dry run",)),
    Stop("/ticks/{tick}/", "Steps"),
    Stop(
        "/fair-share/",
        "Shares",
        operator=("Calculate now", "Check again"),
        admin=("Policy", "Preview and save…"),
    ),
    Stop("/observers/", "Lifecycle handlers", operator=("Run now",)),
    Stop("/controllers/", "Heartbeats", admin=("Tokens",)),
    Stop("/projects/{project}/", "Members", admin=("Edit…", "Delete…", "Add")),
    Stop("/changes/", "Change log"),
)
# Button → method and URL of its request.
Offered = dict[str, tuple[str, str]]
READ = """() => ({
    headings: [...document.querySelectorAll("h1, h2")].map(each => each.textContent.trim()),
    controls: [...document.querySelectorAll("a, button[type=submit]")].map(each => [
        each.textContent.trim().replace(/ \\d+$/, ""),
        each.href ? "GET" : "POST",
        each.getAttribute("href") || each.getAttribute("formaction") || each.form.getAttribute("action"),
    ]),
})"""


def offered(page: Page, stop: Stop, path: str) -> Offered:
    """Return the labels of all buttons and links on a page."""
    page.goto(path)
    found = page.evaluate(READ)
    assert stop.heading in found["headings"], path
    return {name: (method, address) for name, method, address in found["controls"]}


def is_refused(page: Page, method: str, address: str) -> bool:
    """Submit as an open form would: with a valid CSRF token, but without the role."""
    token = next(each["value"] for each in page.context.cookies() if each["name"] == "lcm_csrf")
    answer = page.request.fetch(address, method=method, headers={"X-CSRFToken": token, "Referer": page.url})
    return answer.status == 403 and "Access denied" in answer.text()


def test_each_role_is_offered_what_it_may_do_and_refused_the_rest(open_page):
    """Without JavaScript, so that panels are pages that load immediately."""
    people = {role: open_page(role, java_script_enabled=False) for role in ROLES}
    request_session(people["operator"], far_off=True)
    known = places(people["viewer"])
    wrong = []
    for stop in STOPS:
        path = stop.path.format(**known)
        highest, *lower = stop.roles
        everything = offered(people[highest], stop, path)
        asked = stop.offers(highest)
        assert asked <= set(everything), (path, sorted(everything))
        for role in lower:
            shown = asked & set(offered(people[role], stop, path))
            if shown != stop.offers(role):
                wrong.append(f"{role} on {stop.path} is offered {sorted(shown)}")
            wrong += [
                f"{role} on {stop.path} is not refused {name}"
                for name in sorted(asked - stop.offers(role))
                if not is_refused(people[role], *everything[name])
            ]
    assert wrong == []


def test_an_operator_manages_workers_and_observers(open_page):
    page = open_page("operator", "/pools/")
    known = places(page)
    page.goto(f"/slots/{known['slot']}/")
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
