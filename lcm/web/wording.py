"""Texts for durations, amounts and counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone

NBSP = "\N{NO-BREAK SPACE}"
_UNITS = (("y", 31_536_000), ("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


@dataclass(frozen=True)
class Plural:
    """A text with `%(count)s` in the singular and the plural; other placeholders are filled by name.

    A capped count is shown as “more than 10,000”.
    """

    one: str
    many: str

    def text(self, count: int, *, is_capped: bool = False, **values: object) -> str:
        shown = f"more than {count:,}" if is_capped else f"{count:,}"
        return (self.one if count == 1 else self.many) % {"count": shown, **values}


def duration_text(length: timedelta, *, units: int = 2) -> str:
    """Return the largest units, two by default: `1 h 33 min`, `8 s`."""
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
    """Return a relative time: `2 min ago`, `in 3 h`, `just now`."""
    seconds = difference.total_seconds()
    if abs(seconds) < 5:
        return "just now"
    for name, size in _UNITS:
        if abs(seconds) >= size:
            count = int(abs(seconds) // size)
            return f"in {count} {name}" if seconds > 0 else f"{count} {name} ago"
    return "just now"


def clock_text(moment: datetime, *, seconds: bool = False) -> str:
    """Return `03:59`, or `17 Nov 20:56` and `02 Jan 2035 08:00` for other days and years."""
    local, today = timezone.localtime(moment), timezone.localtime().date()
    date = "" if local.date() == today else "%d %b " if local.year == today.year else "%d %b %Y "
    return local.strftime(f"{date}%H:%M:%S" if seconds else f"{date}%H:%M")


def count_text(count: int, one: str, many: str = "") -> str:
    """Return `1 node`, `3 nodes`; pass `many` for irregular plurals."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def core_count_text(value: Decimal) -> str:
    """Return `1 core`, `2.5 cores`, with a non-breaking space."""
    return f"{amount_text(value)}{NBSP}{'core' if value == 1 else 'cores'}"


def amount_text(value: Decimal) -> str:
    """Return a number without trailing zeros: `4`, `2.5`, `0.75`."""
    text = f"{value:,.2f}".rstrip("0").rstrip(".")
    return text or "0"
