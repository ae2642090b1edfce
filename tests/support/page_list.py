"""All pages of a control plane with the demo, for browser tests and screenshots."""

import re
from collections.abc import Sequence

from playwright.sync_api import FilePayload, Page, expect

from tests.support.control_plane import ROOT

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
    "/shortcuts",
    "/sessions/",
    "/sessions/new",
    "/sessions/{session}/",
    "/sessions/{waiting}/",
    "/sessions/{session}/access",
    "/sessions/{waiting}/wait-reasons",
    "/sessions/{session}/timeline",
    "/sessions/{session}/cancel",
    "/sessions/{session}/extend",
    "/definitions/",
    "/definitions/import",
    "/definitions/bulk-import",
    "/definitions/{definition}/",
    "/definitions/{definition}/edit",
    "/definitions/{definition}/revise",
    "/definitions/{definition}/ports",
    "/definitions/{definition}/revisions",
    "/definitions/{definition}/revisions/1/revert",
    "/definitions/{definition}/review",
    "/definitions/{definition}/review/snooze",
    "/definitions/{definition}/drift",
    "/definitions/{definition}/review/ports",
    "/sessions/{session}/observation",
    "/observations/",
    "/port-drift/",
    "/port-drift/{drift}/acknowledge",
    "/domains/",
    "/domains/{domain}/",
    "/projects/",
    "/projects/new",
    "/projects/{project}/",
    "/projects/{project}/members/",
    "/pools/",
    "/pools/new",
    "/pools/{pool}/",
    "/pools/{pool}/timeline",
    "/pools/{pool}/edit",
    "/pools/{pool}/scheduler",
    "/queue/",
    "/queue/dry-run",
    "/ticks/",
    "/ticks/{tick}/",
    "/decisions/",
    "/slots/",
    "/slots/{slot}/",
    "/slots/{slot}/timeline?when=7d",
    "/slots/{slot}/labels",
    "/slots/{slot}/drain",
    "/reservations/",
    "/reservations/{reservation}/",
    "/fair-share/",
    "/fair-share/policy?pool=cml-eu",
    "/usage/",
    "/observers/",
    "/observers/usage-record/",
    "/observers/runs/",
    "/overview/ticks",
    "/overview/usage",
    "/profile",
    "/profile/password",
    "/profile/notifications",
    "/inbox/",
    "/people/",
    "/people/{person}/role",
    "/people/new",
    "/people/import",
    "/jobs/",
    "/jobs/{job}/",
    "/controllers/",
    "/tokens/",
    "/tokens/new",
    "/tokens/{token}/rotate",
    "/notifications/",
    "/notifications/{delivery}/",
    "/notifications/{delivery}/retry",
    "/notifications/event-types/",
    "/notifications/event-types/session.ending_soon/",
    "/notifications/rules/",
    "/notifications/rules/new",
    "/notifications/rules/{rule}/test",
    "/notifications/rules/preview?event_types=session.*",
    "/notifications/webhooks/",
    "/notifications/webhooks/new",
    "/notifications/webhooks/{webhook}/",
    "/notifications/webhooks/{webhook}/edit",
    "/notifications/webhooks/{webhook}/rotate",
    "/notifications/webhooks/{webhook}/test",
    "/changes/",
    "/changes/{change}/",
]
# Panels that htmx loads later.
PANELS = [
    "/pools/{pool}/board",
    "/queue/ticks",
    "/observers/board",
    "/controllers/board",
    "/sessions/{session}/capacity",
    "/sessions/{session}/live",
    "/slots/{slot}/live",
    "/live/busiest",
]
LISTS = {
    "session": "/sessions/?status=RUNNING",
    # The session that starts last, so that it is not placed during the test.
    "waiting": "/sessions/?status=PENDING&sort=-starts_at",
    "definition": "/definitions/",
    "domain": "/domains/",
    "project": "/projects/",
    "pool": "/pools/",
    # A page with sessions.
    "slot": "/slots/?state=READY&sort=-lease_count",
    "tick": "/ticks/",
    "reservation": "/reservations/",
    "change": "/changes/",
    "person": "/people/",
    "drift": "/port-drift/?state=open",
    "token": "/tokens/?state=valid",
    "job": "/jobs/",
    "webhook": "/notifications/webhooks/",
    "delivery": "/notifications/",
    "rule": "/notifications/rules/",
}


def log_in(page: Page, person: str, password: str = "") -> None:
    """Sign in as a demo user without a password; end on the overview."""
    page.goto("/login")
    page.get_by_label("Name").fill(person)
    page.get_by_label("Password").fill(password or f"demo-{person}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Overview", exact=True)).to_be_visible()


def real_paths(page: Page) -> list[str]:
    """Return the pages with ids of existing objects; create missing objects or leave their pages out."""
    request_session(page, is_advance_booking=True)
    creators = {"job": _start_a_job, "token": make_controller_token, "webhook": _send_a_test}
    for kind in set(creators) - set(example_ids(page)):
        creators[kind](page)
    return filled_paths(example_ids(page))


def request_session(
    page: Page, definition: str = "ccna-ospf-basics v1.0", *, is_advance_booking: bool = False
) -> None:
    """Request a session and end on its page; an advance booking stays pending."""
    page.goto("/sessions/new")
    page.get_by_label("Definition").fill(definition)
    page.get_by_label("Project").fill("academy / ccna-spring")
    page.get_by_label("Owner").fill("ccna-spring-01")
    if is_advance_booking:
        page.get_by_label(re.compile("^Starts")).fill("2035-01-02T08:00")
        page.get_by_text("Custom", exact=True).click()
        page.get_by_label(re.compile("^Ends")).fill("2035-01-02T09:00")
    page.get_by_role("button", name="Request session").click()
    expect(page.get_by_role("heading", name=re.compile("^Session "))).to_be_visible()


def make_controller_token(page: Page, name: str = "page-sample", *pools: str) -> str:
    """Create a token as an Admin and return its key."""
    page.goto("/tokens/new")
    page.get_by_label("Name").fill(name)
    for pool in pools or ("cml-eu",):
        page.get_by_label(pool, exact=True).check()
    page.get_by_role("button", name="Create token").click()
    return page.get_by_label("Key").input_value()


def _send_a_test(page: Page) -> None:
    """Create a webhook that does not respond, and a delivery to it."""
    page.goto("/notifications/webhooks/new")
    page.get_by_label("Name").fill("page-sample")
    page.get_by_label("URL").fill("https://hooks.example.invalid/lcm")
    page.get_by_role("button", name="Create webhook").click()
    page.get_by_role("link", name="Done").click()
    page.get_by_role("link", name="Send test…").click()
    page.get_by_role("button", name="Send test").click()
    expect(page.get_by_role("heading", name="Request body")).to_be_visible()


def _start_a_job(page: Page) -> None:
    page.goto("/definitions/bulk-import")
    topology = next((ROOT / "lcm" / "demo" / "topologies").glob("*.yaml")).read_bytes()
    file: FilePayload = {"name": "page-sample.yaml", "mimeType": "application/yaml", "buffer": topology}
    page.get_by_label("YAML files").set_input_files([file])
    page.get_by_role("button", name="Import files").click()
    expect(page).to_have_url(re.compile("/jobs/"))


def show(page: Page, path: str) -> None:
    """Open a page and wait for all of its panels."""
    page.goto(path)
    page.wait_for_function("() => !document.querySelector('[hx-trigger^=load], .htmx-request')")


def filled_paths(ids: dict[str, str], addresses: Sequence[str] = PAGES) -> list[str]:
    return [path.format(**ids) for path in addresses if set(re.findall(r"{(\w+)}", path)) <= set(ids)]


def example_ids(page: Page) -> dict[str, str]:
    """Return the id of one existing object of each kind."""
    first = {kind: _first(page, path) for kind, path in LISTS.items()}
    return {kind: key for kind, key in first.items() if key}


def _first(page: Page, path: str) -> str:
    """Return the id in the first link of the first row, without opening the list in the browser."""
    rows = page.request.get(path).text().partition("<tbody>")[2]
    found = re.search(rf'href="{path.partition("?")[0]}([^/"]+)/', rows)
    return found[1] if found else ""
