"""`make docs-images`: the pictures of docs/guide.md, from a demo that has lived for a while."""

import argparse
import re
from collections.abc import Callable

from playwright.sync_api import Page, ViewportSize

from tests.bench.control_plane import ROOT
from tests.bench.visiting import log_in
from tests.pictures.stage import demo, page_on

FOLDER = ROOT / "docs" / "images" / "guide"
LIVES_SECONDS = 60
BIG_LAB = "soc-range-firewall v1.0"
MORE_THAN_FIT = 16
SIZE: ViewportSize = {"width": 1120, "height": 520}
A_ROW = re.compile(r"^/\w[\w-]*/[0-9a-f]{8}-[0-9a-f-]{27}/$")


def at(path: str) -> Callable[[Page], None]:
    """A page that has an address."""

    def go(page: Page) -> None:
        page.goto(path)

    return go


def first_of(path: str) -> Callable[[Page], None]:
    """The page of the first row of a list."""

    def go(page: Page) -> None:
        page.goto(path)
        links = page.locator(f"main a[href^='{path.split('?')[0]}']")
        rows = [href for link in links.all() if (href := link.get_attribute("href")) and A_ROW.match(href)]
        assert rows, f"{path} has no rows"
        page.goto(rows[0])

    return go


PICTURES: dict[str, Callable[[Page], None]] = {
    "overview": at("/"),
    "definitions": at("/definitions/"),
    "definition": first_of("/definitions/?needs_review=true"),
    "sessions": at("/sessions/"),
    "waiting": first_of("/sessions/?status=PENDING"),
    "pool": first_of("/pools/"),
    "slot": first_of("/slots/?state=READY&sort=-lease_count"),
    "queue": at("/queue/"),
    "fair-share": at("/fair-share/"),
    "observers": at("/observers/"),
    "changes": at("/changes/"),
    # Last, so that there are live figures by then.
    "session": first_of("/sessions/?status=RUNNING"),
}


def crowd(page: Page) -> None:
    """Ask for more than the pool can hold, so that some wait."""
    for _ in range(MORE_THAN_FIT):
        page.goto("/sessions/new")
        page.get_by_label("Definition").fill(BIG_LAB)
        page.get_by_label("Project").fill("partners / sdwan-enable")
        page.get_by_role("button", name="Ask for session").click()
        page.wait_for_url(lambda url: "/new" not in url)


def take(page: Page, names: list[str]) -> None:
    """Each picture: the upper part of the page, light, once what loads later has come."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    log_in(page, "admin")
    crowd(page)
    for name in names:
        PICTURES[name](page)
        page.wait_for_timeout(3000)
        path = FOLDER / f"{name}.png"
        page.screenshot(path=path, animations="disabled")
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} KB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="", help="a control plane that runs already, with the demo")
    parser.add_argument("names", nargs="*", help="only these pictures", metavar="name")
    arguments = parser.parse_args()
    with (
        demo(arguments.address, lives_seconds=LIVES_SECONDS) as address,
        page_on(address, viewport=SIZE, color_scheme="light") as page,
    ):
        take(page, arguments.names or list(PICTURES))


if __name__ == "__main__":
    main()
