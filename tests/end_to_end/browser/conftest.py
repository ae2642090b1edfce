"""Chromium on a control plane with the demo fleet, shared by all browser tests of a worker."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.support.control_plane import ControlPlane, control_plane, free_address
from tests.support.page_list import FLAGS, log_in

# Milliseconds. Elements usually appear within one second; the rest is for a busy host.
TIMEOUT_MS = 30_000
expect.set_options(timeout=TIMEOUT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark browser tests; modules declare `xdist_group("browser")` to share a control plane."""
    for item in items:
        if "/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)


@pytest.fixture(autouse=True)
def plain_settings() -> None:
    """Leave Django's settings alone: the server under test is another process."""


@pytest.fixture(scope="package")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """LCM as in production (no DEBUG), with the demo fleet."""
    folder: Path = tmp_path_factory.mktemp("plane")
    settings = {
        "DEMO_LIVE": "false",
        "API_RATE": "10000/min",
        "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        "EVENT_INTERVAL": "0.5",
    }
    with control_plane(folder / "data", free_address(), **settings) as plane:
        plane.load_demo()
        plane.start_and_wait()
        yield plane


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Chromium for one module: while it runs, no other test of this worker can start an event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def console_errors() -> list[str]:
    """Console messages of the browser: errors and violations of the content security policy."""
    return []


@pytest.fixture(scope="package")
def logged_in() -> dict[str | None, list[Any]]:
    """Cookies of each user who has logged in, reused by later contexts."""
    return {}


@pytest.fixture(scope="module")
def spare_contexts() -> dict[str, list[BrowserContext]]:
    """Unused browser contexts by their settings; creating one takes longer than most tests."""
    return defaultdict(list)


@pytest.fixture
def open_page(
    plane: ControlPlane,
    chromium: Browser,
    console_errors: list[str],
    logged_in: dict[str | None, list[Any]],
    spare_contexts: dict[str, list[BrowserContext]],
) -> Iterator[Callable[..., Page]]:
    """`open_page("admin", "/sessions/")`: a new, logged-in page; fails on console errors."""
    used: list[tuple[str, BrowserContext]] = []

    def make(person: str | None, path: str = "/", **options: Any) -> Page:
        settings: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}, **options}
        context = (
            spare_contexts[repr(settings)].pop() if spare_contexts[repr(settings)] else new_context(settings)
        )
        used.append((repr(settings), context))
        context.add_cookies(logged_in.get(person, []))
        page = context.new_page()
        page.on(
            "console",
            lambda message: console_errors.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: console_errors.append(str(error)))
        page.goto(path)
        if person and "/login" in page.url:
            log_in(page, person)
            logged_in[person] = context.cookies()
            page.goto(path)
        return page

    def new_context(settings: dict[str, Any]) -> BrowserContext:
        context = chromium.new_context(base_url=f"http://{plane.address}", **settings)
        context.set_default_timeout(TIMEOUT_MS)
        # The context and its window stay open.
        context.new_page()
        return context

    yield make
    for settings, context in used:
        for page in context.pages[1:]:
            # A page that is navigating may never close.
            page.wait_for_load_state()
            page.close()
        context.clear_cookies()
        spare_contexts[settings].append(context)
    assert console_errors == []
