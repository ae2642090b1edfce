"""Bundles the style sheets into one file, so that a page needs one request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

NAME = "css/lcm.css"
INDEX = "css/index.css"
_IMPORT = re.compile(r'@import url\("(?P<file>[^"]+)"\) layer\((?P<layer>\w+)\);')


class StyleSheetFinder(BaseFinder):
    """Finds `css/lcm.css` and rebuilds it from the imports of `css/index.css` when one of them changed."""

    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.storage = FileSystemStorage(settings.DATA_DIR / "made")
        self._sources: list[tuple[str, int, int]] = []

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if path != NAME:
            return []
        bundled = str(self._bundled())
        return [bundled] if find_all else bundled

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, FileSystemStorage]]:
        self._bundled()
        yield NAME, self.storage

    def _bundled(self) -> Path:
        path, index = Path(self.storage.path(NAME)), Path(settings.STATICFILES_DIRS[0]) / INDEX
        sources = [(str(each), *_version(each)) for each in sorted(index.parent.rglob("*.css"))]
        if sources == self._sources and path.exists():
            return path
        text = bundle(index)
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Several processes may write at the same time while others read.
            with NamedTemporaryFile("w", dir=path.parent, delete=False) as new:
                new.write(text)
            Path(new.name).replace(path)
        self._sources = sources
        return path


def _version(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def bundle(index: Path) -> str:
    """Return the text of a style sheet with each import replaced by the file in its layer."""

    def imported(found: re.Match[str]) -> str:
        return f"@layer {found['layer']} {{\n{(index.parent / found['file']).read_text()}}}\n"

    return _IMPORT.sub(imported, index.read_text())
