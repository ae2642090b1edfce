"""The global search: finders of each app for its objects, by name or by start of id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcm.domain.roles import Role
from lcm.extensions import Extension

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_HITS = 8
MAX_SUGGESTIONS = 4


@dataclass(frozen=True)
class SearchHit:
    """One search result; `status_name` and `status_label` describe its status."""

    title: StrOrPromise
    url: str
    more: str = ""
    status_name: str = ""
    status_label: str = ""


# Arguments: search text, maximum number of results and user.
Find = Callable[[str, int, Role], Sequence[SearchHit]]


@dataclass(frozen=True)
class Finder:
    """One kind of object: heading, search function, list URL and the role that may see it."""

    title: StrOrPromise
    find: Find
    list_url_name: str = ""
    list_role: Role = Role.VIEWER


@dataclass(frozen=True)
class SearchGroup:
    title: StrOrPromise
    hits: Sequence[SearchHit]
    list_url_name: str
    more: bool


def search(text: str, role: Role, *, limit: int = MAX_HITS) -> list[SearchGroup]:
    """Return the first results of each kind, in a query or two per kind."""
    groups = []
    for finder in Extension.installed().finders:
        hits = finder.find(text, limit + 1, role)
        if hits:
            url_name = finder.list_url_name if role >= finder.list_role else ""
            groups.append(SearchGroup(finder.title, hits[:limit], url_name, len(hits) > limit))
    return groups
