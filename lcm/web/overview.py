"""Panels of the overview, registered by each app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from lcm.web.attention import FleetSnapshot

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Column = Literal["wide", "side"]
# Id of the element that reloads itself.
LIVE = "live"


@dataclass(frozen=True)
class OverviewPanel:
    """A panel rendered with every load: template, context and its part of the summary line."""

    name: str
    column: Column
    template: str
    read: Callable[[FleetSnapshot], Mapping[str, Any]]
    clause: Callable[[FleetSnapshot], str] | None = None


@dataclass(frozen=True)
class LazyPanel:
    """A panel that loads after the page from its own URL and reloads; without JavaScript a link."""

    name: str
    column: Column
    title: StrOrPromise
    url_name: str


_parts: dict[str, OverviewPanel] = {}
_lazy_panels: dict[str, LazyPanel] = {}


def register_overview_panel(part: OverviewPanel | LazyPanel) -> None:
    """Register an overview panel; call it from `AppConfig.ready`."""
    if isinstance(part, OverviewPanel):
        _parts[part.name] = part
    else:
        _lazy_panels[part.name] = part


def overview_panels(snapshot: FleetSnapshot, column: Column) -> list[tuple[str, Mapping[str, Any]]]:
    """Return template and context of each panel of a column."""
    return [(part.template, part.read(snapshot)) for part in _parts.values() if part.column == column]


def lead_clauses(snapshot: FleetSnapshot) -> list[str]:
    """Return the panels' parts of the summary line."""
    return [part.clause(snapshot) for part in _parts.values() if part.clause]


def render_lazy_panel(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponseBase:
    """Render a panel for the overview; without JavaScript, as a page that reloads itself."""
    htmx = request.htmx  # type: ignore[attr-defined]
    standalone = not htmx or htmx.target == LIVE
    part = "" if not htmx else f"#{LIVE}" if standalone else "#panel"
    return render(request, f"{template}{part}", {**context, "standalone": standalone})


def lazy_panels(column: Column) -> list[LazyPanel]:
    return [part for part in _lazy_panels.values() if part.column == column]
