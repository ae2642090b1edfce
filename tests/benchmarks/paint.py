"""First contentful paint of the main pages in Chromium, on the demo as `make run` starts it.

A first visit starts with an empty browser cache; “response” is the server's response time of a later visit.
The floor is `/healthz`, a line of text: the time of the browser itself on this machine.

To exclude the start of the browser process, each new profile shows that line of text first. A visit starts
when the previous page is idle, so that the server does not still render its panels. Measurements start when
the processes of the demo together use less than half a core.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.benchmarks.measuring import Timing, print_table
from tests.benchmarks.planes import cpu_seconds_of, running_plane
from tests.support.chromium import chromium, driver_environment
from tests.support.control_plane import ControlPlane, wait_until
from tests.support.page_list import FLAGS, example_ids, log_in

AIM_MS = 300
FIRST_VISITS, NEXT_VISITS = 7, 30
SETTLED, LOOK_SECONDS, SETTLE_SECONDS = 0.5, 3, 120
PAGES = (
    "/healthz",
    "/login",
    "/",
    "/definitions/",
    "/definitions/{definition}/",
    "/sessions/",
    "/sessions/{session}/",
    "/pools/{pool}/",
    "/slots/{slot}/",
    "/queue/",
    "/fair-share/",
    "/observers/",
    "/controllers/",
    "/changes/",
)
ENTRIES = """() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    response: performance.getEntriesByType("navigation")[0].responseEnd,
    requests: performance.getEntriesByType("resource").length + 1,
})"""


def main() -> None:
    os.environ.update(driver_environment())
    with running_plane(DEBUG="true", DEMO="true") as plane, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        settings: dict[str, Any] = {"base_url": f"http://{plane.address}"}
        page = browser.new_context(**settings).new_page()
        log_in(page, "admin")
        wait_until(lambda: "session" in example_ids(page), "a session of the demo runs")
        known = example_ids(page)
        _settle(plane)
        settings["storage_state"] = page.context.storage_state()
        rows = [_row(browser, settings, path, path.format(**known)) for path in PAGES]
        browser.close()
    print_table(
        f"First contentful paint on the demo, load average {os.getloadavg()[0]:.1f}",
        [
            "page",
            "first visit, p50 ms",
            "next visits, p50 ms",
            "p95 ms",
            "response, p50 ms",
            "requests",
            "aim",
        ],
        rows,
    )


def _settle(plane: ControlPlane) -> None:
    """Wait until the demo uses less than half a core."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < deadline:
        before = _cpu_seconds(plane)
        time.sleep(LOOK_SECONDS)
        if (_cpu_seconds(plane) - before) / LOOK_SECONDS < SETTLED:
            return
    print("The demo has not settled; figures include its start.", file=sys.stderr)


def _cpu_seconds(plane: ControlPlane) -> float:
    seconds = 0.0
    for pid in plane.processes():
        with suppress(OSError):  # The process may have ended.
            seconds += cpu_seconds_of(pid)
    return seconds


def _row(browser: Browser, settings: dict[str, Any], name: str, path: str) -> list[str]:
    """Measure a page after one warm-up visit."""
    if path == "/login":
        settings = {"base_url": settings["base_url"]}
    visits = []
    for _ in range(FIRST_VISITS + 1):
        context = browser.new_context(**settings)
        page = context.new_page()
        page.goto("/healthz")
        visits.append(_visit(page, path))
        last = _visit(page, path)
        if len(visits) <= FIRST_VISITS:
            context.close()
    again = [last, *(_visit(page, path) for _ in range(NEXT_VISITS - 1))]
    context.close()
    first, following = _timing(visits[1:], "paint"), _timing(again, "paint")
    figures = [first.p50, following.p50, following.p95, _timing(again, "response").p50]
    met = "met" if max(first.p50, following.p95) <= AIM_MS else f"> {AIM_MS} ms"
    return [name, *(f"{each:.0f}" for each in figures), f"{visits[-1]['requests']:.0f}", met]


def _visit(page: Page, path: str) -> dict[str, float]:
    page.goto(path)
    while (entries := page.evaluate(ENTRIES))["paint"] is None:
        page.wait_for_timeout(20)
    page.wait_for_function("() => !document.querySelector('.htmx-request')")
    found: dict[str, float] = entries
    return found


def _timing(visits: list[dict[str, float]], name: str) -> Timing:
    return Timing([visit[name] / 1000 for visit in visits])


if __name__ == "__main__":
    main()
