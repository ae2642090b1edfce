"""How lengths of time, amounts and numbers of things are said."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone

NBSP = "\N{NO-BREAK SPACE}"
_UNITS = (("y", 31_536_000), ("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def duration_text(length: timedelta, *, units: int = 2) -> str:
    """The two largest units: `1 h 33 min`, `8 s`; or fewer."""
    seconds = int(abs(length.total_seconds()))
    parts: list[str] = []
    for name, size in _UNITS:
        if seconds >= size and len(parts) < units:
            parts.append(f"{seconds // size} {name}")
            seconds %= size
        elif parts:
            break
    return " ".join(parts) or "0 s"


def ago_text(difference: timedelta) -> str:
    """`2 min ago`, `in 3 h`, `just now`."""
    seconds = difference.total_seconds()
    if abs(seconds) < 5:
        return "just now"
    for name, size in _UNITS:
        if abs(seconds) >= size:
            count = int(abs(seconds) // size)
            return f"in {count} {name}" if seconds > 0 else f"{count} {name} ago"
    return "just now"


def clock_text(moment: datetime, *, seconds: bool = False) -> str:
    """A time of day, with the date when it is not today's: `03:59`, `17 Nov 20:56`, `02 Jan 2035 08:00`."""
    local, today = timezone.localtime(moment), timezone.localtime().date()
    date = "" if local.date() == today else "%d %b " if local.year == today.year else "%d %b %Y "
    return local.strftime(f"{date}%H:%M:%S" if seconds else f"{date}%H:%M")


def count_text(count: int, one: str, many: str = "") -> str:
    """`1 node`, `3 nodes`; many are named where an “s” will not do."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def core_count_text(value: Decimal) -> str:
    """`1 core`, `2.5 cores`, on one line."""
    return f"{amount_text(value)}{NBSP}{'core' if value == 1 else 'cores'}"


def amount_text(value: Decimal) -> str:
    """At least one decimal where there is any: `4`, `2.5`, `0.75`."""
    text = f"{value:,.2f}".rstrip("0").rstrip(".")
    return text or "0"
