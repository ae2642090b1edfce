"""From README's first command to a reviewed and applied definition, following README and pages only."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.support.control_plane import ROOT, ControlPlane

pytestmark = pytest.mark.xdist_group("browser")

README = " ".join((ROOT / "README.md").read_text().split())


def mentioned_in_readme(text: str) -> str:
    """Return a page text after checking that README mentions it in italics."""
    assert f"*{text}*" in README, text
    return text


def log_in_as_in_readme(page: Page, output: str) -> None:
    """Sign in at the URL that LCM prints, with the demo's credentials from README."""
    page.goto(re.search(r"LCM runs at (\S+)", output)[1])
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(re.search(r"\| `admin` \| `(\S+)` \|", README)[1])
    page.get_by_role("button", name="Sign in").click()


def choose(page: Page, choice: Locator) -> None:
    """Select an option and wait for the preview."""
    token = page.locator("#review-apply [name=token]")
    before = token.input_value()
    if not choice.is_checked():
        choice.check()
        expect(token).not_to_have_value(before)


def test_a_newcomer_finds_a_flagged_definition_and_corrects_it(open_page, plane: ControlPlane):
    page = open_page(None)
    log_in_as_in_readme(page, plane.output)
    attention_panel = page.get_by_role("region", name=mentioned_in_readme("Needs attention"))
    attention_panel.get_by_role("link").filter(has_text=mentioned_in_readme("to review")).click()
    page.locator("tbody").get_by_role("link").first.click()
    expect(page.locator(".badge", has_text="Needs review")).to_be_visible()

    review = page.get_by_role("form", name=mentioned_in_readme("Review"))
    recommended = review.get_by_role("radio", name=f": {mentioned_in_readme('Recommended')} ", disabled=False)
    expect(recommended).not_to_have_count(0)
    for choice in recommended.all():
        choose(page, choice)
    expect(page.locator("#review-impact")).to_contain_text("Sessions that would exceed the proposal")
    review.get_by_label(mentioned_in_readme("Reason")).fill("Past sessions say so")
    # The first revision in a fresh demo; other tests may have applied some here.
    mentioned_in_readme("Apply as revision 2")
    review.get_by_role("button", name="Apply as revision").click()
    expect(page.get_by_text(re.compile(r"Revision \d+ applied\."))).to_be_visible()

    revisions = page.get_by_role("region", name=mentioned_in_readme("Revisions"))
    expect(revisions.get_by_role("row").filter(has_text="Past sessions say so")).to_be_visible()
    main = page.get_by_role("navigation", name="Main")
    main.get_by_role("link", name=mentioned_in_readme("Change log")).click()
    expect(page.locator("tbody tr").filter(has_text="Past sessions say so").first).to_be_visible()
