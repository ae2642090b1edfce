"""Panels that apps add to a page: part of its response, or loaded by htmx from their own URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lcm.domain.roles import Role
from lcm.extensions import Extension

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.safestring import SafeString
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class Panel:
    """A panel whose URL takes the id of the page's object; without JavaScript it is a page of its own.

    Pages are `definition`, `slot` and `session`. A session also has `session-first`, at the top, and
    `session-wide`, below its lifecycle.
    """

    page: str
    name: str
    title: StrOrPromise
    url_name: str
    # Whether the installation has what the panel shows; if not, only Admins see it, who can configure it.
    is_configured: Callable[[], bool] = lambda: True
    # Limits the objects that show the panel; default: all.
    when: Callable[[Any], bool] | None = None
    # Renders the panel as part of the page, which refreshes it; without it the panel loads from its URL.
    render: Callable[[HttpRequest, Any], SafeString] | None = None
    # Only in refreshes of the page: the first response does not wait for it.
    is_slow: bool = False

    def content(self, request: HttpRequest, shown: object, *, is_refresh: bool) -> str:
        """Return the panel as part of the page; empty if it comes later."""
        return self.render(request, shown) if self.render and (is_refresh or not self.is_slow) else ""


def panels_of(page: str, shown: object, role: Role) -> list[Panel]:
    """Return the panels that apply to the page's object, for people with this role."""
    panels = [panel for panel in Extension.installed().panels if panel.page == page]
    return [
        panel
        for panel in panels
        if (panel.when is None or panel.when(shown)) and (role >= Role.ADMIN or panel.is_configured())
    ]
