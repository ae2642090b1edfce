"""Panels that other apps add to a page; each loads by htmx from its own URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class Panel:
    """A panel whose URL takes the id of the page's object; without JavaScript it is a page of its own."""

    name: str
    title: StrOrPromise
    url_name: str
    # Limits the objects that show the panel; default: all.
    when: Callable[[Any], bool] | None = None


_panels: dict[str, dict[str, Panel]] = {}


def register_panel(
    *, page: str, name: str, title: StrOrPromise, url_name: str, when: Callable[[Any], bool] | None = None
) -> None:
    """Add a panel to a page; call it from `AppConfig.ready`.

    Pages are `definition`, `slot` and `session`. A session also has `session-first`, at the top, and
    `session-wide`, below its lifecycle.
    """
    _panels.setdefault(page, {})[name] = Panel(name, title, url_name, when)


def panels_of(page: str, shown: Any) -> list[Panel]:
    """Return the panels that apply to the page's object."""
    return [panel for panel in _panels.get(page, {}).values() if panel.when is None or panel.when(shown)]
