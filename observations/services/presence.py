"""Who is there to be scraped: processes say so themselves."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from observations.models import Presence


def note_presence(
    *, kind: str, name: str, address: str, now: datetime, clock_skew: Decimal | None = None
) -> None:
    """A process lives, and its metrics are at this address; its clock is so many seconds ahead of LCM's."""
    Presence.objects.update_or_create(
        kind=kind,
        name=name[:200],
        defaults={"address": address[:200], "seen_at": now, "clock_skew": clock_skew},
    )


def forget_presence(*, kind: str, name: str) -> None:
    """A process has ended."""
    Presence.objects.filter(kind=kind, name=name[:200]).delete()
