"""Statistics of samples: percentiles, spread, outliers, step changes and confidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lcm.domain.messages import Message, gettext, ngettext
from observations.arithmetic.histogram import Digest, Histogram
from observations.arithmetic.measures import ALLOCATED, RULES, USED

ENOUGH_MEASURED = Fraction(80, 100)
OUTLIER_SCORE = 3.5
MAD_SCALE = 0.6745
MEAN_DEVIATION_SCALE = 1.253314
STEP_NEWEST, STEP_BEFORE_LEAST, STEP_BEFORE_MOST = 5, 5, 15
STEP_SHARE = Fraction(20, 100)
WIDE_SPREAD = 0.5
STALE_DAYS = 60
LEVELS = ("not_enough_data", "low", "medium", "high")
ENOUGH_FOR = ((22, "high"), (10, "medium"), (5, "low"))
# Highest confidence level below each effective number of sessions.
EFFECTIVE_LIMITS = ((5, "low"), (10, "medium"))


@dataclass(frozen=True)
class Summary:
    """Figures of one resource over an epoch; amounts in hundredths, percentiles by nearest rank."""

    n: int
    min: int
    max: int
    avg: int
    p50: int
    p90: int
    p95: int
    decayed_p95: int
    latest: int | None
    spread: float
    effective_n: float


def percentile(rows: Sequence[tuple[int, int, int]], percent: int) -> int:
    """Return the nearest-rank percentile of ascending (value, count, weight) rows: always a sample value."""
    rank = max(-(-percent * sum(row[1] for row in rows) // 100), 1)
    return _reach(((value, count) for value, count, _ in rows), rank)


def weighted_percentile(rows: Sequence[tuple[int, int, int]], percent: int) -> int:
    """Return the smallest value at or below which this share of the weight lies."""
    needed = -(-percent * sum(row[2] for row in rows) // 100)
    return _reach(((value, weight) for value, _, weight in rows), needed)


def _reach(steps: Iterable[tuple[int, int]], needed: int) -> int:
    passed = 0
    for value, size in steps:
        passed += size
        if passed >= needed:
            return value
    raise ValueError("a percentile needs at least one sample")


def summarize(histogram: Histogram, latest: int | None) -> Summary | None:
    """Summarize a histogram; None if it is empty."""
    rows = histogram.sorted_rows()
    if not rows:
        return None
    n = sum(row[1] for row in rows)
    p50, p95 = percentile(rows, 50), percentile(rows, 95)
    return Summary(
        n=n,
        min=rows[0][0],
        max=rows[-1][0],
        avg=-(-sum(value * count for value, count, _ in rows) // n),
        p50=p50,
        p90=percentile(rows, 90),
        p95=p95,
        decayed_p95=weighted_percentile(rows, 95),
        latest=latest,
        spread=round((p95 - p50) / p50, 4) if p50 else 0.0,
        effective_n=round(histogram.effective_n, 1),
    )


def choose_source(digest: Digest, resource: str, before: str = "") -> str:
    """Return the figures a resource is assessed by: used or allocated. `before` is the current source.

    The source becomes *used* when 80 % of the sessions have measured use. It stays *used* while at least one
    session has: a session without measured use says nothing about use, so it never changes the source.
    """
    used, allocated = digest.of(resource, USED).n, digest.of(resource, ALLOCATED).n
    if not used:
        return ALLOCATED
    is_enough = before == USED or not allocated or Fraction(used, digest.n) >= ENOUGH_MEASURED
    return USED if is_enough else ALLOCATED


def normal_range(histogram: Histogram) -> tuple[float, float] | None:
    """Return the range where the modified z-score is at most 3.5; None if the samples have no spread."""
    rows = histogram.sorted_rows()
    n = sum(row[1] for row in rows)
    if n < 5:
        return None
    median = percentile(rows, 50)
    deviations = Histogram()
    for value, count, weight in rows:
        deviations.add(abs(value - median), weight, count)
    scale = percentile(deviations.sorted_rows(), 50) / MAD_SCALE
    if not scale:
        mean = sum(value * count for value, count, _ in deviations.sorted_rows()) / n
        scale = mean * MEAN_DEVIATION_SCALE
    return (median - OUTLIER_SCORE * scale, median + OUTLIER_SCORE * scale) if scale else None


def step_change(resource: str, newest_first: Sequence[int]) -> str:
    """Return `up` or `down` if the newest five samples all lie 20 % and the floor beyond the earlier ones."""
    new, before = newest_first[:STEP_NEWEST], newest_first[STEP_NEWEST : STEP_NEWEST + STEP_BEFORE_MOST]
    if len(new) < STEP_NEWEST or len(before) < STEP_BEFORE_LEAST:
        return ""
    old_middle, new_middle = sorted(before)[len(before) // 2], sorted(new)[len(new) // 2]
    moved = abs(new_middle - old_middle)
    if moved < RULES[resource].floor or moved < STEP_SHARE * old_middle:
        return ""
    if min(new) > max(before):
        return "up"
    return "down" if max(new) < min(before) else ""


@dataclass(frozen=True)
class Confidence:
    """A level and its reasons, the number of sessions first."""

    level: str
    reasons: tuple[Message, ...]


def confidence_of(summary: Summary | None, *, age_days: int, step: str) -> Confidence:
    """Return the confidence from the number of sessions, lowered by age, spread and step changes.

    Old sessions have little weight, so the effective number of sessions limits the level.
    """
    n = summary.n if summary else 0
    level = next((name for least, name in ENOUGH_FOR if n >= least), LEVELS[0])
    if summary is None:
        return Confidence(level, (_count_reason(n),))
    limit = next((name for below, name in EFFECTIVE_LIMITS if summary.effective_n < below), level)
    is_limited = LEVELS.index(limit) < LEVELS.index(level)
    index = LEVELS.index(limit if is_limited else level)
    lowered_by = (summary.spread > WIDE_SPREAD, age_days > STALE_DAYS, bool(step))
    if index:
        index = max(index - sum(lowered_by), 1)
    effective = gettext("weighted by age equal to %(count)s", count=f"{summary.effective_n:g}")
    reasons = (
        _count_reason(n),
        *((effective,) if is_limited else ()),
        _spread_reason(summary.spread),
        _age_reason(age_days),
        _step_reason(step),
    )
    return Confidence(LEVELS[index], reasons)


def _count_reason(n: int) -> Message:
    if n >= 22:
        return ngettext("%(count)s session, 22 are enough", "%(count)s sessions, 22 are enough", n)
    if n >= 5:
        return ngettext("%(count)s session, 22 would be enough", "%(count)s sessions, 22 would be enough", n)
    return ngettext("%(count)s session, at least 5 needed", "%(count)s sessions, at least 5 needed", n)


def _spread_reason(spread: float) -> Message:
    if spread > WIDE_SPREAD:
        return gettext("spread %(spread)s is wide", spread=f"{spread:.2f}")
    return gettext("spread %(spread)s is small", spread=f"{spread:.2f}")


def _age_reason(days: int) -> Message:
    if days > STALE_DAYS:
        return ngettext(
            "the newest observation is %(count)s day old",
            "the newest observation is %(count)s days old",
            days,
        )
    return gettext("the newest observation is recent")


def _step_reason(step: str) -> Message:
    if step == "up":
        return gettext("the newest sessions stepped up")
    if step == "down":
        return gettext("the newest sessions stepped down")
    return gettext("no step change")
