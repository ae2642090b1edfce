"""A fake apt-get, and real packages for it to serve."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

# Needed by the fake and by dpkg-deb. An installed Prometheus must not be in the PATH.
TOOLS = ("dpkg-deb", "tar", "sh", "cp", "echo", "sleep")
CONTROL = "Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: Test <test@example.org>\n"


def path_with_apt(folder: Path, script: str) -> str:
    """Return a PATH with this shell script as apt-get. It records each call in `calls`."""
    programs = folder / "bin"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).symlink_to(shutil.which(name) or f"/bin/{name}")
    apt = programs / "apt-get"
    apt.write_text(f'#!/bin/sh\necho "$*" >>{shlex.quote(str(folder / "calls"))}\n{script}\n')
    apt.chmod(0o755)
    return str(programs)


def build_package(folder: Path, name: str, files: dict[str, str]) -> Path:
    """Return an archive with these programs."""
    root = folder / f"{name}-files"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN" / "control").write_text(CONTROL.format(name=name))
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
        (root / path).chmod(0o755)
    archive = folder / f"{name}.archive"
    subprocess.run(
        ["dpkg-deb", "--build", "-Znone", str(root), str(archive)],
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    return archive
