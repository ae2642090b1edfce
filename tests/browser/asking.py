"""How people ask for a session."""

import re

from playwright.sync_api import Page, expect


def ask_for_session(page: Page, definition: str = "ccna-ospf-basics v1.0", *, far_off: bool = False) -> None:
    """Ends on the session's page; one that is far off waits for its turn."""
    page.goto("/sessions/new")
    page.get_by_label("Definition").fill(definition)
    page.get_by_label("Project").fill("academy / ccna-spring")
    page.get_by_label("Owner").fill("ccna-spring-01")
    if far_off:
        page.get_by_label(re.compile("^Starts")).fill("2035-01-02T08:00")
        page.get_by_label(re.compile("^Ends")).fill("2035-01-02T09:00")
    page.get_by_role("button", name="Ask for session").click()
    expect(page.get_by_role("heading", name=re.compile("^Session "))).to_be_visible()
