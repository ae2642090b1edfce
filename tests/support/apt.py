"""Debian packages that only root can install, for programs with many dependencies."""

import os
import shutil
import subprocess


def apt_install(package: str) -> bool:
    """Install a package with apt-get if this process is root; return False if it is not installed."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    print(f"{package} is missing: installing it with apt-get", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "-y", "--no-install-recommends", package]):
        result = subprocess.run(["apt-get", "-qq", *arguments], env=env, capture_output=True, text=True)
        if result.returncode:
            print(f"apt-get {arguments[0]} failed: {result.stderr.strip()}", flush=True)
    return result.returncode == 0
