"""Assessment of a definition: its digest compared with its requirements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from observations.arithmetic.histogram import Digest, day_of
from observations.arithmetic.measures import MEASURED, USED, Amounts
from observations.arithmetic.recommendation import (
    Flag,
    Provisioning,
    flag_of,
    propose,
    provisioning_of,
    would_be_over,
)
from observations.arithmetic.statistics import (
    LEVELS,
    STALE_DAYS,
    Confidence,
    Summary,
    choose_source,
    confidence_of,
    step_change,
    summarize,
)

DAYS = 30
UNDER_FIRST = 10**11  # under-provisioned definitions sort before any waste
GB_PER_CORE = 4
# By day: wasted core-seconds and GB-seconds in hundredths, and seconds held.
Days = dict[str, list[int]]
Newest = Sequence[tuple[datetime, Amounts]]


@dataclass(frozen=True)
class ResourceView:
    """Figures of one resource: source, summary over the sessions, and confidence."""

    resource: str
    source: str
    sessions_by_source: Mapping[str, int]
    summary: Summary | None
    step: str
    confidence: Confidence


def view_of(
    resource: str, digest: Digest, newest: Newest, *, today: int, source: str = "", before: str = ""
) -> ResourceView:
    """Return the figures of a resource from `source` or the chosen source."""
    source = source or choose_source(digest, resource, before)
    values = [amounts[resource, source] for _, amounts in newest if (resource, source) in amounts]
    summary = summarize(digest.of(resource, source), values[0] if values else None)
    step = step_change(resource, values)
    age = today - day_of(newest[0][0]) if newest else 0
    sessions_by_source = {name: digest.of(resource, name).n for name in ("used", "allocated")}
    return ResourceView(
        resource, source, sessions_by_source, summary, step, confidence_of(summary, age_days=age, step=step)
    )


@dataclass(frozen=True)
class Assessment:
    """Class, confidence and recommendation of a definition, from `n` sessions."""

    n: int
    provisioning: Provisioning
    confidence: str
    newest: datetime | None
    recommended: dict[str, int]
    sources: dict[str, str]
    flags: list[Flag]

    def priority(self, waste_cpu: int, waste_memory: int) -> int:
        """Return the review priority: under-provisioned first, then by waste."""
        if self.provisioning == Provisioning.UNDER_PROVISIONED:
            return UNDER_FIRST + self.n * 100
        if self.provisioning == Provisioning.OVER_PROVISIONED:
            return min(waste_cpu + waste_memory // GB_PER_CORE, UNDER_FIRST - 1)
        return 0


def assess(
    digest: Digest,
    *,
    newest: Newest,
    required: Mapping[str, int],
    flags: Mapping[str, str],
    sources: Mapping[str, str],
    today: int,
) -> Assessment:
    """Assess a definition. `flags` and `sources` are the current ones, which only evidence changes."""
    views = [
        view_of(resource, digest, newest, today=today, before=sources.get(resource, ""))
        for resource in MEASURED
    ]
    known = [(view, view.summary) for view in views if view.summary is not None]
    raised, undecided = [], False
    for view, summary in known:
        requirement = required[view.resource]
        exceeds, most = _exceeding(view, digest, requirement)
        flag = flag_of(
            view.resource,
            summary=summary,
            source=view.source,
            required=requirement,
            before=flags.get(view.resource, ""),
            exceeds=exceeds,
            most=most,
        )
        raised += [flag] if flag.direction else []
        undecided |= would_be_over(view.resource, summary=summary, source=view.source, required=requirement)
    return Assessment(
        n=digest.n,
        provisioning=provisioning_of(
            min((summary.n for _, summary in known), default=0), raised, undecided=undecided
        ),
        confidence=lowest_confidence(views),
        newest=newest[0][0] if newest else None,
        recommended={
            view.resource: propose(view.resource, "recommended", summary, view.source).value
            for view, summary in known
        },
        sources={view.resource: view.source for view, _ in known},
        flags=raised,
    )


def _exceeding(view: ResourceView, digest: Digest, required: int) -> tuple[int, int]:
    """Count the sessions above a requirement, and return the largest value.

    Measured use above the requirement counts whatever the source is.
    """
    for source in (view.source, USED):
        histogram = digest.of(view.resource, source)
        if above := histogram.above(required):
            return above, max(histogram.bins)
    return 0, 0


def lowest_confidence(views: Iterable[ResourceView]) -> str:
    """Return the lowest confidence of the resources that have figures."""
    levels = [view.confidence.level for view in views if view.summary is not None]
    return min(levels, key=LEVELS.index, default=LEVELS[0])


def change_days(days: Days, day: int, figures: Sequence[int], sign: int) -> Days:
    """Add or remove the waste and hold time of one session on its day."""
    before = days.get(str(day), [0] * len(figures))
    after = [old + sign * new for old, new in zip(before, figures, strict=True)]
    others = {key: value for key, value in days.items() if key != str(day)}
    return {**others, str(day): after} if any(after) else others


def recent_days(days: Days, *, today: int) -> Days:
    """Return the last thirty days, in order."""
    return {key: days[key] for key in sorted(days, key=int) if int(key) > today - DAYS}


def next_change(days: Days, newest: datetime | None, *, today: int) -> datetime | None:
    """Return when time alone changes an assessment: a day of waste drops out, or the figures become old."""
    changes = [int(day) + DAYS for day in days]
    if newest is not None:
        changes.append(day_of(newest) + STALE_DAYS + 1)
    future = [day for day in changes if day > today]
    return datetime.fromordinal(min(future)).replace(tzinfo=UTC) if future else None
