"""Texts for durations, amounts and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.utils import timezone
from django.utils.dateformat import format as format_date
from django.utils.functional import Promise
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from lcm.web.zones import with_zone

NBSP = "\N{NO-BREAK SPACE}"
_UNITS = (
    (_("%(count)s y"), 31_536_000),
    (_("%(count)s d"), 86_400),
    (_("%(count)s h"), 3_600),
    (_("%(count)s min"), 60),
    (_("%(count)s s"), 1),
)


@dataclass(frozen=True)
class Plural:
    """A text with `%(count)s`: `Plural(ngettext_lazy("%(count)s slot", "%(count)s slots"))`.

    Other placeholders are filled by name. A capped count is shown as “more than 10,000”.
    """

    forms: Promise

    def text(self, count: int, *, is_capped: bool = False, **values: object) -> str:
        number = f"{count:,}"
        shown = gettext("more than %(count)s") % {"count": number} if is_capped else number
        # The first % selects the form for the count; it fills only positional placeholders.
        form: str = self.forms % count
        return form % {"count": shown, **values}


def duration_text(length: timedelta, *, units: int = 2) -> str:
    """Return the largest units, two by default: `1 h 33 min`, `8 s`."""
    seconds = int(abs(length.total_seconds()))
    parts: list[str] = []
    for unit, size in _UNITS:
        if seconds >= size and len(parts) < units:
            parts.append(unit % {"count": seconds // size})
            seconds %= size
        elif parts:
            break
    return " ".join(parts) or _UNITS[-1][0] % {"count": 0}


def ago_text(difference: timedelta) -> str:
    """Return a relative time: `2 min 5 s ago`, `in 1 h 52 min`, `in 3 d`, `just now`."""
    if abs(difference.total_seconds()) < 5:
        return gettext("just now")
    text = gettext("in %(duration)s") if difference > timedelta(0) else gettext("%(duration)s ago")
    return text % {"duration": age_text(difference)}


def age_text(length: timedelta) -> str:
    """Return two units below a day, and one from there on: `1 h 52 min`, `3 d`."""
    return duration_text(length, units=2 if abs(length) < timedelta(days=1) else 1)


def clock_text(moment: datetime, *, seconds: bool = False) -> str:
    """Return `03:59`, or `17 Nov 20:56` and `02 Jan 2035 08:00` for other days and years.

    The zone follows unless the person chose it: `03:59 UTC`.
    """
    return with_zone(clock_digits(moment, seconds=seconds), timezone.localtime(moment))


def clock_digits(moment: datetime, *, seconds: bool = False) -> str:
    """Return the time without its zone, for the first time of a range."""
    local, today = timezone.localtime(moment), timezone.localtime().date()
    time = local.strftime("%H:%M:%S" if seconds else "%H:%M")
    if local.date() == today:
        return time
    return f"{format_date(local, 'd M' if local.year == today.year else 'd M Y')} {time}"


def list_text(parts: Sequence[str]) -> str:
    """Return `CPU`, `CPU and memory`, or `CPU, memory and storage`."""
    *first, last = parts
    if not first:
        return last
    rest = first[0]
    for part in first[1:]:
        # Translators: joins the first items of a list; the next text joins the last one.
        rest = gettext("%(items)s, %(next)s") % {"items": rest, "next": part}
    return gettext("%(items)s and %(last)s") % {"items": rest, "last": last}


def count_text(count: int, one: str, many: str = "") -> str:
    """Return `1 node`, `3 nodes` in English, for texts that are stored; pass `many` for irregular plurals."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def core_count_text(value: Decimal) -> str:
    """Return `1 core`, `2.5 cores`, with a non-breaking space."""
    text = ngettext("%(count)s core", "%(count)s cores", plural_number(value)) % {"count": amount_text(value)}
    return text.replace(" ", NBSP)


def plural_number(value: Decimal) -> int:
    """Return the number that selects the form for an amount; fractions have the plural."""
    return int(value) if value == int(value) else 2


def amount_text(value: Decimal) -> str:
    """Return a number without trailing zeros: `4`, `2.5`, `0.75`."""
    text = f"{value:,.2f}".rstrip("0").rstrip(".")
    return text or "0"
