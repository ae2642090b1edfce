"""Entries of the navigation bar."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class NavEntry:
    """A navigation entry, current on its own URL and on URLs that begin with its prefix."""

    key: str
    label: StrOrPromise
    url_name: str
    prefix: str | tuple[str, ...]
    icon: str
    role: Role = Role.VIEWER


@dataclass(frozen=True)
class NavGroup:
    key: str
    title: StrOrPromise
    entries: list[NavEntry] = field(default_factory=list)


GROUPS = (
    NavGroup(
        "",
        "",
        [
            NavEntry("overview", _("Overview"), "home", "/overview/", "squares-2x2"),
            NavEntry("sessions", _("Sessions"), "session_list", "/sessions/", "play-circle"),
        ],
    ),
    NavGroup(
        "Plan",
        _("Plan"),
        [
            NavEntry("definitions", _("Definitions"), "definition_list", "/definitions/", "document-text"),
            NavEntry("domains", _("Domains"), "domain_list", "/domains/", "building-office-2"),
            NavEntry("projects", _("Projects"), "project_list", "/projects/", "folder"),
        ],
    ),
    NavGroup(
        "System",
        _("System"),
        [
            NavEntry("people", _("People"), "person_list", "/people/", "users", Role.ADMIN),
            NavEntry("tokens", _("Tokens"), "token_list", "/tokens/", "key", Role.ADMIN),
            NavEntry("jobs", _("Jobs"), "job_list", "/jobs/", "briefcase"),
            NavEntry("changes", _("Change log"), "change_list", "/changes/", "list-bullet"),
        ],
    ),
)


def add_prefix(key: str, prefix: str) -> None:
    """Mark an entry as current on another app's URLs too; call it from `AppConfig.ready`."""
    for group in GROUPS:
        for place, entry in enumerate(group.entries):
            if entry.key == key:
                known = (entry.prefix,) if isinstance(entry.prefix, str) else entry.prefix
                group.entries[place] = replace(entry, prefix=tuple(dict.fromkeys((*known, prefix))))


def register_entry(group: str, entry: NavEntry, *, after: str = "") -> None:
    """Add an entry to a group, after another entry or at the end; call it from `AppConfig.ready`."""
    entries = next(each.entries for each in GROUPS if each.key == group)
    keys = [each.key for each in entries]
    if entry.key not in keys:
        entries.insert(keys.index(after) + 1 if after in keys else len(keys), entry)
