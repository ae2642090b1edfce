"""Live usage of sessions and slots: their kernels with figures from Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from lcm.domain.lifecycle import SessionStatus
from lcm.models import Kernel, LabletSession
from lcm.models.sessions import KernelStatus
from observations.livestats.cached_stats import busiest, kernel_live_stats
from observations.livestats.history import History, kernel_history
from observations.livestats.kernel_stats import KernelStats, MetricValue
from observations.livestats.live_stats import LiveStats
from observations.livestats.states import LiveState
from observations.livestats.totals import total
from scheduling.models import Phase, Reservation, ReservationPart, Slot

# Statuses in which the lab exists or existed a moment ago.
HAS_A_LAB = (
    SessionStatus.READY,
    SessionStatus.RUNNING,
    SessionStatus.COLLECTING,
    SessionStatus.STOPPING,
)
RANGES = {"1h": timedelta(hours=1), "24h": timedelta(hours=24)}
WHOLE_SESSION = "session"


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


@dataclass(frozen=True)
class BusySession:
    """A session and the cores it uses now."""

    session: LabletSession
    cores: float


@dataclass(frozen=True)
class Busiest:
    state: LiveState
    sessions: list[BusySession]
    error: str = ""
    read_at: datetime | None = None


def has_lab(session: LabletSession) -> bool:
    return session.status in HAS_A_LAB


def session_live(session: LabletSession) -> LiveView:
    return LiveView.of(list(session.kernels.order_by("node_label")))


def usual_range(session: LabletSession, now: datetime) -> str:
    """Return the default range: a session's whole life if it is younger than an hour, else the last hour."""
    return WHOLE_SESSION if now - session.starts_at < RANGES["1h"] else "1h"


def session_history(session: LabletSession, *, range: str, now: datetime) -> History:
    """Return the history of the last hour, day or whole lab run, up to the end of an ended session."""
    kernels = list(session.kernels.values_list("pk", "started_at", "terminated_at"))
    ended = [end for _, _, end in kernels if end is not None]
    end = max(ended) if ended and session.is_final else now
    if range == WHOLE_SESSION:
        start = min((begun for _, begun, _ in kernels if begun is not None), default=session.starts_at)
    else:
        start = end - RANGES[range]
    return kernel_history([pk for pk, _, _ in kernels], start=min(start, end), end=end)


def slot_live(slot: Slot) -> LiveView:
    return LiveView.of(kernels_on(slot))


def kernels_on(slot: Slot) -> list[Kernel]:
    """Return the running kernels on a slot; of a spread session, only the kernels on this slot."""
    whole = Reservation.objects.filter(slot=slot, phase=Phase.READY, spread=False).values("session_id")
    parts = ReservationPart.objects.filter(slot=slot, reservation__phase=Phase.READY)
    here = [key for kernels in parts.values_list("kernels", flat=True) for key in kernels]
    running = Kernel.objects.filter(status=KernelStatus.RUNNING).select_related("session")
    return list(
        (running.filter(session_id__in=whole) | running.filter(pk__in=here)).order_by(
            "session_id", "node_label"
        )
    )


def kernels_of(session_ids: Iterable[UUID]) -> dict[UUID, list[UUID]]:
    """Return kernel IDs by session, with an entry for every session."""
    found: dict[UUID, list[UUID]] = {key: [] for key in session_ids}
    rows = Kernel.objects.filter(session_id__in=list(found)).order_by("pk")
    for session_id, key in rows.values_list("session_id", "pk"):
        found[session_id].append(key)
    return found


def busiest_sessions(limit: int = 5) -> Busiest:
    """Return the sessions that use the most CPU now, without sessions that have ended."""
    found = busiest("cpu_util", limit * 2)
    rows = LabletSession.objects.filter(pk__in=found.by_session, status__in=HAS_A_LAB)
    rows = rows.select_related("definition", "owner", "project__domain").defer(
        "definition__topology_yaml", "definition__nodes", "definition__links"
    )
    sessions = [BusySession(session, found.by_session[session.pk]) for session in rows]
    sessions.sort(key=lambda busy: (-busy.cores, str(busy.session.pk)))
    return Busiest(found.state, sessions[:limit], found.error, found.read_at)
