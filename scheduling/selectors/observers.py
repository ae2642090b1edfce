"""Status of observers and lifecycle handlers."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Min, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from lcm.domain.errors import NotFound
from lcm.web.wording import duration_text
from scheduling.coordination.coordinator import coordinator, lease_name
from scheduling.coordination.observer import DEFAULT_INTERVAL, ObserverHandler, interval_of
from scheduling.models import ObserverRun, ProcessLease, RunKind

logger = logging.getLogger(__name__)

# A run that is this many intervals late needs attention.
LATE_AFTER = 2
SLACK = timedelta(seconds=30)
BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)
NEVER_RAN = "never ran"
STATES = ("healthy", "running", "late", "failed", NEVER_RAN)
STATE_NAMES = {
    "healthy": _("Healthy"),
    "running": _("Running"),
    "late": _("Late"),
    "failed": _("Failed"),
    NEVER_RAN: _("Never ran"),
}


@dataclass(frozen=True)
class ObserverStatus:
    """One observer or handler with its last run."""

    name: str
    kind: RunKind
    text: str
    interval: timedelta
    last: ObserverRun | None
    running: bool
    lag: timedelta | None
    now: datetime

    @property
    def is_late(self) -> bool:
        """Return whether no run started for two intervals, or the records are that far behind."""
        allowed = LATE_AFTER * self.interval + SLACK
        if self.last is None or self.now - self.last.started_at > allowed:
            return True
        return self.lag is not None and self.lag > allowed + self.interval

    @property
    def state(self) -> str:
        if self.running:
            return "running"
        if self.last is None:
            return NEVER_RAN
        if self.last.error or self.last.failure_count:
            return "failed"
        return "late" if self.is_late else "healthy"

    @property
    def state_text(self) -> str:
        return str(STATE_NAMES[self.state])

    @property
    def interval_text(self) -> str:
        seconds = self.interval.total_seconds()
        if seconds < 60:
            return gettext("%(count)s s") % {"count": f"{seconds:g}"}
        return duration_text(self.interval)


def observer_statuses(now: datetime, *, names: Iterable[str] | None = None) -> list[ObserverStatus]:
    """Return the status of the named observers and handlers, or of all, in a constant number of queries."""
    known: dict[str, Any] = {**coordinator.observers, **coordinator.handlers}
    selected = known if names is None else {name: known[name] for name in names if name in known}
    last = _newest_runs(selected)
    running = set(ProcessLease.objects.filter(expires_at__gt=now).values_list("name", flat=True))
    return [
        ObserverStatus(
            name=name,
            kind=RunKind.OBSERVER if name in coordinator.observers else RunKind.HANDLER,
            text=" ".join((type(each).__doc__ or "").strip().split("\n\n")[0].split()),
            interval=_interval(each),
            last=last.get(name),
            running=lease_name(name) in running,
            lag=_lag(each, now) if name in coordinator.observers else None,
            now=now,
        )
        for name, each in selected.items()
    ]


def _interval(each: Any) -> timedelta:
    """Return the interval; the default if an installed observer fails to provide one."""
    try:
        return interval_of(each)
    except Exception as error:
        logger.warning("interval_unknown", extra={"observer": each.name(), "error": str(error)})
        return DEFAULT_INTERVAL


def _lag(each: ObserverHandler[Any], now: datetime) -> timedelta | None:
    """Return the lag; None if an installed observer fails to provide one."""
    try:
        return each.lag(now)
    except Exception as error:
        logger.warning("lag_unknown", extra={"observer": each.name(), "error": str(error)})
        return None


@dataclass(frozen=True)
class FailingObserver:
    """An observer or handler that is late, or whose newest run failed.

    `since` is its last run, or the first of consecutive failures; None when it never ran.
    """

    name: str
    interval: timedelta
    since: datetime | None
    error: str = ""


def failing_observers(now: datetime) -> list[FailingObserver]:
    """Return observers that failed or did not run for two intervals, in one or two queries."""
    known: dict[str, Any] = {**coordinator.observers, **coordinator.handlers}
    intervals = {name: _interval(each) for name, each in known.items()}
    if not intervals:
        return []
    newest = _newest_runs(intervals)
    late = [
        FailingObserver(name, interval, newest[name].started_at if name in newest else None)
        for name, interval in intervals.items()
        if name not in newest or now - newest[name].started_at > LATE_AFTER * interval + SLACK
    ]
    others = newest.keys() - {run.name for run in late}
    failed = {name: newest[name] for name in others if newest[name].error or newest[name].failure_count}
    since = _failing_since(failed) if failed else {}
    failing = [
        FailingObserver(name, intervals[name], since[name], run.error or gettext("Some targets failed."))
        for name, run in failed.items()
        # Observers that are missing here have just run successfully.
        if name in since
    ]
    return failing + late


def last_successes(names: Iterable[str]) -> dict[str, datetime]:
    """Return the start of the last successful run of each; names without one are missing."""
    succeeded = ObserverRun.objects.exclude(has_failed())
    return {name: run.started_at for name, run in _newest_runs(names, succeeded).items()}


def _newest_runs(names: Iterable[str], among: QuerySet[ObserverRun] | None = None) -> dict[str, ObserverRun]:
    """Return the newest run of each, in one indexed query."""
    runs = ObserverRun.objects.all() if among is None else among
    found = Q(pk__in=[])
    for name in names:
        newest = runs.filter(observer=name).order_by("-started_at").values("started_at")[:1]
        found |= Q(observer=name, started_at=Subquery(newest))
    return {row.observer: row for row in runs.filter(found).order_by("started_at", "pk")}


def _failing_since(names: Iterable[str]) -> dict[str, datetime]:
    """Return the first failed run after the last successful one, by name."""
    found = Q()
    for name in names:
        last_success = runs_of(name).exclude(has_failed()).values("started_at")[:1]
        found |= Q(observer=name, started_at__gt=Coalesce(Subquery(last_success), Value(BEFORE_ALL)))
    rows = ObserverRun.objects.filter(found).order_by()
    return dict(rows.values_list("observer").annotate(Min("started_at")))


def observer_status(name: str, now: datetime) -> ObserverStatus:
    found = observer_statuses(now, names=[name])
    if not found:
        raise NotFound(gettext("There is no observer or lifecycle handler “%(name)s”.") % {"name": name})
    return found[0]


def observer_names() -> list[str]:
    """Return the names of all observers and lifecycle handlers."""
    return sorted([*coordinator.observers, *coordinator.handlers])


def has_failed() -> Q:
    """Filter runs with an error or a failed target."""
    return ~Q(error="") | Q(failure_count__gt=0)


def runs_of(name: str) -> QuerySet[ObserverRun]:
    return ObserverRun.objects.filter(observer=name).order_by("-started_at", "-pk")
