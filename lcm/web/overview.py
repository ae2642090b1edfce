"""What the overview shows of the fleet: each app registers its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from lcm.web.attention import FleetSnapshot

Column = Literal["wide", "side"]
# The part of a page that asks for itself again.
LIVE = "live"


@dataclass(frozen=True)
class OverviewPanel:
    """A panel that is fresh with every look: its template, what that shows, what it adds to the lead."""

    name: str
    column: Column
    template: str
    read: Callable[[FleetSnapshot], Mapping[str, Any]]
    clause: Callable[[FleetSnapshot], str] | None = None


@dataclass(frozen=True)
class LazyPanel:
    """A panel that comes after the page, from an address of its own, and again; without JavaScript a link."""

    name: str
    column: Column
    title: str
    url_name: str


_parts: dict[str, OverviewPanel] = {}
_later: dict[str, LazyPanel] = {}


def register_overview_panel(part: OverviewPanel | LazyPanel) -> None:
    """Called when an app is ready."""
    if isinstance(part, OverviewPanel):
        _parts[part.name] = part
    else:
        _later[part.name] = part


def overview_panels(look: FleetSnapshot, column: Column) -> list[tuple[str, Mapping[str, Any]]]:
    """The fresh parts of a column: template and context each."""
    return [(part.template, part.read(look)) for part in _parts.values() if part.column == column]


def lead_clauses(look: FleetSnapshot) -> list[str]:
    """What the fresh parts add to the sentence at the top."""
    return [part.clause(look) for part in _parts.values() if part.clause]


def render_lazy_panel(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponseBase:
    """The panel for the overview; without JavaScript a page of its own, which is fresh by itself too."""
    htmx = request.htmx  # type: ignore[attr-defined]
    alone = not htmx or htmx.target == LIVE
    part = "" if not htmx else f"#{LIVE}" if alone else "#panel"
    return render(request, f"{template}{part}", {**context, "alone": alone})


def lazy_panels(column: Column) -> list[LazyPanel]:
    return [part for part in _later.values() if part.column == column]
