"""Every page of a control plane with the demo, for tests that walk them and for pictures."""

import re

from playwright.sync_api import Page, expect

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGES = [
    "/",
    "/search?q=ccna",
    "/sessions/",
    "/sessions/new",
    "/sessions/{session}/",
    "/sessions/{waiting}/",
    "/sessions/{waiting}/why",
    "/sessions/{session}/cancel",
    "/sessions/{session}/extend",
    "/definitions/",
    "/definitions/import",
    "/definitions/import-many",
    "/definitions/{definition}/",
    "/definitions/{definition}/edit",
    "/definitions/{definition}/revise",
    "/definitions/{definition}/revisions",
    "/definitions/{definition}/revisions/1/revert",
    "/definitions/{definition}/review",
    "/definitions/{definition}/review/snooze",
    "/definitions/{definition}/drift",
    "/sessions/{session}/observed",
    "/observations/",
    "/drift/",
    "/drift/{drift}/acknowledge",
    "/domains/",
    "/domains/{domain}/",
    "/projects/",
    "/projects/new",
    "/projects/{project}/",
    "/pools/",
    "/pools/new",
    "/pools/{pool}/",
    "/pools/{pool}/edit",
    "/pools/{pool}/scheduler",
    "/queue/",
    "/queue/dry-run",
    "/ticks/",
    "/ticks/{tick}/",
    "/decisions/",
    "/slots/",
    "/slots/{slot}/",
    "/slots/{slot}/labels",
    "/slots/{slot}/drain",
    "/reservations/",
    "/reservations/{reservation}/",
    "/fair-share/",
    "/fair-share/policy?pool=cml-eu",
    "/usage/",
    "/observers/",
    "/observers/usage-record/",
    "/overview/ticks",
    "/overview/usage",
    "/profile",
    "/profile/password",
    "/people/",
    "/people/{person}/role",
    "/jobs/",
    "/jobs/{job}/",
    "/controllers/",
    "/tokens/",
    "/tokens/new",
    "/tokens/{token}/rotate",
    "/changes/",
    "/changes/{change}/",
]
LISTS = {
    "session": "/sessions/?status=RUNNING",
    "waiting": "/sessions/?status=PENDING",
    "definition": "/definitions/",
    "domain": "/domains/",
    "project": "/projects/",
    "pool": "/pools/",
    "slot": "/slots/?state=READY",
    "tick": "/ticks/",
    "reservation": "/reservations/",
    "change": "/changes/",
    "person": "/people/",
    "drift": "/drift/?state=open",
    "token": "/tokens/?state=valid",
    "job": "/jobs/",
}


def log_in(page: Page, person: str) -> None:
    """Ends on the overview."""
    page.goto("/login")
    page.get_by_label("Name").fill(person)
    page.get_by_label("Password").fill(f"demo-{person}")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def real_paths(page: Page) -> list[str]:
    """The pages with ids of things that exist; those of which there is nothing are left out."""
    return filled(places(page))


def filled(known: dict[str, str]) -> list[str]:
    return [path.format(**known) for path in PAGES if set(re.findall(r"{(\w+)}", path)) <= set(known)]


def places(page: Page) -> dict[str, str]:
    """The key of one thing of each kind that there is."""
    first = {kind: _first(page, path) for kind, path in LISTS.items()}
    return {kind: key for kind, key in first.items() if key}


def _first(page: Page, path: str) -> str:
    """The key in the first row's first link, read without showing the list."""
    rows = page.request.get(path).text().partition("<tbody>")[2]
    found = re.search(rf'href="{path.partition("?")[0]}([^/"]+)/', rows)
    return found[1] if found else ""
