"""Weight of a page: the files that the browser fetches."""

from typing import Any

from playwright.sync_api import Page

MOST_BYTES, MOST_FILES = 150_000, 12

ASKED = """() => [
    ...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource"),
].map(each => ({name: each.name, size: each.encodedBodySize, origin: new URL(each.name).origin}))"""


def too_heavy(page: Page) -> list[str]:
    """Return problems with a page's files: too large, too many, or from another host.

    One bundled style sheet; other files are scripts or lazy panels.
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
