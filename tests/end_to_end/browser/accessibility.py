"""Accessibility checks with axe, which skip repeated elements of the same kind."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# axe must not load style sheets itself: the content security policy blocks it.
ALL_RULES = {"resultTypes": ["violations"], "preload": False}
CONTRAST = {**ALL_RULES, "runOnly": ["color-contrast"]}
# The same on every page.
AROUND = {"exclude": [[".sidebar"], [".topbar"]]}
# axe is already loaded in the page.
STILL_THERE = Axe("0")

# Rows, entries and dots with the same elements and classes are checked once.
LEAVE_ONE_OF_EACH_LOOK = """() => {
    const name = each => each.tagName + "." + each.getAttribute("class");
    const seen = new Set();
    for (const each of document.querySelectorAll("main :is(tbody > tr, li, svg circle)")) {
        if (!each.isConnected) continue;
        const inside = [...each.querySelectorAll("*")].map(name);
        const look = [each.closest("[aria-label], [aria-labelledby], main").id, name(each), ...inside].join();
        seen.has(look) ? each.remove() : seen.add(look);
    }
}"""
REPEATED_IDS = """() => {
    const ids = [...document.querySelectorAll("[id]")].map(each => each.id);
    return ids.filter((id, place) => ids.indexOf(id) !== place);
}"""

# Hints wider than their field, tiles wider than their cell, tables wider than their panel, a wrapped brand
# name.
CUT_OFF = """() => {
    const pen = document.createElement("canvas").getContext("2d");
    const wide = each => {
        const look = getComputedStyle(each);
        pen.font = look.font;
        const room = each.clientWidth - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight);
        return each.offsetParent && pen.measureText(each.placeholder).width > room;
    };
    const hints = [...document.querySelectorAll("main input[placeholder]")].filter(wide);
    const tiles = [...document.querySelectorAll(".board > li")].filter(
        each => each.firstElementChild.scrollWidth > each.clientWidth);
    const panels = [...document.querySelectorAll(".panel")].filter(
        each => each.scrollWidth > each.clientWidth + 1);
    const brand = [...document.querySelectorAll(".brand")].filter(each => each.clientHeight > 36);
    const texts = [...tiles, ...brand].map(each => each.textContent.trim());
    const titles = panels.map(each => `panel ${each.getAttribute("aria-labelledby") || each.className}`);
    return [...hints.map(each => each.placeholder), ...texts, ...titles];
}"""


def cut_off(page: Page) -> list[str]:
    """Return elements that overflow their container."""
    found: list[str] = page.evaluate(CUT_OFF)
    return found


def keep_one_of_each_kind(page: Page) -> None:
    page.evaluate(LEAVE_ONE_OF_EACH_LOOK)


def repeated_ids(page: Page) -> list[str]:
    found: list[str] = page.evaluate(REPEATED_IDS)
    return found


def serious(page: Page, *, around: bool = True) -> list[str]:
    """Return serious violations of all rules; `around` includes the navigation and the top bar."""
    return _violations(Axe().run(page, None if around else AROUND, ALL_RULES).response)


def low_contrast(page: Page, *, around: bool = False) -> list[str]:
    """Return contrast violations in the main content, after `serious`; `around` as there."""
    return _violations(STILL_THERE.run(page, None if around else "main", CONTRAST).response)


def _violations(response: dict[str, Any]) -> list[str]:
    return [each["id"] for each in response["violations"] if each["impact"] in ("serious", "critical")]
