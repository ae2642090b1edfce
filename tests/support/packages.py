"""Installed packages with entry points, as pip leaves them: code and dist-info."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install_package(
    folder: Path, name: str, modules: Mapping[str, str], points: Mapping[str, Mapping[str, str]]
) -> Path:
    """Write a package with modules and entry points by group; the caller adds the folder to the path."""
    package = folder / name
    package.mkdir()
    (package / "__init__.py").touch()
    for module, text in modules.items():
        (package / module).write_text(text)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        f"[{group}]\n" + "\n".join(f"{key} = {value}" for key, value in named.items())
        for group, named in points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder
