"""A single bar that shows shares of a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

WIDTH = 1000


@dataclass(frozen=True)
class Share:
    """A share with its number; `status` sets its shape and tone."""

    label: StrOrPromise
    count: int
    status: str


@dataclass(frozen=True)
class BarSegment:
    x: float
    width: float
    share: Share


@dataclass(frozen=True)
class ShareBar:
    title: str
    segments: list[BarSegment]
    legend: list[Share]
    width: int = WIDTH


def share_bar(shares: Sequence[Share], *, of: int | None = None) -> ShareBar:
    """Return segments proportional to their numbers, relative to their sum or `of`; omit zero segments."""
    present = [share for share in shares if share.count]
    whole = max(of or 0, sum(share.count for share in present), 1)
    segments, x = [], 0.0
    for share in present:
        width = share.count / whole * WIDTH
        segments.append(BarSegment(round(x, 1), round(width, 1), share))
        x += width
    title = ", ".join(f"{share.count:,} {share.label.lower()}" for share in present) or gettext("none")
    return ShareBar(title, segments, present)
