"""A Chromium for the browser tests: the machine's own, or Debian's when we may install it."""

import os
import shutil
import subprocess

from tests.bench.errors import Missing

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str:
    """Return the path of a Chromium; raise Missing when there is none and none can be installed."""
    if chosen := os.environ.get("CHROMIUM"):
        return _require(shutil.which(chosen), f"CHROMIUM={chosen} is no program")
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install()
        found = _find()
    return _require(found, "install chromium or set CHROMIUM to its path")


def _require(path: str | None, otherwise: str) -> str:
    if path is None:
        raise Missing(f"Chromium: {otherwise}")
    return path


def _find() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def _install() -> None:
    print("Chromium is missing: installing it with apt-get", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        subprocess.run(["apt-get", "-qq", *arguments], env=env, check=False)
