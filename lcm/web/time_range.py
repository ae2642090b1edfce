"""The time range of a chart page: a preset that ends now, or two times, read from the address."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.errors import InvalidInput
from lcm.models.people import known_time_zone
from lcm.web.access import htmx_of
from lcm.web.wording import clock_digits, clock_text

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
LENGTHS = {
    "1h": timedelta(hours=1),
    "6h": timedelta(hours=6),
    "24h": DAY,
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
LABELS = {"1h": _("1 h"), "6h": _("6 h"), "24h": _("24 h"), "7d": _("7 d"), "30d": _("30 d"), "all": _("All")}
# All data of a page, for pages that offer it.
ALL, CUSTOM = "all", "custom"
# Parameters of the address; `first` and `last` are days in a form of the page.
NAMES = ("range", "from", "to", "zone")
FORM_NAMES = ("first", "last")
# Lengths of a step, in seconds, so that steps begin at round times.
STEPS = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class KeptData:
    """The times for which a page has data, and a sentence that says so.

    `daily` data has one value per UTC day, and begins and ends at midnight. `whole` is the label of the
    preset for all data, if there is one.
    """

    oldest: datetime
    newest: datetime
    text: str
    daily: bool = False
    whole: str = ""

    @property
    def presets(self) -> list[str]:
        """Return the presets that the data can fill."""
        longest = self.newest - self.oldest
        keys = [
            key for key, length in LENGTHS.items() if length <= longest and (not self.daily or length > DAY)
        ]
        return [*keys, ALL] if self.whole else keys

    def label(self, key: str) -> str:
        return self.whole if key == ALL else str(LABELS[key])


@dataclass(frozen=True)
class TimeRange:
    """A time range with its key in the address; `problem` says why another range was not used."""

    key: str
    start: datetime
    end: datetime
    kept: KeptData
    problem: str = ""
    # Other parameters of the address, which links and the form keep.
    others: tuple[tuple[str, str], ...] = ()

    @property
    def is_custom(self) -> bool:
        return self.key == CUSTOM

    @property
    def choices(self) -> list[tuple[str, str, bool]]:
        """Return query string, label and whether it is chosen, for each preset."""
        return [
            (urlencode([*self.others, ("range", key)]), self.kept.label(key), key == self.key)
            for key in self.kept.presets
        ]

    @property
    def input_type(self) -> str:
        return "date" if self.kept.daily else "datetime-local"

    @property
    def query(self) -> str:
        """Return the query string that leads to this range."""
        if not self.is_custom:
            return urlencode([*self.others, ("range", self.key)])
        times = zip(NAMES[1:], (self.from_value, self.to_value, self.zone), strict=True)
        return urlencode([*self.others, ("range", CUSTOM), *times])

    @property
    def zone(self) -> str:
        """Return the zone of the times in the address and the form: UTC where local times are ambiguous."""
        is_utc = self.kept.daily or _is_repeated(self.start) or _is_repeated(self.end)
        return "UTC" if is_utc else timezone.get_current_timezone_name()

    @property
    def first(self) -> date:
        return self.start.astimezone(UTC).date()

    @property
    def last(self) -> date:
        """Return the last UTC day that the range touches."""
        return (self.end.astimezone(UTC) - timedelta(microseconds=1)).date()

    @property
    def from_value(self) -> str:
        return self.first.isoformat() if self.kept.daily else self._minute_text(self.start)

    @property
    def to_value(self) -> str:
        return self.last.isoformat() if self.kept.daily else self._minute_text(self.end)

    def _minute_text(self, moment: datetime) -> str:
        return moment.astimezone(ZoneInfo(self.zone)).strftime("%Y-%m-%dT%H:%M")

    @property
    def text(self) -> str:
        """Return `last 6 h`, or `02 Mar 12:00 to 13:30`."""
        if self.key in LENGTHS:
            return gettext("last %(length)s") % {"length": self.kept.label(self.key)}
        if self.key == ALL and self.kept.whole:
            return self.kept.whole
        return gettext("%(start)s to %(end)s") % {
            "start": clock_digits(self.start),
            "end": clock_text(self.end),
        }

    def with_days(self, first: date, last: date) -> TimeRange:
        """Return the range from a first to a last day."""
        return replace(self, key=CUSTOM, start=_midnight(first), end=_midnight(last + DAY))

    def step(self, most: int) -> timedelta:
        """Return the shortest round step that divides the range into at most this many."""
        wanted = (self.end - self.start).total_seconds() / most
        seconds = next((step for step in STEPS if step >= wanted), math.ceil(wanted / STEPS[-1]) * STEPS[-1])
        return timedelta(seconds=seconds)


def kept_days(days: int, text: str, *, now: datetime) -> KeptData:
    """Return the last UTC days up to today as kept data."""
    midnight = _midnight(now.astimezone(UTC).date() + DAY)
    return KeptData(midnight - timedelta(days=days), midnight, text, daily=True)


def range_of(request: HttpRequest, kept: KeptData, *, default: str = "") -> TimeRange:
    """Return the range in the address of a page; of a panel, in the address of the page around it."""
    query: QueryDict = request.GET
    if "range" not in query and (page := htmx_of(request).current_url_abs_path):
        query = QueryDict(page.partition("?")[2])
        others: tuple[tuple[str, str], ...] = ()
    else:
        others = tuple((name, str(value)) for name, value in query.items() if name not in NAMES + FORM_NAMES)
    return read_range(query, kept, default=default, others=others)


def read_range(
    query: Mapping[str, str],
    kept: KeptData,
    *,
    default: str = "",
    others: tuple[tuple[str, str], ...] = (),
) -> TimeRange:
    """Return the range that a query names; if it is invalid, the default with the problem."""
    key, problem = query.get("range", ""), ""
    try:
        if key == CUSTOM:
            start, end = _custom(query, kept)
            return TimeRange(CUSTOM, start, end, kept, others=others)
        if key:
            _check_preset(key, kept)
    except InvalidInput as error:
        key, problem = "", error.message
    if not key:
        key = default if default in kept.presets else kept.presets[-1] if kept.presets else ALL
    return TimeRange(key, _start_of(key, kept), kept.newest, kept, problem, others)


def _check_preset(key: str, kept: KeptData) -> None:
    if key in kept.presets:
        return
    if key in LENGTHS:
        raise _invalid(
            gettext("The range %(range)s cannot be shown. %(kept)s")
            % {"range": LABELS[key], "kept": kept.text}
        )
    known = ", ".join([*kept.presets, CUSTOM])
    raise _invalid(
        gettext("The range “%(range)s” is unknown. Choose one of %(known)s.")
        % {"range": key[:20], "known": known}
    )


def _start_of(key: str, kept: KeptData) -> datetime:
    if key == ALL:
        return kept.oldest
    return max(kept.newest - LENGTHS[key], kept.oldest)


def _custom(query: Mapping[str, str], kept: KeptData) -> tuple[datetime, datetime]:
    """Return the two times of a query, limited to the kept data."""
    zone = _zone(query.get("zone", ""))
    if kept.daily:
        start = _midnight(_day(query.get("from", "")))
        end = _midnight(_day(query.get("to", "")) + DAY)
    else:
        start = _minute(query.get("from", ""), zone)
        end = _minute(query.get("to", ""), zone, up=True)
    if start >= end:
        raise _invalid(gettext("The range must start before it ends."))
    if start >= kept.newest:
        raise _invalid(
            gettext("The range starts after the newest data, at %(time)s.")
            % {"time": clock_text(kept.newest)}
        )
    if end <= kept.oldest:
        raise _invalid(gettext("There is no data for this range. %(kept)s") % {"kept": kept.text})
    return max(start, kept.oldest), end if kept.daily else min(end, kept.newest)


def _minute(text: str, zone: tzinfo, *, up: bool = False) -> datetime:
    """Return a time in whole minutes, as in the form."""
    try:
        found = parse_datetime(text.strip())
    except ValueError:
        found = None
    if found is None:
        raise _invalid(
            gettext("“%(value)s” is not a time. Enter it as 2026-03-02T12:00.") % {"value": text[:40]}
        )
    try:
        moment = (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
        minute = moment.replace(second=0, microsecond=0)
        return minute + MINUTE if up and moment > minute else minute
    except OverflowError:
        raise _invalid(gettext("“%(value)s” is too early or too late.") % {"value": text[:40]}) from None


def _day(text: str) -> date:
    try:
        found = parse_date(text.strip())
    except ValueError:
        found = None
    if found is None:
        raise _invalid(gettext("“%(value)s” is not a day. Enter it as 2026-03-02.") % {"value": text[:40]})
    if not date(1970, 1, 1) <= found <= date(9000, 1, 1):
        raise _invalid(gettext("“%(value)s” is too early or too late.") % {"value": text[:40]})
    return found


def _zone(name: str) -> tzinfo:
    if not name:
        return timezone.get_current_timezone()
    try:
        known_time_zone(name)
    except ValidationError as error:
        raise _invalid(error.messages[0]) from None
    return ZoneInfo(name)


def _invalid(text: str) -> InvalidInput:
    return InvalidInput({"range": text})


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _is_repeated(moment: datetime) -> bool:
    """Return whether clocks show the local time of this moment twice, because they are set back."""
    local = timezone.localtime(moment)
    return local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
