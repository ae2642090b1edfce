"""The side bar."""

from __future__ import annotations

from dataclasses import dataclass

from lcm.roles import Role


@dataclass(frozen=True)
class Entry:
    key: str
    label: str
    url_name: str
    prefix: str
    icon: str
    role: Role = Role.VIEWER


@dataclass(frozen=True)
class NavGroup:
    title: str
    entries: tuple[Entry, ...]


GROUPS = (
    NavGroup("", (Entry("sessions", "Sessions", "session_list", "/sessions/", "play-circle"),)),
    NavGroup(
        "Plan",
        (
            Entry("definitions", "Definitions", "definition_list", "/definitions/", "document-text"),
            Entry("domains", "Domains", "domain_list", "/domains/", "building-office-2"),
            Entry("projects", "Projects", "project_list", "/projects/", "folder"),
        ),
    ),
    NavGroup(
        "System",
        (
            Entry("tokens", "Tokens", "token_list", "/tokens/", "key", Role.ADMIN),
            Entry("changes", "Change log", "change_list", "/changes/", "list-bullet"),
        ),
    ),
)
