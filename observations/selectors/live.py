"""Live usage of sessions and slots: their kernels with figures from Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q

from lcm.domain.lifecycle import SessionStatus
from lcm.models import Kernel, LabletSession
from lcm.models.sessions import KernelStatus
from observations.livestats.cached_stats import BusiestResult, busiest, kernel_live_stats
from observations.livestats.history import History, kernel_history
from observations.livestats.kernel_stats import KernelStats, MetricValue
from observations.livestats.live_stats import LiveStats
from observations.livestats.prometheus_settings import PrometheusSettings
from observations.livestats.totals import total
from scheduling.models import Phase, Reservation, ReservationPart, Slot
from scheduling.selectors.slots import slot_allocations

# Statuses in which the lab exists or existed a moment ago.
HAS_A_LAB = (
    SessionStatus.READY,
    SessionStatus.RUNNING,
    SessionStatus.COLLECTING,
    SessionStatus.STOPPING,
)
RANGES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24)}
WHOLE_SESSION = "session"
GIB = 1024**3


@dataclass(frozen=True)
class LiveNode:
    """A kernel and its live statistics."""

    kernel: Kernel
    stats: KernelStats


@dataclass(frozen=True)
class LiveView:
    """Several kernels and their total."""

    stats: LiveStats
    nodes: list[LiveNode]
    totals: dict[str, MetricValue]

    @classmethod
    def of(cls, kernels: Sequence[Kernel]) -> LiveView:
        stats = kernel_live_stats(kernel.pk for kernel in kernels)
        nodes = [LiveNode(kernel, stats.kernels[str(kernel.pk)]) for kernel in kernels]
        return cls(stats, nodes, total(node.stats.metrics for node in nodes))


def has_lab(session: LabletSession) -> bool:
    return session.status in HAS_A_LAB


def has_live_figures() -> bool:
    """Return whether LCM has a Prometheus to read figures from."""
    return PrometheusSettings.from_settings().is_configured


def session_live(session: LabletSession) -> LiveView:
    return LiveView.of(list(session.kernels.order_by("node_label")))


def span_of(
    kernels: Iterable[Kernel], now: datetime, *, since: datetime, is_final: bool = False
) -> tuple[datetime, datetime]:
    """Return the times between which kernels have figures; `since` if none has started."""
    found = list(kernels)
    ended = [each.terminated_at for each in found if each.terminated_at is not None]
    end = max(ended) if ended and is_final else now
    start = min((each.started_at for each in found if each.started_at is not None), default=since)
    return min(start, end), end


def session_history(session: LabletSession, *, range: str, now: datetime) -> History:
    """Return the history of the last hour, day or whole lab run, up to the end of an ended session."""
    kernels = list(session.kernels.only("pk", "started_at", "terminated_at"))
    start, end = span_of(kernels, now, since=session.starts_at, is_final=session.is_final)
    if range != WHOLE_SESSION:
        start = end - RANGES[range]
    return kernel_history([kernel.pk for kernel in kernels], start=start, end=end)


def slot_live(slot: Slot) -> LiveView:
    """Return the kernels on a slot; their total relates to what the reservations of the slot hold."""
    live = LiveView.of(kernels_on(slot))
    held = slot_allocations(slot.pool, [slot])[slot.pk].allocated
    bases = {"cpu_util": held.cpu_cores, "mem": held.memory_gb * GIB, "disk": held.storage_gb * GIB}
    totals = {
        name: _relative_to(value, float(bases[name])) if name in bases else value
        for name, value in live.totals.items()
    }
    return replace(live, totals=totals)


def _relative_to(value: MetricValue, base: float) -> MetricValue:
    pct = 100 * value.current / base if value.current is not None and base else None
    return replace(value, capacity=base or None, pct=pct)


def kernels_on(slot: Slot) -> list[Kernel]:
    """Return the running kernels on a slot; of a spread session, only the kernels on this slot."""
    whole = Reservation.objects.filter(slot=slot, phase=Phase.READY, spread=False).values("session_id")
    here = Q(session_id__in=whole)
    parts = ReservationPart.objects.filter(slot=slot, reservation__phase=Phase.READY)
    for session_id, labels in parts.values_list("reservation__session_id", "kernels"):
        here |= Q(session_id=session_id, node_label__in=labels)
    running = Kernel.objects.filter(here, status=KernelStatus.RUNNING).select_related("session")
    return list(running.order_by("session_id", "node_label"))


def kernels_of(session_ids: Iterable[UUID]) -> dict[UUID, list[UUID]]:
    """Return kernel IDs by session, with an entry for every session."""
    found: dict[UUID, list[UUID]] = {key: [] for key in session_ids}
    rows = Kernel.objects.filter(session_id__in=list(found)).order_by("pk")
    for session_id, key in rows.values_list("session_id", "pk"):
        found[session_id].append(key)
    return found


def busiest_sessions(limit: int = 5) -> tuple[BusiestResult, list[tuple[LabletSession, float]]]:
    """Return the sessions that use the most cores now, without ended ones, and the result of the query."""
    found = busiest("cpu_util", limit * 2)
    rows = LabletSession.objects.filter(pk__in=found.by_session, status__in=HAS_A_LAB)
    rows = rows.select_related("definition", "owner", "project__domain").defer(
        "definition__topology_yaml", "definition__nodes", "definition__links"
    )
    sessions = [(session, found.by_session[session.pk]) for session in rows]
    return found, sorted(sessions, key=lambda busy: (-busy[1], str(busy[0].pk)))[:limit]
