"""Parts of a page that other apps bring: each has its own address and loads by htmx after the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Panel:
    """Its address takes the id of what the page shows; without JavaScript it is a page of its own."""

    name: str
    title: str
    url_name: str
    # For which of the objects the page can show; all when not given.
    when: Callable[[Any], bool] | None = None


_panels: dict[str, dict[str, Panel]] = {}


def register_panel(
    *, page: str, name: str, title: str, url_name: str, when: Callable[[Any], bool] | None = None
) -> None:
    """Show a panel on a page, called when an app is ready.

    Pages are `definition`, `slot` and `session`; on the last also `session-first`, above the rest, and
    `session-wide`, under its life.
    """
    _panels.setdefault(page, {})[name] = Panel(name, title, url_name, when)


def panels_of(page: str, shown: Any) -> list[Panel]:
    """Those that are for what the page shows."""
    return [panel for panel in _panels.get(page, {}).values() if panel.when is None or panel.when(shown)]
