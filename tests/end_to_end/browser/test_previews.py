"""Previews while typing, by keyboard, on a wide screen and on a phone: the review and the weights."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.keyboard import WIDTHS, check, size, tab_to

pytestmark = pytest.mark.xdist_group("browser")


@WIDTHS
def test_errors_of_a_review_stand_at_their_fields(width: int, open_page: Callable[..., Page]) -> None:
    page = open_page("admin", "/definitions/?q=dc-vxlan-fabric", **size(width))
    page.locator("tbody a.name, tbody .card-title a").first.click()
    page.wait_for_selector("#review-form")
    tab_to(page, "[name=cpu_cores_custom]")
    page.keyboard.type("3")
    expect(page.locator("#chart-cpu_cores .label-proposal")).to_have_text("proposal 3")
    tab_to(page, "[name=memory_gb_custom]")
    page.keyboard.type("-1")
    problem = page.locator("#memory_gb-problem .field-error")
    expect(problem).to_contain_text("Memory must be between 0.01")
    expect(page.locator("#review-impact .impact-value").filter(has_text="–")).to_have_count(5)
    expect(page.get_by_role("button", name=re.compile("^Apply as"))).to_be_disabled()
    expect(page.locator("[name=cpu_cores_custom]")).to_have_value("3")
    check(page)
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("20")
    expect(problem).to_have_count(0)
    expect(page.get_by_role("button", name=re.compile("^Apply as"))).to_be_enabled()
    expect(page.locator("[name=memory_gb_custom]")).to_be_focused()


@WIDTHS
def test_a_row_shows_its_new_values_while_a_weight_is_typed(
    width: int, open_page: Callable[..., Page]
) -> None:
    page = open_page("admin", "/fair-share/?pool=cml-eu", **size(width))
    tab_to(page, "input.weight")
    page.keyboard.press("ControlOrMeta+A")
    page.keyboard.type("97")
    row = page.locator(".tree tbody tr").first
    expect(row.locator("[id^=new-share]")).to_have_text(re.compile(r"→ [\d.]+ %"))
    expect(row.locator("[id^=new-factor]")).to_have_text(re.compile(r"→ \d\.\d{3}"))
    expect(row.locator("input.weight")).to_be_focused()
    check(page)
    expect(page.get_by_role("link", name="Discard")).to_be_visible()
