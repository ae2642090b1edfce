"""Change what the installed apps add to LCM, within a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from lcm import extensions
from lcm.extensions import Extension
from scheduling.extensions import SchedulingExtension


@contextmanager
def added(extension: Extension) -> Iterator[None]:
    """Add an extension, as another installed app would."""
    with _declared([*extensions.declared(), extension]):
        yield


@contextmanager
def replaced(**entries: Any) -> Iterator[None]:
    """Replace entries of all installed apps by these."""
    with _declared([replace(SchedulingExtension.installed(), **entries)]):
        yield


@contextmanager
def _declared(found: list[Extension]) -> Iterator[None]:
    with patch.object(extensions, "declared", lambda: found):
        extensions._installed.cache_clear()
        try:
            yield
        finally:
            extensions._installed.cache_clear()
