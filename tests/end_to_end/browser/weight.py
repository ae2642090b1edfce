"""Weight of a page: the files that the browser fetches."""

from typing import Any

from playwright.sync_api import Page

MOST_BYTES, MOST_FILES = 160_000, 12

LOADED_FILES = """() => [
    ...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource"),
].map(each => ({name: each.name, size: each.encodedBodySize, origin: new URL(each.name).origin}))"""


def too_heavy(page: Page) -> list[str]:
    """Return problems with a page's files: too large, too many, or from another host.

    One bundled style sheet; other files are scripts or lazy panels.
    """
    files: list[dict[str, Any]] = page.evaluate(LOADED_FILES)
    size = sum(each["size"] for each in files)
    sheets = sum(each["name"].endswith(".css") for each in files)
    origins = {each["origin"] for each in files} - {page.evaluate("location.origin")}
    found = {
        f"{size:,} bytes": not 10_000 < size < MOST_BYTES,
        f"{len(files)} files": len(files) >= MOST_FILES,
        f"{sheets} style sheets": sheets != 1,
        f"fetches from {', '.join(sorted(origins))}": bool(origins),
    }
    return [text for text, is_problem in found.items() if is_problem]
