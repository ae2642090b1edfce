"""Context of the page layout."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest
from django.urls import reverse

from lcm.domain.lifecycle import ACTIVE
from lcm.domain.roles import Role, role_of
from lcm.extensions import Extension
from lcm.models import LabletDefinition, LabletSession, Theme, User
from lcm.selectors.inbox import unread_of
from lcm.selectors.jobs import unfinished_jobs
from lcm.web.help import help_url
from lcm.web.navigation import NavEntry, NavGroup, navigation_groups
from lcm.web.pagination import capped_counts

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


def layout(request: HttpRequest) -> dict[str, Any]:
    """Return theme, navigation and role; counts are queried only for full pages."""
    user = getattr(request, "user", None)
    role = role_of(user) if user and user.is_authenticated else Role.NONE
    counts = cache(lambda: _counts(user) if isinstance(user, User) else {})
    return {
        "theme": theme_of(request),
        "documentation": help_url(),
        "themes": Theme,
        "role": role,
        "is_operator": role >= Role.OPERATOR,
        "is_admin": role >= Role.ADMIN,
        "navigation": lambda: navigation(request, role, counts()),
        "unread": lambda: counts().get("inbox", "") if role else "",
        "object_kind": _object_kind(request),
    }


def _object_kind(request: HttpRequest) -> StrOrPromise:
    """Return the kind of object that the page shows, empty if it is not the page of one object."""
    match = request.resolver_match
    kinds = Extension.installed().objects.values()
    return next((kind.label for kind in kinds if match and kind.page == match.url_name), "")


def theme_of(request: HttpRequest) -> str:
    """Return the theme: the browser's cookie first, then the person's setting."""
    chosen = request.COOKIES.get("lcm_theme", "")
    if chosen in Theme.values:
        return chosen
    return str(getattr(getattr(request, "user", None), "theme", Theme.SYSTEM))


def navigation(
    request: HttpRequest, role: Role, counts: Mapping[str, str]
) -> list[tuple[NavGroup, list[tuple[NavEntry, str, bool]]]]:
    """Return the navigation groups that this role may see, with counts."""
    return [
        (
            group,
            [
                (entry, counts.get(entry.key, ""), _is_here(request.path, entry))
                for entry in group.entries
                if role >= entry.role
            ],
        )
        for group in navigation_groups()
    ]


def _is_here(path: str, entry: NavEntry) -> bool:
    return path == reverse(entry.url_name) or path.startswith(entry.prefixes)


def _counts(user: User) -> dict[str, str]:
    """Count the entries in one query, each up to a cap; without zeros, except where people expect them."""
    sessions = LabletSession.objects.filter(status__in=ACTIVE)
    counts = capped_counts(
        {
            "sessions": sessions,
            "definitions": LabletDefinition.objects.all(),
            "jobs": unfinished_jobs(),
            "inbox": unread_of(user),
        }
    )
    shown = {name: f"{count:,}{'+' if more else ''}" for name, (count, more) in counts.items()}
    return shown | {name: "" for name in ("jobs", "inbox") if not counts[name][0]}
