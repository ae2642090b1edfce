"""`make docs-images`: the images of docs/guide.md, from a demo that has run for a while."""

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
WARM_UP_SECONDS = 60
BIG_LAB = "soc-range-firewall v1.0"
CROWDED = "cml-us"
# Their titles differ from the definitions of the demo.
NEW_LABS = ("ccna-vlan-trunking.yaml", "dc-vxlan-fabric.yaml", "sdwan-edge-lab.yaml")
MORE_THAN_FIT = 16
SIZE: ViewportSize = {"width": 1280, "height": 900}
SETTLE_MS = 3000
DRIFT_SECONDS = 600
FIRST_ROW = re.compile(r"^/\w[\w-]*/[0-9a-f]{8}-[0-9a-f-]{27}/$")


def at(path: str) -> Callable[[Page], None]:
    """Return a function that opens this URL."""

    def go(page: Page) -> None:
        page.goto(path)

    return go


def first_of(path: str) -> Callable[[Page], None]:
    """Return a function that opens the page of a list's first row."""

    def go(page: Page) -> None:
        rows = rows_of(page, path)
        assert rows, f"{path} has no rows"
        page.goto(rows[0])

    return go


def rows_of(page: Page, path: str) -> list[str]:
    """Return the URLs of the rows of a list."""
    page.goto(path)
    links = page.locator(f"main a[href^='{path.split('?')[0]}']")
    found = [href for link in links.all() if (href := link.get_attribute("href")) and FIRST_ROW.match(href)]
    return list(dict.fromkeys(found))


def review(page: Page) -> None:
    """Open the review of a definition, scrolled to its heading."""
    first_of("/definitions/?needs_review=true")(page)
    form = page.locator("#review-form")
    form.wait_for()
    page.wait_for_timeout(SETTLE_MS)
    form.evaluate("form => window.scrollTo(0, form.getBoundingClientRect().top + window.scrollY - 80)")


def topology_read(page: Page) -> None:
    """Open the preview of an imported topology."""
    page.goto("/definitions/import")
    page.locator("main input[type=file]").set_input_files(TOPOLOGIES / "devnet-netconf-intro.yaml")
    page.get_by_role("button", name="Read topology").click()
    page.locator("main input[name=version]").wait_for()


def dry_run(page: Page) -> None:
    """Open a dry run with two more slots in the pool of the waiting sessions."""
    page.goto(f"/queue/dry-run?pool={CROWDED}")
    page.locator("main input[name=add_slots]").fill("2")
    page.locator("main input[name=add_slots]").press("Enter")
    page.wait_for_load_state()


def drift(page: Page) -> None:
    """Open the port drift; the demo edits some labs, which LCM detects when it observes them."""
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


IMAGES: dict[str, Callable[[Page], None]] = {
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
    # Last, because the demo needs time until deviations appear.
    "session": first_of("/sessions/?status=RUNNING&sort=starts_at"),
    "drift": drift,
}


def fill_queue(page: Page) -> None:
    """Request more sessions than the pool can hold, so that some wait."""
    for _ in range(MORE_THAN_FIT):
        page.goto("/sessions/new")
        page.get_by_label("Definition").fill(BIG_LAB)
        page.get_by_label("Project").fill("partners / sdwan-enable")
        page.get_by_role("button", name="Request session").click()
        page.wait_for_url(lambda url: "/new" not in url)


def bulk_import(page: Page) -> None:
    """Start a bulk import, so that the list of jobs is not empty."""
    page.goto("/definitions/bulk-import")
    page.locator("main input[type=file]").set_input_files([TOPOLOGIES / name for name in NEW_LABS])
    page.get_by_role("button", name="Import files").click()
    page.wait_for_url("**/jobs/**")


def take(page: Page, folder: Path, names: list[str]) -> None:
    """Take each image: the window in the light theme, after lazy panels have loaded."""
    folder.mkdir(parents=True, exist_ok=True)
    log_in(page, "admin")
    fill_queue(page)
    bulk_import(page)
    for name in names:
        IMAGES[name](page)
        page.wait_for_timeout(SETTLE_MS)
        path = folder / f"{name}.png"
        page.screenshot(path=path, animations="disabled")
        print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="", help="a control plane that runs already, with the demo")
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder they are written to")
    parser.add_argument("names", nargs="*", help="only these images", metavar="name")
    arguments = parser.parse_args()
    with (
        demo(arguments.address, warm_up_seconds=WARM_UP_SECONDS) as address,
        page_on(address, viewport=SIZE, color_scheme="light") as page,
    ):
        take(page, arguments.to, arguments.names or list(IMAGES))


if __name__ == "__main__":
    main()
