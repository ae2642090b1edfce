"""`manage.py rebuild_usage`: rebuild daily buckets from records, or only compare them."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import date, timedelta
from types import TracebackType
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.translation import ngettext

from fairshare.services.usage_buckets import BucketDifference, check_usage, rebuild_day, recorded_days
from lcm.domain.errors import StateConflict

WIDTH = 30


class ProgressBar:
    """A progress bar: `with ProgressBar(10, "day", stream) as progress: progress.step()`."""

    def __init__(self, total: int, noun: str, stream: Any) -> None:
        self.total, self.noun, self.done = total, noun, 0
        self.stream: IO[str] = getattr(stream, "_out", stream)
        self.shown = bool(getattr(self.stream, "isatty", lambda: False)())

    def step(self, count: int = 1) -> None:
        self.done += count
        self._show()

    def __enter__(self) -> ProgressBar:
        self._show()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self.stream.write("\n")

    def _show(self) -> None:
        if self.shown:
            full = round(WIDTH * self.done / self.total) if self.total else WIDTH
            bar = "█" * full + "░" * (WIDTH - full)
            self.stream.write(f"\r{bar} {self.done:,} of {self.total:,} {self.noun}s")
            self.stream.flush()


SHOWN = 20


class Command(BaseCommand):
    help = "Rebuild daily usage from its records, day by day; safe while observers run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="only compare; exit with status 1 if anything differs"
        )
        parser.add_argument(
            "--from", dest="first", type=_day, metavar="DAY", help="the first UTC day, 2026-03-02"
        )
        parser.add_argument("--to", dest="last", type=_day, metavar="DAY", help="the last UTC day")

    def handle(
        self, *args: object, check: bool, first: date | None, last: date | None, **options: Any
    ) -> None:
        first, last = self._days(first, last)
        if check:
            self._check(first, last)
            return
        repaired = list(self._rebuild(first, last))
        self._print(list(map(str, repaired[:SHOWN])), len(repaired))
        message = ngettext(
            "Repaired {count:,} bucket from {first} to {last}.",
            "Repaired {count:,} buckets from {first} to {last}.",
            len(repaired),
        )
        self.stdout.write(message.format(count=len(repaired), first=first, last=last))

    def _check(self, first: date, last: date) -> None:
        with ProgressBar((last - first).days + 1, "day", self.stderr) as progress:
            result = check_usage(first=first, last=last, now=timezone.now(), after_day=progress.step)
        self._print(result.differences[:SHOWN], result.difference_count)
        if result.difference_count:
            message = ngettext(
                "{count:,} bucket from {first} to {last} differs from its records.",
                "{count:,} buckets from {first} to {last} differ from their records.",
                result.difference_count,
            )
            raise CommandError(message.format(count=result.difference_count, first=first, last=last))
        self.stdout.write(f"Records and buckets from {first} to {last} are equal.")

    def _rebuild(self, first: date, last: date) -> Iterator[BucketDifference]:
        count = (last - first).days + 1
        with ProgressBar(count, "day", self.stderr) as progress:
            for number in range(count):
                try:
                    yield from rebuild_day(first + timedelta(days=number))
                except StateConflict as error:
                    self.stderr.write(error.message)
                progress.step()

    def _print(self, lines: list[str], count: int) -> None:
        for line in lines:
            self.stdout.write(line)
        if count > len(lines):
            self.stdout.write(f"… and {count - len(lines):,} more")

    def _days(self, first: date | None, last: date | None) -> tuple[date, date]:
        known = recorded_days()
        if known is None:
            raise CommandError("There are no records to rebuild buckets from.")
        if first is not None and first < known[0]:
            raise CommandError(
                f"Records before {known[0]} were removed; buckets can be rebuilt from that day on."
            )
        first, last = first or known[0], last or known[1]
        if first > last:
            raise CommandError(f"{first} is after {last}.")
        return first, last


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"“{text}” is not a date; use for example 2026-03-02.") from error
