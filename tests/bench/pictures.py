"""`python -m tests.bench.pictures`: take the pictures of docs/guide.md from a demo.

It starts a demo of its own and lets it live for a while; `--url` takes one that runs already.
"""

import argparse
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.bench.chromium import chromium
from tests.bench.control_plane import ROOT, control_plane, free_address

FOLDER = ROOT / "docs" / "images" / "guide"
LOG_IN = ("admin", "demo-admin")
LIVES_SECONDS = 60
BIG_LAB = "soc-range-firewall v1.0"
MORE_THAN_FIT = 16
SIZE = {"width": 1120, "height": 520}
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
    "slot": first_of("/slots/?state=READY"),
    "queue": at("/queue/"),
    "fair-share": at("/fair-share/"),
    "observers": at("/observers/"),
    "changes": at("/changes/"),
    # Last, so that there are live figures by then.
    "session": first_of("/sessions/?status=RUNNING"),
}


def log_in(page: Page) -> None:
    name, password = LOG_IN
    page.goto("/login")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda url: "/login" not in url)


def crowd(page: Page) -> None:
    """Ask for more than the pool can hold, so that some wait."""
    for _ in range(MORE_THAN_FIT):
        page.goto("/sessions/new")
        page.get_by_label("Definition").fill(BIG_LAB)
        page.get_by_label("Project").fill("partners / sdwan-enable")
        page.get_by_role("button", name="Ask for session").click()
        page.wait_for_url(lambda url: "/new" not in url)


def take(url: str, names: list[str]) -> None:
    """Each picture: the upper part of the page, light, once what loads later has come."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_context(base_url=url, viewport=SIZE, color_scheme="light").new_page()
        log_in(page)
        crowd(page)
        for name in names:
            PICTURES[name](page)
            page.wait_for_timeout(3000)
            path = FOLDER / f"{name}.png"
            page.screenshot(path=path, animations="disabled")
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} KB")
        browser.close()


@contextmanager
def demo() -> Iterator[str]:
    """A demo of our own that has lived for a while, so that something runs and something waits."""
    with (
        tempfile.TemporaryDirectory(prefix="lcm-pictures-") as folder,
        control_plane(Path(folder) / "data", free_address(), DEMO="true") as plane,
    ):
        plane.start_and_wait()
        time.sleep(LIVES_SECONDS)
        yield f"http://{plane.address}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a demo that runs already")
    parser.add_argument("names", nargs="*", help="only these pictures", metavar="name")
    options = parser.parse_args()
    names = options.names or list(PICTURES)
    if options.url:
        take(options.url, names)
    else:
        with demo() as url:
            take(url, names)


if __name__ == "__main__":
    main()
