"""`make docs-images`: the pictures of docs/guide.md, from a demo that has lived for a while."""

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

from tests.end_to_end.screenshots.stage import demo, page_on
from tests.support.control_plane import ROOT
from tests.support.page_list import log_in

FOLDER = ROOT / "docs" / "images" / "guide"
TOPOLOGIES = ROOT / "lcm" / "demo" / "topologies"
LIVES_SECONDS = 60
BIG_LAB = "soc-range-firewall v1.0"
CROWDED = "cml-us"
# Their titles are not the names of definitions that the demo has.
NEW_LABS = ("ccna-vlan-trunking.yaml", "dc-vxlan-fabric.yaml", "sdwan-edge-lab.yaml")
MORE_THAN_FIT = 16
SIZE: ViewportSize = {"width": 1280, "height": 900}
SETTLE_MS = 3000
DRIFT_SECONDS = 600
A_ROW = re.compile(r"^/\w[\w-]*/[0-9a-f]{8}-[0-9a-f-]{27}/$")


def at(path: str) -> Callable[[Page], None]:
    """A page that has an address."""

    def go(page: Page) -> None:
        page.goto(path)

    return go


def first_of(path: str) -> Callable[[Page], None]:
    """The page of the first row of a list."""

    def go(page: Page) -> None:
        rows = rows_of(page, path)
        assert rows, f"{path} has no rows"
        page.goto(rows[0])

    return go


def rows_of(page: Page, path: str) -> list[str]:
    """The addresses that the rows of a list lead to."""
    page.goto(path)
    links = page.locator(f"main a[href^='{path.split('?')[0]}']")
    found = [href for link in links.all() if (href := link.get_attribute("href")) and A_ROW.match(href)]
    return list(dict.fromkeys(found))


def review(page: Page) -> None:
    """The review of a definition, from its head on."""
    first_of("/definitions/?needs_review=true")(page)
    form = page.locator("#review-form")
    form.wait_for()
    page.wait_for_timeout(SETTLE_MS)
    form.evaluate("form => window.scrollTo(0, form.getBoundingClientRect().top + window.scrollY - 80)")


def topology_read(page: Page) -> None:
    """Open the check of an imported topology."""
    page.goto("/definitions/import")
    page.locator("main input[type=file]").set_input_files(TOPOLOGIES / "devnet-netconf-intro.yaml")
    page.get_by_role("button", name="Read topology").click()
    page.locator("main input[name=version]").wait_for()


def dry_run(page: Page) -> None:
    """Two more slots for the pool where sessions wait."""
    page.goto(f"/queue/dry-run?pool={CROWDED}")
    page.locator("main input[name=add_slots]").fill("2")
    page.locator("main input[name=add_slots]").press("Enter")
    page.wait_for_load_state()


def drift(page: Page) -> None:
    """Ports that are not as planned: some labs of the demo are edited, which shows when they are observed."""
    deadline = time.monotonic() + DRIFT_SECONDS
    while True:
        page.goto("/port-drift/")
        if page.locator("main tbody tr").count() or time.monotonic() > deadline:
            return
        for session in rows_of(page, "/sessions/?status=RUNNING"):
            page.goto(session)
            if (observe := page.get_by_role("button", name="Observe now")).count():
                observe.click()
        page.wait_for_timeout(20_000)


PICTURES: dict[str, Callable[[Page], None]] = {
    "overview": at("/"),
    "definitions": at("/definitions/"),
    "definition": first_of("/definitions/?needs_review=true"),
    "sessions": at("/sessions/"),
    "waiting": first_of("/sessions/?status=PENDING"),
    "pool": first_of("/pools/"),
    "slot": first_of("/slots/?state=READY&sort=-lease_count"),
    "queue": at("/queue/"),
    "dry-run": dry_run,
    "review": review,
    "import": topology_read,
    "fair-share": at("/fair-share/"),
    "usage": at("/usage/"),
    "project": first_of("/projects/"),
    "observers": at("/observers/"),
    "people": at("/people/"),
    "jobs": at("/jobs/"),
    "tokens": at("/tokens/"),
    "controllers": at("/controllers/"),
    "changes": at("/changes/"),
    # Last, so that there is something to see by then.
    "session": first_of("/sessions/?status=RUNNING&sort=starts_at"),
    "drift": drift,
}


def crowd(page: Page) -> None:
    """Request more sessions than the pool can hold, so that some wait."""
    for _ in range(MORE_THAN_FIT):
        page.goto("/sessions/new")
        page.get_by_label("Definition").fill(BIG_LAB)
        page.get_by_label("Project").fill("partners / sdwan-enable")
        page.get_by_role("button", name="Request session").click()
        page.wait_for_url(lambda url: "/new" not in url)


def bulk_import(page: Page) -> None:
    """A job, for the list of jobs."""
    page.goto("/definitions/bulk-import")
    page.locator("main input[type=file]").set_input_files([TOPOLOGIES / name for name in NEW_LABS])
    page.get_by_role("button", name="Import files").click()
    page.wait_for_url("**/jobs/**")


def take(page: Page, folder: Path, names: list[str]) -> None:
    """Take each image: the window in the light theme, after lazy panels have loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    log_in(page, "admin")
    crowd(page)
    bulk_import(page)
    for name in names:
        PICTURES[name](page)
        page.wait_for_timeout(SETTLE_MS)
        path = folder / f"{name}.png"
        page.screenshot(path=path, animations="disabled")
        print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="", help="a control plane that runs already, with the demo")
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder they are written to")
    parser.add_argument("names", nargs="*", help="only these pictures", metavar="name")
    arguments = parser.parse_args()
    with (
        demo(arguments.address, lives_seconds=LIVES_SECONDS) as address,
        page_on(address, viewport=SIZE, color_scheme="light") as page,
    ):
        take(page, arguments.to, arguments.names or list(PICTURES))


if __name__ == "__main__":
    main()
