"""What a page makes the browser fetch."""

from typing import Any

from playwright.sync_api import Page

MOST_BYTES, MOST_FILES = 150_000, 12

ASKED = """() => [
    ...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource"),
].map(each => ({name: each.name, size: each.encodedBodySize, origin: new URL(each.name).origin}))"""


def too_heavy(page: Page) -> list[str]:
    """What is wrong with what a page fetched: more than it may weigh, too many files, or from elsewhere.

    One style sheet, not one after the other; the rest is a script or a panel that comes later.
    """
    asked: list[dict[str, Any]] = page.evaluate(ASKED)
    size = sum(each["size"] for each in asked)
    sheets = sum(each["name"].endswith(".css") for each in asked)
    origins = {each["origin"] for each in asked} - {page.evaluate("location.origin")}
    found = {
        f"{size:,} bytes": not 10_000 < size < MOST_BYTES,
        f"{len(asked)} files": len(asked) >= MOST_FILES,
        f"{sheets} style sheets": sheets != 1,
        f"fetches from {', '.join(sorted(origins))}": bool(origins),
    }
    return [text for text, wrong in found.items() if wrong]
