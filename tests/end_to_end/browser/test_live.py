"""The live panel of a session in a browser, without Prometheus."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser")


def test_a_running_session_explains_to_an_admin_what_live_statistics_require(open_page):
    page = open_page("admin", "/sessions/?status=RUNNING")
    page.locator("#results tbody tr a").first.click()
    panel = page.locator("#panel-live")
    expect(panel).to_contain_text("Not configured")
    expect(panel).to_contain_text("PROMETHEUS_URL")
    page.goto("/live/busiest")
    expect(page.locator("#panel-busiest")).to_contain_text("PROMETHEUS_URL")
