"""What happened on a worker: found by keyboard, on a wide screen and on a phone."""

import re
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.accessibility import keep_one_of_each_kind
from tests.end_to_end.browser.keyboard import (
    WIDTHS,
    check_in_both_themes,
    confirm,
    press,
    size,
    tab_to,
    type_into,
)
from tests.support.page_list import make_controller_token

pytestmark = pytest.mark.xdist_group("browser")

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


@WIDTHS
def test_what_happened_yesterday_on_a_worker_is_found_by_keyboard(width, open_slot):
    page, key, moment, entry = open_slot(**size(width))
    press(page, f"a[href='/slots/{key}/timeline']")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Timeline of")
    type_into(page, "when", f"yesterday {moment:%H:%M}")
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
    keep_one_of_each_kind(page)
    check_in_both_themes(page)


@WIDTHS
def test_a_person_narrows_the_time_to_one_kind_and_steps_through_it_by_keyboard(width, open_slot):
    page, key, moment, entry = open_slot(**size(width))
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


def test_the_timeline_works_without_javascript(open_slot):
    page, key, moment, entry = open_slot(java_script_enabled=False)
    page.goto(f"/slots/{key}/timeline")
    page.get_by_label("Jump to", exact=True).fill(f"yesterday {moment:%H:%M}")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(f"#entry-{entry}")).to_be_visible()


@WIDTHS
def test_a_drain_is_cancelled_by_keyboard_and_both_are_on_the_timeline(width, open_page, controller_key):
    # A slot with a lease, which keeps draining until the session ends.
    page = open_page("operator", "/slots/?state=READY&sort=-lease_count&view=", **size(width))
    press(page, "tbody td.card-title a")
    key = page.url.rstrip("/").rpartition("/")[2]
    # The demo has no controllers; without heartbeats for five minutes a drain cannot be cancelled.
    beat = {"Authorization": f"Bearer {controller_key}", "Content-Type": "application/json"}
    assert page.request.post(f"/api/internal/slots/{key}/heartbeat", headers=beat, data={}).ok
    session = page.locator("main a[href^='/sessions/']").first.get_attribute("href")
    assert session is not None

    press_and_confirm(page, f"a[href='/slots/{key}/drain']", "The class is over")
    expect(page.locator("h1 + .badge")).to_have_text("Draining")
    page.goto(session)
    press(page, f".notice a[href='/slots/{key}/']")
    press_and_confirm(page, f"a[href='/slots/{key}/cancel-drain']", "The class continues")
    expect(page.locator("h1 + .badge")).to_have_text("Ready")
    page.goto(f"/slots/{key}/timeline?when=1h&kind=people")
    rows = page.locator("#results tbody tr")
    expect(rows.nth(0)).to_contain_text("The class continues")
    expect(rows.nth(1)).to_contain_text("The class is over")


def press_and_confirm(page: Page, selector: str, reason: str) -> None:
    tab_to(page, selector)
    page.keyboard.press("Enter")
    confirm(page, reason)


@pytest.fixture
def controller_key(open_page) -> str:
    """The key of a controller of both pools."""
    return make_controller_token(
        open_page("admin", "/tokens/new"), f"beat-{uuid4().hex[:8]}", "cml-eu", "cml-us"
    )
