"""A Chromium and Playwright's driver for the browser tests."""

import os
import shutil
import subprocess
import sys

from lcm.supervisor.debian_packages import DownloadError, Package
from tests.support.apt import apt_install
from tests.support.control_plane import ROOT
from tests.support.errors import Missing

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The driver is a Node.js that needs this library; neither Chromium nor a minimal Debian includes it.
LIBATOMIC = Package("libatomic1", "usr/lib/*/libatomic.so.1")


def chromium() -> str:
    """Return the path of a Chromium; raise Missing if there is none and root cannot install it."""
    if chosen := os.environ.get("CHROMIUM"):
        return _require(shutil.which(chosen), f"CHROMIUM={chosen} is no program")
    found = _find()
    if found is None and apt_install("chromium"):
        found = _find()
    return _require(found, "install chromium or set CHROMIUM to its path")


def driver_environment() -> dict[str, str]:
    """Return the environment variables that Playwright's driver needs; raise Missing if it does not start."""
    failure = driver_failure({})
    if not failure:
        return {}
    try:
        library = LIBATOMIC.download(ROOT / "var" / "programs", report=print)
    except DownloadError as error:
        raise Missing(f"Playwright: its driver does not start: {failure} ({error})") from error
    path = os.environ.get("LD_LIBRARY_PATH")
    variables = {"LD_LIBRARY_PATH": f"{library.parent}:{path}" if path else str(library.parent)}
    if failure := driver_failure(variables):
        raise Missing(f"Playwright: its driver does not start: {failure}")
    return variables


def driver_failure(variables: dict[str, str]) -> str:
    """Return why the driver does not start; empty if it starts."""
    command = [sys.executable, "-m", "playwright", "--version"]
    result = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    return (result.stderr.strip() or f"exit code {result.returncode}") if result.returncode else ""


def _require(path: str | None, otherwise: str) -> str:
    if path is None:
        raise Missing(f"Chromium: {otherwise}")
    return path


def _find() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)
