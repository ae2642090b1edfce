"""Eligibility of a session as a sample, and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.conf import settings

from lcm.domain.lifecycle import SessionStatus
from lcm.domain.resources import RESOURCE
from lcm.models import LabletSession
from observations.arithmetic.histogram import day_of, keys
from observations.arithmetic.measures import ALLOCATED, CPU, MEMORY, USED, Amounts, amount, hundredths
from observations.models import NotCountedReason, SessionObservation


def column(resource: str, source: str, *, peak: bool = True) -> str:
    return f"{'peak_' if peak else ''}{RESOURCE[resource].short}_{source}"


KEYS = list(keys())
PEAKS = [column(*key) for key in KEYS]


@dataclass(frozen=True)
class SessionSample:
    """Figures that an eligible session adds to the aggregate of its definition, epoch and revision."""

    revision_id: UUID
    day: int
    amounts: Amounts
    held_seconds: int


def sample_of(row: SessionObservation) -> SessionSample | None:
    """Return the sample of a row; None if it does not count."""
    if not row.is_sample:
        return None
    amounts = amounts_in([getattr(row, name) for name in PEAKS])
    return SessionSample(row.revision_id, day_of(row.observed_at), amounts, row.held_seconds)


def amounts_in(values: Sequence[Decimal | None]) -> dict[tuple[str, str], int]:
    """Return the columns of `PEAKS` as amounts, without unknown ones."""
    return {key: hundredths(value) for key, value in zip(KEYS, values, strict=True) if value is not None}


def apply_amounts(row: SessionObservation, amounts: Amounts, *, newest: bool) -> None:
    """Set the totals of the newest observation and update the peaks."""
    for key in keys():
        seen = amounts.get(key)
        if newest:
            setattr(row, column(*key, peak=False), None if seen is None else amount(seen))
        before = getattr(row, column(*key))
        if seen is not None and (before is None or amount(seen) > before):
            setattr(row, column(*key), amount(seen))


def is_memory_peak(row: SessionObservation, amounts: Amounts) -> bool:
    """Return whether these amounts are the memory peak of the row: used if known, else allocated."""
    source = ALLOCATED if row.peak_memory_used is None else USED
    peak, seen = getattr(row, column(MEMORY, source)), amounts.get((MEMORY, source))
    return peak is None or (seen is not None and amount(seen) >= peak)


def update_is_sample(row: SessionObservation) -> None:
    """Set whether the session counts, or why not."""
    row.not_counted_reason = _reason(row)
    row.is_sample = not row.not_counted_reason


def _reason(row: SessionObservation) -> str:
    if row.excluded_reason:
        return NotCountedReason.EXCLUDED
    if not row.reached_collecting:
        return NotCountedReason.NOT_COLLECTED
    if row.booted_seconds < settings.CONFIG["SAMPLE_MIN_UPTIME_SECONDS"]:
        return NotCountedReason.TOO_SHORT
    return "" if any(getattr(row, name) is not None for name in PEAKS) else NotCountedReason.NOTHING_MEASURED


def apply_timeline(
    row: SessionObservation, session: LabletSession, steps: Iterable[tuple[str, datetime, int]]
) -> None:
    """Set how long the nodes were up and the capacity was held at the last observation.

    `steps` are status, time and attempt of each transition; only the current attempt counts. Stopping after
    running counts as collecting.
    """
    times = {status: at for status, at, attempt in steps if attempt == session.attempt}
    has_stopped = SessionStatus.RUNNING in times and SessionStatus.STOPPING in times
    if SessionStatus.COLLECTING in (session.status, *times) or has_stopped:
        row.reached_collecting = True
    row.booted_seconds = _seconds(times.get(SessionStatus.READY), row.observed_at)
    row.held_seconds = _seconds(times.get(SessionStatus.SCHEDULED), row.observed_at)


def _seconds(start: datetime | None, end: datetime) -> int:
    return max(int((end - start).total_seconds()), 0) if start else 0


def wasted(sample: SessionSample, required: dict[str, int]) -> tuple[int, int]:
    """Return (requirement − peak) × time held, in hundredths of core-seconds and GB-seconds."""

    def above(resource: str) -> int:
        seen = sample.amounts.get((resource, USED), sample.amounts.get((resource, ALLOCATED)))
        return 0 if seen is None else max(required[resource] - seen, 0) * sample.held_seconds

    return above(CPU), above(MEMORY)


def day_figures(sample: SessionSample, required: dict[str, int]) -> tuple[int, int, int]:
    """Return what a sample adds to its day: wasted CPU and memory, and the time held."""
    return (*wasted(sample, required), sample.held_seconds)
