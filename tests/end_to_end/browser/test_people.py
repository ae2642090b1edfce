"""People are added, invited and imported by keyboard, on a wide screen and on a phone."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.browser.keyboard import WIDTHS, check, press, size, tab_to, type_into

pytestmark = pytest.mark.xdist_group("browser")

SECRET = "a-long-new-secret"


@WIDTHS
def test_a_person_is_added_and_sets_a_password(
    width: int, open_page: Callable[..., Page], console_errors: list[str]
) -> None:
    name = f"nora-{uuid.uuid4().hex[:6]}"
    admin = open_page("admin", "/people/", **size(width))
    press(admin, "a[href='/people/new']")
    expect(admin.get_by_role("heading", name="Add person")).to_be_visible()
    check(admin)
    type_into(admin, "username", "admin")
    press(admin, "main button[type=submit]")
    expect(admin.locator(".field-error")).to_contain_text("There is already a person")
    type_into(admin, "username", name)
    tab_to(admin, "[name=projects]")
    admin.keyboard.press("Space")
    press(admin, "main button[type=submit]")
    expect(admin.get_by_role("heading", name=f"Password link for {name}")).to_be_visible()
    check(admin)
    link = admin.get_by_label("Link", exact=True).input_value()

    admin.goto(f"/people/?q={name}&view=")
    press(admin, "a[href$='/password-link']")
    check(admin)
    type_into(admin, "reason", "The link is lost")
    press(admin, "main [type=submit]")
    assert admin.get_by_label("Link", exact=True).input_value() != link
    link = admin.get_by_label("Link", exact=True).input_value()

    visitor = open_page(None, link, **size(width))
    expect(visitor.get_by_role("heading", name="Set password")).to_be_visible()
    assert link.rsplit("/", 1)[1] not in visitor.url
    check(visitor)
    type_into(visitor, "new", SECRET)
    type_into(visitor, "again", SECRET)
    visitor.keyboard.press("Enter")
    expect(visitor.get_by_text("Password set. Sign in with it.")).to_be_visible()
    type_into(visitor, "username", name)
    type_into(visitor, "password", SECRET)
    visitor.keyboard.press("Enter")
    expect(visitor.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
    assert all("422" in text for text in console_errors)
    console_errors.clear()


def test_a_used_link_is_refused(open_page: Callable[..., Page], console_errors: list[str]) -> None:
    page = open_page(None, "/set-password/MQ/abc-def", **size(390))
    expect(page.get_by_role("heading", name="Link not valid")).to_be_visible()
    check(page)
    assert all("404" in text for text in console_errors)
    console_errors.clear()


@WIDTHS
def test_people_are_imported_after_a_preview(width: int, open_page: Callable[..., Page]) -> None:
    name = f"omar-{uuid.uuid4().hex[:6]}"
    page = open_page("admin", "/people/import", **size(width))
    check(page)
    type_into(page, "text", f"username,role,projects\n{name},Boss,nowhere\n")
    press(page, "main button[type=submit]")
    expect(page.get_by_text("1 line has errors.")).to_be_visible()
    expect(page.locator(".field-error")).to_have_text(
        [re.compile("“Boss” is not a role"), re.compile("no project “nowhere”")]
    )
    check(page)
    press(page, "main a[href='/people/import']")
    type_into(page, "text", f"username,role,projects\n{name},Viewer,academy/ccna-spring\n")
    press(page, "main button[type=submit]")
    expect(page.get_by_text("1 person will be created.")).to_be_visible()
    check(page)
    press(page, "main button[type=submit]")
    expect(page.get_by_role("heading", name="1 person added")).to_be_visible()
    expect(page.get_by_label("User names, addresses and links as CSV")).to_have_value(
        re.compile(f"{name},,http://.*/set-password/")
    )
    check(page)


@WIDTHS
def test_the_page_of_a_deleted_domain_shows_who_deleted_it(
    width: int, open_page: Callable[..., Page], console_errors: list[str]
) -> None:
    name = f"domain-{uuid.uuid4().hex[:6]}"
    page = open_page("admin", "/domains/new", **size(width))
    type_into(page, "name", name)
    press(page, "main button[type=submit]")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    gone = page.url
    page.goto(f"{gone}delete")
    type_into(page, "reason", "Merged into academy")
    press(page, "main button[type=submit]")
    expect(page.get_by_text("deleted.")).to_be_visible()
    page.goto(gone)
    expect(page.get_by_role("heading", name="Last change")).to_be_visible()
    expect(page.get_by_text("Merged into academy")).to_be_visible()
    check(page)
    press(page, "main a[href='/domains/']")
    expect(page.get_by_role("heading", name="Domains")).to_be_visible()
    assert all("404" in text for text in console_errors)
    console_errors.clear()
