"""`make screenshots`: every page at three widths in both themes, from the demo, into a folder."""

import argparse
import re
from pathlib import Path

from playwright.sync_api import FloatRect, Page

from tests.end_to_end.screenshots.stage import demo, page_on
from tests.support.control_plane import ROOT, wait_until
from tests.support.page_list import PAGES, example_ids, log_in, real_paths, show

WIDTHS = {"wide": 1920, "middle": 1280, "phone": 390}
THEMES = ("light", "dark")
MAX_HEIGHT = 12_000
REPAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def name_of(path: str) -> str:
    """Return a file name without ids: `/sessions/<id>/cancel` → `sessions-one-cancel`."""
    plain = re.sub(r"/[0-9a-f-]{36}/|/\d+/", "/one/", path).strip("/")
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-") or "overview"


def take(page: Page, folder: Path, url: str) -> int:
    """Load each page once and take it in every theme and width; return the number of screenshots."""
    page.goto("/login")
    count = _take_all_variants(page, folder, "login")
    log_in(page, "admin")
    wait_until(lambda: "session" in example_ids(page), "a session of the demo runs", pause=1)
    paths = real_paths(page)
    missing = len(PAGES) - len(paths)
    if missing:
        print(f"{missing} of {len(PAGES)} pages have no example object and are left out")
    for number, path in enumerate(paths):
        if re.search(url, path):
            show(page, path)
            count += _take_all_variants(page, folder, f"{number:02}-{name_of(path)}")
    return count


def _take_all_variants(page: Page, folder: Path, name: str) -> int:
    for theme in THEMES:
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        for size, width in WIDTHS.items():
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(REPAINTED)
            height = min(page.evaluate("document.documentElement.scrollHeight"), MAX_HEIGHT)
            clip: FloatRect = {"x": 0, "y": 0, "width": width, "height": height}
            page.screenshot(path=folder / f"{name}-{size}-{theme}.png", full_page=True, clip=clip)
    page.set_viewport_size({"width": WIDTHS["wide"], "height": 900})
    return len(THEMES) * len(WIDTHS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "var" / "screenshots")
    parser.add_argument("--address", default="", help="a control plane that runs already, with the demo")
    parser.add_argument("--pages", default="", help="only addresses that match this expression")
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    with demo(arguments.address) as address, page_on(address) as page:
        count = take(page, arguments.to, arguments.pages)
    print(f"{count} screenshots in {arguments.to}")


if __name__ == "__main__":
    main()
