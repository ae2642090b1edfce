"""The global search: each app registers how to find its things by name or by the start of their id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lcm.domain.roles import Role

MAX_HITS = 8


@dataclass(frozen=True)
class SearchHit:
    """One thing that was found; `look` is its status, with the word for it."""

    title: str
    url: str
    more: str = ""
    look: str = ""
    word: str = ""


# What is looked for, at most how many, and for whom.
Find = Callable[[str, int, Role], Sequence[SearchHit]]


@dataclass(frozen=True)
class Finder:
    """One kind of things: its heading, how to find them, and the list that has all, with who may see it."""

    title: str
    find: Find
    list_url_name: str = ""
    list_role: Role = Role.VIEWER


@dataclass(frozen=True)
class SearchGroup:
    title: str
    hits: Sequence[SearchHit]
    list_url_name: str
    more: bool


_finders: dict[str, Finder] = {}


def register_finder(name: str, finder: Finder) -> None:
    """Called when an app is ready."""
    _finders[name] = finder


def search(text: str, role: Role) -> list[SearchGroup]:
    """What is called so, kind by kind, a query or two each."""
    groups = []
    for finder in _finders.values():
        hits = finder.find(text, MAX_HITS + 1, role)
        if hits:
            url_name = finder.list_url_name if role >= finder.list_role else ""
            groups.append(SearchGroup(finder.title, hits[:MAX_HITS], url_name, len(hits) > MAX_HITS))
    return groups
