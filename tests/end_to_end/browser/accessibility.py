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
AXE = Axe("0")

# Rows, entries and dots with the same elements and classes are checked once.
KEEP_ONE_OF_EACH_STYLE = """() => {
    const name = each => each.tagName + "." + each.getAttribute("class");
    const seen = new Set();
    for (const each of document.querySelectorAll("main :is(tbody > tr, li, svg circle)")) {
        if (!each.isConnected) continue;
        const inside = [...each.querySelectorAll("*")].map(name);
        const key = [each.closest("[aria-label], [aria-labelledby], main").id, name(each), ...inside].join();
        seen.has(key) ? each.remove() : seen.add(key);
    }
}"""
REPEATED_IDS = """() => {
    const ids = [...document.querySelectorAll("[id]")].map(each => each.id);
    return ids.filter((id, place) => ids.indexOf(id) !== place);
}"""

# Hints wider than their field, tiles wider than their cell, tables wider than their panel, a wrapped brand
# name, names in tables of more than two lines.
CUT_OFF = """() => {
    const pen = document.createElement("canvas").getContext("2d");
    const wide = each => {
        const style = getComputedStyle(each);
        pen.font = style.font;
        const room = each.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        return each.offsetParent && pen.measureText(each.placeholder).width > room;
    };
    const hints = [...document.querySelectorAll("main input[placeholder]")].filter(wide);
    const tiles = [...document.querySelectorAll(".board > li")].filter(
        each => each.firstElementChild.scrollWidth > each.clientWidth);
    const panels = [...document.querySelectorAll(".panel")].filter(
        each => each.scrollWidth > each.clientWidth + 1);
    const brand = [...document.querySelectorAll(".brand")].filter(each => each.clientHeight > 36);
    const names = [...document.querySelectorAll("main td :is(.name, .id)")].filter(
        each => each.clientHeight === 0 && each.getClientRects().length > 2);
    const texts = [...tiles, ...brand, ...names].map(each => each.textContent.trim());
    const titles = panels.map(each => `panel ${each.getAttribute("aria-labelledby") || each.className}`);
    return [...hints.map(each => each.placeholder), ...texts, ...titles];
}"""

# Controls that a finger could miss. Links in texts and tables are exempt, as is a row of a list, which is one
# target; labels extend checkboxes.
SMALL_TARGETS = """() => {
    const controls = "button, summary, input, select, textarea, a.button, nav a, .menu-list a";
    const area = document.querySelector("dialog[open]") || document.querySelector("main");
    return [...area.querySelectorAll(controls)].filter(each => {
        if (!each.checkVisibility({visibilityProperty: true}) || each.type === "hidden") return false;
        if (each.closest(".visually-hidden, .crumbs, .lines :not(.pick, .row-actions)")) return false;
        const target = each.matches("[type=checkbox], [type=radio]") ? each.closest("label") || each : each;
        const box = target.getBoundingClientRect();
        return box.height < 39.5 || box.width < 39.5;
    }).map(each => each.outerHTML.slice(0, 200));
}"""


def overflowing_elements(page: Page) -> list[str]:
    """Return elements that overflow their container."""
    found: list[str] = page.evaluate(CUT_OFF)
    return found


def small_targets(page: Page) -> list[str]:
    """Return the controls that are smaller than 40 px, of the open dialog or else of the page."""
    found: list[str] = page.evaluate(SMALL_TARGETS)
    return found


def keep_one_of_each_kind(page: Page) -> None:
    page.evaluate(KEEP_ONE_OF_EACH_STYLE)


def repeated_ids(page: Page) -> list[str]:
    found: list[str] = page.evaluate(REPEATED_IDS)
    return found


def serious_violations(page: Page, *, around: bool = True) -> list[str]:
    """Return serious violations of all rules; `around` includes the navigation and the top bar."""
    return _violations(Axe().run(page, None if around else AROUND, ALL_RULES).response)


def low_contrast(page: Page, *, around: bool = False) -> list[str]:
    """Return contrast violations in the main content, after `serious_violations`; `around` as there."""
    return _violations(AXE.run(page, None if around else "main", CONTRAST).response)


def _violations(response: dict[str, Any]) -> list[str]:
    return [each["id"] for each in response["violations"] if each["impact"] in ("serious", "critical")]
