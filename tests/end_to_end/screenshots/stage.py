"""A control plane with the demo, and a browser page on it, for screenshots."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.support.chromium import chromium, driver_environment
from tests.support.control_plane import control_plane, free_address
from tests.support.page_list import FLAGS


@contextmanager
def demo(address: str, *, warm_up_seconds: float = 0) -> Iterator[str]:
    """Yield the address of a control plane: the given one, or a new one whose demo has run for a while."""
    if address:
        yield address
        return
    with (
        tempfile.TemporaryDirectory(prefix="lcm-pictures-") as folder,
        control_plane(Path(folder) / "data", free_address(), DEBUG="true", DEMO="true") as plane,
    ):
        plane.start_and_wait()
        time.sleep(warm_up_seconds)
        yield str(plane.address)


@contextmanager
def page_on(address: str, **settings: Any) -> Iterator[Page]:
    """Yield a browser page with reduced motion."""
    os.environ.update(driver_environment())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser.new_context(
            base_url=f"http://{address}", reduced_motion="reduce", **settings
        ).new_page()
        browser.close()
