"""Entries of the navigation bar."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lcm.domain.roles import Role


@dataclass(frozen=True)
class NavEntry:
    """A navigation entry, current on its own URL and on URLs that begin with its prefix."""

    key: str
    label: str
    url_name: str
    prefix: str | tuple[str, ...]
    icon: str
    role: Role = Role.VIEWER


@dataclass(frozen=True)
class NavGroup:
    title: str
    entries: list[NavEntry] = field(default_factory=list)


GROUPS = (
    NavGroup(
        "",
        [
            NavEntry("overview", "Overview", "home", "/overview/", "squares-2x2"),
            NavEntry("sessions", "Sessions", "session_list", "/sessions/", "play-circle"),
        ],
    ),
    NavGroup(
        "Plan",
        [
            NavEntry("definitions", "Definitions", "definition_list", "/definitions/", "document-text"),
            NavEntry("domains", "Domains", "domain_list", "/domains/", "building-office-2"),
            NavEntry("projects", "Projects", "project_list", "/projects/", "folder"),
        ],
    ),
    NavGroup(
        "System",
        [
            NavEntry("people", "People", "person_list", "/people/", "users", Role.ADMIN),
            NavEntry("tokens", "Tokens", "token_list", "/tokens/", "key", Role.ADMIN),
            NavEntry("jobs", "Jobs", "job_list", "/jobs/", "briefcase"),
            NavEntry("changes", "Change log", "change_list", "/changes/", "list-bullet"),
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
    entries = next(each.entries for each in GROUPS if each.title == group)
    keys = [each.key for each in entries]
    if entry.key not in keys:
        entries.insert(keys.index(after) + 1 if after in keys else len(keys), entry)
