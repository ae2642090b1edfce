"""What happened on a worker: found by keyboard and on a phone."""

import re
from datetime import datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.accessibility import keep_one_of_each_kind, low_contrast, serious_violations
from tests.end_to_end.browser.keyboard import tab_to

pytestmark = pytest.mark.xdist_group("browser")

PHONE = {"width": 390, "height": 844}
HOUR = timedelta(hours=1)


@pytest.fixture
def open_slot(open_page):
    """`open_slot()`: the page of a worker, its key, and a time and entry of yesterday on it."""

    def open_it(**options) -> tuple[Page, str, datetime, str]:
        page: Page = open_page("viewer", "/", **options)
        key, row = next(found for key in slot_ids(page) if (found := entry_of_yesterday(page, key)))
        page.goto(f"/slots/{key}/")
        return page, key, datetime.fromisoformat(row["time"]), row["id"]

    return open_it


def slot_ids(page: Page) -> list[str]:
    rows = page.request.get("/slots/?size=200").text().partition("<tbody>")[2]
    return re.findall(r'href="/slots/([0-9a-f-]{36})/"', rows)


def entry_of_yesterday(page: Page, key: str) -> tuple[str, dict[str, str]] | None:
    """Return the slot and its newest entry of yesterday about a session, if it has one."""
    address = f"/slots/{key}/timeline?when=yesterday&kind=sessions&format=json"
    rows = page.request.get(address).json()
    return (key, rows[0]) if rows else None


def shown_times(page: Page) -> list[datetime]:
    times = page.locator("#results tbody time").evaluate_all("all => all.map(each => each.dateTime)")
    return [datetime.fromisoformat(each) for each in times]


def test_what_happened_yesterday_on_a_worker_is_found_by_keyboard(open_slot):
    page, key, moment, entry = open_slot()
    tab_to(page, f"a[href='/slots/{key}/timeline']")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Timeline of")
    tab_to(page, "#when")
    page.keyboard.type(f"yesterday {moment:%H:%M}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"when=yesterday\+"))
    expect(page.locator(f"#entry-{entry}")).to_be_visible()
    minute = moment.replace(second=0, microsecond=0)
    assert all(minute - HOUR <= each <= minute + HOUR for each in shown_times(page))

    tab_to(page, f"#entry-{entry}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#entry-{entry}$"))
    page.reload()
    expect(page.locator(f"#entry-{entry}")).to_be_in_viewport()
    assert max(shown_times(page)) < moment + timedelta(seconds=2)


def test_a_person_narrows_the_time_to_one_kind_and_steps_through_it_by_keyboard(open_slot):
    page, key, moment, entry = open_slot()
    page.goto(f"/slots/{key}/timeline?when=yesterday+{moment:%H:%M}")
    tab_to(page, "#filter-menus summary")
    page.keyboard.press("Enter")
    tab_to(page, "input[name=kind][value=heartbeats]")
    page.keyboard.press("Space")
    expect(page.locator(".chip")).to_contain_text("Kind: Heartbeats")
    expect(page.locator(f"#entry-{entry}")).to_have_count(0)
    expect(page).to_have_url(re.compile("when=yesterday"))
    page.goto(f"/slots/{key}/timeline?when=yesterday+{moment:%H:%M}")
    tab_to(page, "a[rel=next]")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("since="))
    expect(page.locator(f"#entry-{entry}")).to_have_count(0)
    tab_to(page, "a[rel=prev]")
    page.keyboard.press("Enter")
    expect(page.locator(f"#entry-{entry}")).to_be_visible()


def test_what_happened_yesterday_is_found_on_a_phone(open_slot):
    page, _key, moment, entry = open_slot(viewport=PHONE, reduced_motion="reduce")
    page.get_by_role("link", name="Timeline", exact=True).click()
    page.get_by_label("Jump to", exact=True).fill(f"yesterday {moment:%H:%M}")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(f"#entry-{entry}")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    keep_one_of_each_kind(page)
    assert serious_violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert low_contrast(page) == []


def test_the_timeline_works_without_javascript(open_slot):
    page, key, moment, entry = open_slot(java_script_enabled=False)
    page.goto(f"/slots/{key}/timeline")
    page.get_by_label("Jump to", exact=True).fill(f"yesterday {moment:%H:%M}")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(f"#entry-{entry}")).to_be_visible()


def test_a_drain_is_cancelled_by_keyboard_and_both_are_on_the_timeline(open_page):
    # A slot with a lease, which keeps draining until the session ends.
    page = open_page("operator", "/slots/?state=READY&sort=-lease_count")
    page.locator("tbody td.card-title a").first.click()
    page.wait_for_url("**/slots/*-*/")
    key = page.url.rstrip("/").rpartition("/")[2]
    for action, text in (("drain", "The class is over"), ("cancel-drain", "The class continues")):
        tab_to(page, f"a[href='/slots/{key}/{action}']")
        page.keyboard.press("Enter")
        page.get_by_label("Reason").wait_for()
        page.get_by_label("Reason").focus()
        page.keyboard.type(text)
        tab_to(page, "dialog button[type=submit]")
        page.keyboard.press("Enter")
        expect(page.locator("dialog[open]")).to_have_count(0)
        expect(page.locator("h1 + .badge")).to_have_text("Draining" if action == "drain" else "Ready")
    page.goto(f"/slots/{key}/timeline?when=1h&kind=people")
    rows = page.locator("#results tbody tr")
    expect(rows.nth(0)).to_contain_text("The class continues")
    expect(rows.nth(1)).to_contain_text("The class is over")
