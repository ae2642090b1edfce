"""The path from a new webhook to a delivered event, with a real receiver: by keyboard, and on a phone."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from standardwebhooks import Webhook as Verifier

from tests.end_to_end.browser.accessibility import low_contrast, serious_violations
from tests.end_to_end.browser.keyboard import tab_to
from tests.support.control_plane import wait_until
from tests.support.webhook_receiver import Receiver, Reply, webhook_receiver

pytestmark = pytest.mark.xdist_group("browser")

FAILURE = "The endpoint responded 500 Internal Server Error."


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver() as found:
        yield found


@pytest.fixture
def name() -> str:
    return f"chat-{uuid.uuid4().hex[:8]}"


def press(page: Page, selector: str) -> None:
    tab_to(page, selector)
    page.keyboard.press("Enter")


def enter(page: Page, field: str, text: str) -> None:
    tab_to(page, f"[name={field}]")
    page.keyboard.type(text)


def problems_in_both_themes(page: Page) -> list[str]:
    found = serious_violations(page)
    page.emulate_media(color_scheme="dark")
    found += [f"{each} in dark" for each in low_contrast(page)]
    page.emulate_media(color_scheme="light")
    return found


def create_token(page: Page, name: str) -> None:
    page.goto("/tokens/new")
    page.get_by_label("Name").fill(name)
    page.get_by_label("cml-eu", exact=True).check()
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_label("Key")).to_be_visible()


def test_a_webhook_is_set_up_tested_and_used_by_keyboard_alone(open_page, receiver, name):
    page = open_page("admin", "/notifications/webhooks/", color_scheme="light", reduced_motion="reduce")
    press(page, "main a[href$='/webhooks/new']")
    expect(page.get_by_role("heading", name="New webhook")).to_be_visible()
    enter(page, "name", name)
    enter(page, "url", receiver.url)
    press(page, "main button[type=submit]")
    secret = page.get_by_label("Secret").input_value()
    press(page, "main a.button-primary")
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()

    receiver.plan = [Reply(500, body=b"out of order")]
    press(page, "main a[href$='/test']")
    expect(page.get_by_role("dialog").get_by_label("Event type")).to_be_focused()
    press(page, "dialog button[type=submit]")
    expect(page.locator(".title-row .badge")).to_have_text("Failed")
    expect(page.locator(".page-head .lead")).to_have_text(FAILURE)
    expect(page.get_by_text("out of order")).to_be_visible()
    assert problems_in_both_themes(page) == []
    press(page, "main a[href$='/retry']")
    expect(page.get_by_role("dialog").get_by_label("Reason")).to_be_focused()
    page.keyboard.type("Endpoint repaired")
    press(page, "dialog button[type=submit]")
    expect(page.locator(".title-row .badge")).to_have_text("Delivered")
    assert len({each.headers["webhook-id"] for each in receiver.requests}) == 1

    create_token(page, f"{name}-0")
    page.goto("/notifications/rules/new")
    enter(page, "name", name)
    enter(page, "webhook", name)
    enter(page, "event_types", "token.*")
    expect(page.locator("#rule-preview")).to_contain_text("The rule would have matched")
    tab_to(page, "[name=severities][value=critical]")
    page.keyboard.press("Space")
    expect(page.locator("#rule-preview")).to_contain_text("matched 0 events")
    page.keyboard.press("Space")
    expect(page.locator("#rule-preview")).not_to_contain_text("matched 0 events")
    assert problems_in_both_themes(page) == []
    press(page, "main button[type=submit].button-primary")
    expect(page.get_by_text(f"Rule {name} created.")).to_be_visible()

    create_token(page, name)
    wait_until(lambda: any(name in each.body for each in receiver.requests), "the event arrives")
    request = next(each for each in receiver.requests if name in each.body)
    event = Verifier(secret).verify(request.body, dict(request.headers))
    assert event == json.loads(request.body)
    page.goto("/notifications/?type=token.created")
    row = page.locator("tbody tr", has_text=name).first
    expect(row).to_contain_text("token.created")
    delivery = request.headers["webhook-id"]
    press(page, f"a[href='/notifications/{delivery}/']")
    expect(page.locator("pre.code")).to_contain_text(name)
    expect(page.locator(".title-row .badge")).to_have_text("Delivered")


def test_a_webhook_is_set_up_tested_and_disabled_on_a_phone(open_page, receiver, name):
    page = open_page("admin", "/notifications/webhooks/", viewport={"width": 390, "height": 844})
    page.get_by_role("link", name="New webhook").first.click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("URL").fill(receiver.url)
    page.get_by_role("button", name="Create webhook").click()
    page.get_by_role("link", name="Done").click()
    hook = page.url
    receiver.plan = [Reply(410)]
    page.get_by_role("link", name="Send test…").click()
    page.get_by_role("button", name="Send test").click()
    expect(page.locator(".page-head .lead")).to_contain_text("410 Gone")
    page.goto(hook)
    expect(page.locator(".notice")).to_contain_text(
        "LCM disabled this webhook: the endpoint responded 410 Gone"
    )
    page.get_by_role("link", name="Edit…").click()
    page.get_by_role("dialog").get_by_label("Enabled").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(f"Webhook {name} saved.")).to_be_visible()
    page.locator(".card-title a").first.click()
    page.get_by_role("link", name="Retry…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("Endpoint is back")
    page.get_by_role("button", name="Retry delivery").click()
    expect(page.locator(".title-row .badge")).to_have_text("Delivered")
    expect(page.get_by_text(re.compile("HTTP 204"))).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
