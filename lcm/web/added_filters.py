"""Filters that apps add to the lists of other apps, on their pages and in the API."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from django_filters import Filter, FilterSet

from lcm.extensions import Extension


@dataclass(frozen=True)
class AddedFilter:
    """A filter of one app for a list of another."""

    to: type[FilterSet]
    name: str
    filter: Filter


def with_added_filters(filterset: type[FilterSet]) -> type[FilterSet]:
    """Return the FilterSet with the filters that apps add to it."""
    added = tuple(each for each in Extension.installed().filters if issubclass(filterset, each.to))
    if not added:
        return filterset
    kind: Any = filterset
    extended: type[FilterSet] = _extended(kind, added)
    return extended


@cache
def _extended(filterset: Any, added: tuple[AddedFilter, ...]) -> Any:
    return type(filterset)(filterset.__name__, (filterset,), {each.name: each.filter for each in added})
