"""What the overview shows of the fleet: each app registers its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from lcm.web.attention import Look

Column = Literal["wide", "side"]
# The part of a page that asks for itself again.
LIVE = "live"


@dataclass(frozen=True)
class Part:
    """A panel that is fresh with every look: its template, what that shows, what it adds to the lead."""

    name: str
    column: Column
    template: str
    read: Callable[[Look], Mapping[str, Any]]
    clause: Callable[[Look], str] | None = None


@dataclass(frozen=True)
class LaterPart:
    """A panel that comes after the page, from an address of its own, and again; without JavaScript a link."""

    name: str
    column: Column
    title: str
    url_name: str


_parts: dict[str, Part] = {}
_later: dict[str, LaterPart] = {}


def register_part(part: Part | LaterPart) -> None:
    """Called when an app is ready."""
    if isinstance(part, Part):
        _parts[part.name] = part
    else:
        _later[part.name] = part


def parts(look: Look, column: Column) -> list[tuple[str, Mapping[str, Any]]]:
    """The fresh parts of a column: template and context each."""
    return [(part.template, part.read(look)) for part in _parts.values() if part.column == column]


def clauses(look: Look) -> list[str]:
    """What the fresh parts add to the sentence at the top."""
    return [part.clause(look) for part in _parts.values() if part.clause]


def later_panel(request: HttpRequest, template: str, context: Mapping[str, Any]) -> HttpResponseBase:
    """The panel for the overview; without JavaScript a page of its own, which is fresh by itself too."""
    htmx = request.htmx  # type: ignore[attr-defined]
    alone = not htmx or htmx.target == LIVE
    part = "" if not htmx else f"#{LIVE}" if alone else "#panel"
    return render(request, f"{template}{part}", {**context, "alone": alone})


def later_parts(column: Column) -> list[LaterPart]:
    return [part for part in _later.values() if part.column == column]
