"""Entries of the navigation bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from lcm.domain.roles import Role
from lcm.extensions import Extension

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class NavEntry:
    """A navigation entry, current on its own URL and on URLs that begin with its prefix.

    Its place is after the entry with the key `after`, or at the end of its group. Pressing `g` and then the
    letter `shortcut` opens its page.
    """

    key: str
    label: StrOrPromise
    url_name: str
    prefix: str | tuple[str, ...]
    icon: str
    role: Role = Role.VIEWER
    group: str = ""
    after: str = ""
    shortcut: str = ""

    @property
    def prefixes(self) -> tuple[str, ...]:
        own = (self.prefix,) if isinstance(self.prefix, str) else self.prefix
        other = Extension.installed().navigation_prefixes.get(self.key)
        return (*own, other) if other else own


@dataclass(frozen=True)
class NavGroup:
    key: str
    title: StrOrPromise
    entries: list[NavEntry]


TITLES: dict[str, StrOrPromise] = {"": "", "Plan": _("Plan"), "System": _("System")}


def navigation_groups() -> list[NavGroup]:
    """Return the groups with the entries of all apps."""
    groups = {key: NavGroup(key, title, []) for key, title in TITLES.items()}
    for entry in Extension.installed().navigation:
        entries = groups[entry.group].entries
        keys = [each.key for each in entries]
        entries.insert(keys.index(entry.after) + 1 if entry.after in keys else len(keys), entry)
    return list(groups.values())
