"""Parts of a page that other apps bring: each has its own address and loads by htmx after the page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Panel:
    """Its address takes the id of what the page shows; without JavaScript it is a page of its own."""

    name: str
    title: str
    url_name: str


_panels: dict[str, dict[str, Panel]] = {}


def register_panel(*, page: str, name: str, title: str, url_name: str) -> None:
    """Show a panel on a page (`session`, `definition`); called when an app is ready."""
    _panels.setdefault(page, {})[name] = Panel(name, title, url_name)


def panels_of(page: str) -> list[Panel]:
    return list(_panels.get(page, {}).values())
