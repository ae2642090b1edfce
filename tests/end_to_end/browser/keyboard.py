"""Use of pages by keyboard, on a wide screen and on a phone."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.end_to_end.browser.accessibility import low_contrast, serious_violations, small_targets

PHONE = {"width": 390, "height": 844}
# Tests of a task run at both widths; a test with this size only is on a phone.
WIDTHS = pytest.mark.parametrize("width", [1280, 390], ids=["wide", "phone"])
MOST_STOPS = 250
WIDE_ELEMENTS = """() => [...document.querySelectorAll("body *")]
    .filter((each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".scroll"))
    .slice(0, 5).map((each) => each.outerHTML.slice(0, 200))"""


def size(width: int = PHONE["width"]) -> dict[str, Any]:
    """Return the settings of a browser context with this width; a phone has a touch screen."""
    viewport = {"width": width, "height": 844}
    return {"viewport": viewport, "has_touch": width == PHONE["width"], "reduced_motion": "reduce"}


def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """Press Tab, or another key, until an element that matches has the focus."""
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{selector} is not reached by {key}")


def type_into(page: Page, name: str, text: str) -> None:
    """Replace the value of a field."""
    tab_to(page, f"[name={name}]")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type(text)


def press(page: Page, selector: str) -> None:
    """Follow a link or submit a form with Enter."""
    tab_to(page, selector)
    with page.expect_navigation():
        page.keyboard.press("Enter")


def confirm(page: Page, reason: str) -> None:
    """Enter a reason in the dialog that opens, which has the focus, and submit it."""
    page.locator("dialog[open]").get_by_label("Reason").wait_for()
    page.wait_for_function("() => document.activeElement.name === 'reason'")
    page.keyboard.type(reason)
    press(page, "dialog [type=submit]")


def check(page: Page) -> None:
    """Check that the page is accessible, not wider than the screen, and usable with a finger."""
    width = page.viewport_size["width"] if page.viewport_size else 0
    problems = serious_violations(page)
    if page.evaluate("document.documentElement.scrollWidth") > width:
        problems += ["the page is wider than the screen", *page.evaluate(WIDE_ELEMENTS)]
    if width == PHONE["width"]:
        problems += [f"too small: {each}" for each in small_targets(page)]
    assert not problems, "\n".join(problems)


def check_in_both_themes(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    check(page)
    page.emulate_media(color_scheme="dark")
    problems = low_contrast(page, around=True)
    assert not problems, "\n".join(problems)
