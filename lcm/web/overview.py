"""Panels of the overview."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from lcm.domain.roles import Role
from lcm.extensions import Extension
from lcm.web.access import htmx_of
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
    # Whether the installation has what the panel shows; if not, only Admins see it, who can configure it.
    is_configured: Callable[[], bool] = lambda: True


def overview_panels(snapshot: FleetSnapshot, column: Column) -> list[tuple[str, Mapping[str, Any]]]:
    """Return template and context of each panel of a column."""
    return [(part.template, part.read(snapshot)) for part in _parts() if part.column == column]


def lead_clauses(snapshot: FleetSnapshot) -> list[str]:
    """Return the panels' parts of the summary line."""
    return [part.clause(snapshot) for part in _parts() if part.clause]


def render_lazy_panel(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponseBase:
    """Render a panel for the overview; without JavaScript, as a page that reloads itself."""
    htmx = htmx_of(request)
    standalone = not htmx or htmx.target == LIVE
    part = "" if not htmx else f"#{LIVE}" if standalone else "#panel"
    return render(request, f"{template}{part}", {**context, "standalone": standalone})


def lazy_panels(column: Column, role: Role) -> list[LazyPanel]:
    """Return the lazy panels of a column for people with this role."""
    parts = Extension.installed().overview
    panels = [part for part in parts if isinstance(part, LazyPanel) and part.column == column]
    return [part for part in panels if role >= Role.ADMIN or part.is_configured()]


def _parts() -> list[OverviewPanel]:
    return [part for part in Extension.installed().overview if isinstance(part, OverviewPanel)]
