"""Static files: URLs that change with the file."""

from __future__ import annotations

import os
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage


class VersionedStorage(StaticFilesStorage):
    """Versioned URLs for uncollected files (DEBUG), so that browsers cache a file until it changes."""

    def url(self, name: str | None, *args: object, **kwargs: Any) -> str:
        address = str(super().url(name))
        path = finders.find(name) if name else None
        return f"{address}?v={os.stat(path).st_mtime_ns:x}" if isinstance(path, str) else address
