"""Where pictures are taken: a demo, and a page of a browser on it."""

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
def demo(address: str, *, lives_seconds: float = 0) -> Iterator[str]:
    """The control plane at this address, or one of our own with the demo that has lived for a while."""
    if address:
        yield address
        return
    with (
        tempfile.TemporaryDirectory(prefix="lcm-pictures-") as folder,
        control_plane(Path(folder) / "data", free_address(), DEBUG="true", DEMO="true") as plane,
    ):
        plane.start_and_wait()
        time.sleep(lives_seconds)
        yield str(plane.address)


@contextmanager
def page_on(address: str, **settings: Any) -> Iterator[Page]:
    """A page in a browser without motion."""
    os.environ.update(driver_environment())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield browser.new_context(
            base_url=f"http://{address}", reduced_motion="reduce", **settings
        ).new_page()
        browser.close()
