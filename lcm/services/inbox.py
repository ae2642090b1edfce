"""Mark the entries of an inbox as read or unread."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from lcm.models import User
from lcm.selectors.inbox import inbox_of


def mark_read(*, user: User, keys: Collection[UUID] | None = None, now: datetime) -> int:
    """Mark the given entries, or all, as read; return how many were unread."""
    entries = inbox_of(user).filter(read_at=None)
    return entries.filter(**_with(keys)).order_by().update(read_at=now)


def mark_unread(*, user: User, keys: Collection[UUID]) -> int:
    """Mark entries as unread; return how many were read."""
    return inbox_of(user).filter(read_at__isnull=False, **_with(keys)).order_by().update(read_at=None)


def _with(keys: Collection[UUID] | None) -> dict[str, Collection[UUID]]:
    return {} if keys is None else {"pk__in": keys}
