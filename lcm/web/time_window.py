"""A window of time from words such as “yesterday 15:00”, in the person's time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext

from lcm.domain.errors import InvalidInput
from lcm.web.period_filters import PERIODS, period_of
from lcm.web.wording import clock_digits, clock_text

DAY = timedelta(days=1)
# The time shown before and after a moment.
AROUND = timedelta(hours=1)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": DAY, "w": 7 * DAY}
_AGO = re.compile(r"(?P<count>\d{1,4}) ?(?:(?P<unit>[mhdw])|(?P<word>min|minute|hr|hour|day|week)s?) ago")
_CLOCK = re.compile(r"(?:^|[ t])(?P<hour>\d{1,2})(?::(?P<minute>\d\d))(?::\d\d)?$")


@dataclass(frozen=True)
class TimeWindow:
    """The time from `start` up to, and without, `end`."""

    start: datetime
    end: datetime

    @property
    def text(self) -> str:
        return gettext("%(start)s to %(end)s") % {
            "start": clock_digits(self.start),
            "end": clock_text(self.end),
        }

    @property
    def earlier(self) -> TimeWindow:
        return TimeWindow(self.start - (self.end - self.start), self.start)

    @property
    def later(self) -> TimeWindow:
        return TimeWindow(self.end, self.end + (self.end - self.start))


def window_around(moment: datetime) -> TimeWindow:
    return TimeWindow(moment - AROUND, moment + AROUND)


def read_window(text: str, *, now: datetime) -> TimeWindow:
    """Return the window that a text names: a preset, a day, or the time around a moment."""
    words = " ".join(text.casefold().replace(" at ", " ").split())
    if words in PERIODS:
        start, end = period_of(words, now)
        return TimeWindow(start, end or now)
    try:
        return check_window(_ago(words, now) or _exact(text.strip()) or _day_and_clock(words, now))
    except (ValueError, OverflowError):
        raise _unknown(text) from None


def check_window(window: TimeWindow) -> TimeWindow:
    """Return the window; raise if it, or a window as long beside it, is outside of the calendar."""
    if not all(1970 <= moment.year <= 3000 for moment in (window.start, window.end)):
        raise InvalidInput({"when": gettext("This time is out of range.")})
    if window.start > window.end:
        raise InvalidInput({"when": gettext("The range must start before it ends.")})
    return window


def _ago(words: str, now: datetime) -> TimeWindow | None:
    found = _AGO.fullmatch(words)
    if found is None:
        return None
    return window_around(now - int(found["count"]) * _UNITS[found["unit"] or found["word"][0]])


def _exact(text: str) -> TimeWindow | None:
    """Return the window around a time in ISO 8601; without a zone it is local."""
    moment = None if parse_date(text) else parse_datetime(text)
    if moment is None:
        return None
    zone = timezone.get_current_timezone()
    return window_around((moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC))


def _day_and_clock(words: str, now: datetime) -> TimeWindow:
    """Return the window of `yesterday`, `monday 9:30`, `2026-03-02` or `15:00`."""
    clock = _CLOCK.search(words)
    name = words[: clock.start()].strip() if clock else words
    today = timezone.localtime(now).date()
    if clock is None:
        day = _day(name, today)
        return TimeWindow(_local(day, time()), _local(day + DAY, time()))
    at = time(int(clock["hour"]), int(clock["minute"]))
    moment = _local(_day(name, today) if name else today, at)
    # A time of day alone is the last one.
    return window_around(moment if name or moment <= now else _local(today - DAY, at))


def _day(name: str, today: date) -> date:
    if name in ("today", str(PERIODS["today"])):
        return today
    if name in ("yesterday", str(PERIODS["yesterday"])):
        return today - DAY
    if name in WEEKDAYS:
        return today - timedelta(days=(today.weekday() - WEEKDAYS.index(name)) % 7)
    found = parse_date(name)
    if found is None:
        raise ValueError(name)
    return found


def _local(day: date, at: time) -> datetime:
    return datetime.combine(day, at, timezone.get_current_timezone()).astimezone(UTC)


def _unknown(text: str) -> InvalidInput:
    problem = gettext(
        "“%(text)s” is not a time. Enter for example “yesterday 15:00”, “monday”, “3 h ago” "
        "or “2026-03-02 15:00”."
    )
    return InvalidInput({"when": problem % {"text": text[:40]}})
