"""Queries of the change feed."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from lcm.models import FeedEntry, FeedHead


@dataclass(frozen=True)
class FeedChange:
    """An entry of the feed, as watchers receive it."""

    revision: int
    kind: str
    id: UUID
    pool: str


@dataclass(frozen=True)
class FeedBounds:
    """The newest revision, and the newest revision that was removed."""

    revision: int = 0
    pruned_revision: int = 0


def feed_bounds() -> FeedBounds:
    row = FeedHead.objects.filter(pk=FeedHead.ONLY).values_list("revision", "pruned_revision").first()
    return FeedBounds(*row) if row else FeedBounds()


def changes_after(revision: int, *, pools: list[str] | None = None, limit: int) -> list[FeedChange]:
    """Return the next numbered entries, of these pools or of all pools."""
    rows = FeedEntry.objects.filter(revision__gt=revision)
    if pools is not None:
        rows = rows.filter(pool__in=pools)
    values = rows.order_by("revision").values_list("revision", "kind", "object_id", "pool")[:limit]
    return [FeedChange(number, kind, key, pool) for number, kind, key, pool in values if number is not None]


def has_unnumbered() -> bool:
    return FeedEntry.objects.filter(revision=None).exists()
