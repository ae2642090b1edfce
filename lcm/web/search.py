"""The global search: each app registers a finder for its objects, by name or by start of id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lcm.domain.roles import Role

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_HITS = 8


@dataclass(frozen=True)
class SearchHit:
    """One search result; `look` is its status with its label."""

    title: StrOrPromise
    url: str
    more: str = ""
    look: str = ""
    word: str = ""


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


_finders: dict[str, Finder] = {}


def register_finder(name: str, finder: Finder) -> None:
    """Register a finder; call it from `AppConfig.ready`."""
    _finders[name] = finder


def search(text: str, role: Role) -> list[SearchGroup]:
    """Return the results by kind, in a query or two per kind."""
    groups = []
    for finder in _finders.values():
        hits = finder.find(text, MAX_HITS + 1, role)
        if hits:
            url_name = finder.list_url_name if role >= finder.list_role else ""
            groups.append(SearchGroup(finder.title, hits[:MAX_HITS], url_name, len(hits) > MAX_HITS))
    return groups
