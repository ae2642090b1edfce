"""Prometheus metrics of scheduling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max, OuterRef, Subquery, Sum
from django.utils import timezone
from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from scheduling.models import Phase, Pool, Reservation, RunKind, Slot, SlotState, TickRun
from scheduling.selectors.pools import pools_with_queue

if TYPE_CHECKING:
    from scheduling.capacity.steps.context import TickContext

TICK_SECONDS = Histogram("lcm_tick_seconds", "Duration of one tick.", ["pool"])
STEP_SECONDS = Histogram("lcm_tick_step_seconds", "Duration of one step of a tick.", ["pool", "step"])
STEP_ERRORS = Counter("lcm_tick_step_errors_total", "Steps that failed.", ["pool", "step"])
LAUNCHES = Counter("lcm_launches_total", "Launches by result.", ["pool", "result"])
PLUGIN_SECONDS = Counter("lcm_scheduler_plugin_seconds_total", "Time in a plugin.", ["pool", "plugin"])
PLUGIN_FAILURES = Counter(
    "lcm_scheduler_plugin_failures_total", "Calls of a plugin that failed.", ["pool", "plugin"]
)
PLACED = Counter("lcm_placements_total", "Reservations placed on a slot.", ["pool"])
OBSERVER_LABELS = ["observer", "kind"]
OBSERVER_SUCCESSES = Counter(
    "lcm_observer_success_total", "Targets that an observer or handler processed.", OBSERVER_LABELS
)
OBSERVER_FAILURES = Counter(
    "lcm_observer_failure_total", "Targets and runs of an observer or handler that failed.", OBSERVER_LABELS
)
OBSERVER_SECONDS = Histogram(
    "lcm_observer_run_seconds", "Duration of a run of an observer or handler.", OBSERVER_LABELS
)


def count_run(kind: RunKind, name: str, *, duration_ms: int, result: Any) -> None:
    """Count a run; an error without a failed target, such as a lost lease, is one failure."""
    failures = result.failure_count or (1 if result.error else 0)
    OBSERVER_SUCCESSES.labels(name, kind.value).inc(result.success_count)
    OBSERVER_FAILURES.labels(name, kind.value).inc(failures)
    OBSERVER_SECONDS.labels(name, kind.value).observe(duration_ms / 1000)


class TickMetrics:
    """Metrics of a tick; tests and simulations pass a replacement."""

    def observe(self, pool: Pool, report: TickContext) -> None:
        TICK_SECONDS.labels(pool=pool.name).observe(sum(report.step_ms.values()) / 1000)
        for step, milliseconds in report.step_ms.items():
            STEP_SECONDS.labels(pool=pool.name, step=step).observe(milliseconds / 1000)
        for step in report.errors:
            STEP_ERRORS.labels(pool=pool.name, step=step).inc()
        PLACED.labels(pool=pool.name).inc(report.counts.get("placed", 0))
        for plugin, found in report.plugins.items():
            PLUGIN_SECONDS.labels(pool=pool.name, plugin=plugin).inc(found.get("ms", 0) / 1000)
            PLUGIN_FAILURES.labels(pool=pool.name, plugin=plugin).inc(found.get("failures", 0))


def capacity_figures() -> Iterator[Metric]:
    """Metrics read from the database at each scrape, so that they are correct whichever process wrote the
    rows."""
    yield _by(
        "lcm_slots", "Slots by state.", ["pool", "state"], Slot.objects.values_list("pool__name", "state")
    )
    yield _by(
        "lcm_reservations",
        "Active reservations by phase.",
        ["pool", "phase"],
        Reservation.objects.filter(phase__in=(Phase.PENDING, Phase.READY)).values_list("pool__name", "phase"),
    )
    yield from _queues()
    yield from _leases()
    yield _ticks()
    yield from _observers()


def _by(name: str, text: str, labels: list[str], rows: Any) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for *values, count in rows.order_by().annotate(Count("pk")):
        family.add_metric(values, count)
    return family


def _queues() -> Iterator[Metric]:
    """Yield queue metrics. Advance bookings count from their queue entry. Unmet demand is that of the
    last tick, at most the current queue."""
    oldest = GaugeMetricFamily(
        "lcm_oldest_pending_seconds", "Longest current wait in the queue.", labels=["pool"]
    )
    unmet = GaugeMetricFamily(
        "lcm_unmet_demand",
        "Waiting reservations that a new slot could help, by the last tick.",
        labels=["pool"],
    )
    now = timezone.now()
    newest = TickRun.objects.filter(pool=OuterRef("pk")).order_by("-started_at").values("counts")[:1]
    pools = pools_with_queue(now).annotate(counts=Subquery(newest))
    for pool, waiting, since, counts in pools.values_list(
        "name", "waiting", "oldest_waiting_since", "counts"
    ):
        unmet.add_metric([pool], min((counts or {}).get("unmet", 0), waiting))
        oldest.add_metric([pool], max((now - (since or now)).total_seconds(), 0))
    yield oldest
    yield unmet


def _leases() -> Iterator[Metric]:
    used = GaugeMetricFamily("lcm_leases_used", "Leases held on READY slots.", labels=["pool"])
    limit = GaugeMetricFamily("lcm_leases_limit", "Leases that READY slots can hold.", labels=["pool"])
    warm = GaugeMetricFamily("lcm_warm_slots_missing", "Missing warm slots.", labels=["pool"])
    ready = Slot.objects.filter(state=SlotState.READY).order_by().values_list("pool__name")
    leases = {pool: rest for pool, *rest in ready.annotate(Sum("lease_count"), Sum("max_leases"))}
    serving = ready.filter(lease_count=0, cordoned=False, interruption_deadline=None)
    idle = dict(serving.annotate(Count("pk")))
    for name, enabled, target in Pool.objects.values_list("name", "enabled", "warm_slots"):
        held, limit_sum = leases.get(name, (0, 0))
        used.add_metric([name], held)
        limit.add_metric([name], limit_sum)
        warm.add_metric([name], max(target - idle.get(name, 0), 0) if enabled else 0)
    yield from (used, limit, warm)


def _ticks() -> Metric:
    """Yield tick metrics of enabled pools; a pool without a tick has no sample."""
    family = GaugeMetricFamily(
        "lcm_last_tick_timestamp_seconds", "Start of the last tick of a pool.", labels=["pool"]
    )
    rows = TickRun.objects.filter(pool__enabled=True).order_by().values_list("pool__name")
    for pool, at in rows.annotate(Max("started_at")):
        family.add_metric([pool], at.timestamp())
    return family


def _observers() -> Iterator[Metric]:
    from scheduling.selectors.observers import last_successes, observer_statuses

    labels = OBSERVER_LABELS
    last = GaugeMetricFamily(
        "lcm_observer_last_run_timestamp_seconds",
        "Start of the last run of an observer or handler.",
        labels=labels,
    )
    interval = GaugeMetricFamily(
        "lcm_observer_interval_seconds", "Interval of an observer or handler.", labels=labels
    )
    lag = GaugeMetricFamily(
        "lcm_observer_lag_seconds", "How far an observer's records are behind.", labels=labels
    )
    failures = GaugeMetricFamily(
        "lcm_observer_last_failures", "Failures in the last run of an observer or handler.", labels=labels
    )
    success = GaugeMetricFamily(
        "lcm_observer_last_success_timestamp_seconds",
        "Start of the last run of an observer or handler without a failure.",
        labels=labels,
    )
    rows = observer_statuses(timezone.now())
    succeeded = last_successes(each.name for each in rows)
    for each in rows:
        names = [each.name, each.kind.value]
        if each.name in succeeded:
            success.add_metric(names, succeeded[each.name].timestamp())
        interval.add_metric(names, each.interval.total_seconds())
        lag.add_metric(names, each.lag.total_seconds() if each.lag else 0)
        if each.last is not None:
            last.add_metric(names, each.last.started_at.timestamp())
            failures.add_metric(names, each.last.failure_count)
    yield from (last, success, interval, lag, failures)
