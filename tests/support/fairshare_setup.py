"""A small organisation with sessions that tests control, and invariants of its usage."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Sum

from fairshare.arithmetic.slices import day_of, floor_slice, to_ms
from fairshare.models import UsageBatch, UsageBucket, UsageRecord
from fairshare.models.levels import LEVELS
from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Kernel, LabletDefinition, LabletSession, Membership, Project, User
from lcm.services.session_transitions import transition_session
from scheduling.coordination.coordinator import coordinator
from scheduling.coordination.observer import ObserverResult
from scheduling.models import Pool
from tests.support.factories import make_definition, make_person, make_project, make_session
from tests.support.fake_runtime import Clock
from tests.support.usage_reference import split_at_boundaries, usage_units

MORNING = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
Totals = Counter[tuple[str, date, str]]


@dataclass
class FairShareStage:
    """Two domains, three projects and three people, one of them in two projects; a lab of three kernels."""

    clock: Clock = field(default_factory=lambda: Clock(MORNING))
    # Intervals in which sessions held a slot, in milliseconds.
    held: dict[UUID, list[list[int | None]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ann, bob, cyd = (make_person(name) for name in ("ann", "bob", "cyd"))
        self.lab: LabletDefinition = make_definition("campus", pool="cml-eu", now=self.clock())
        self.pool = Pool.objects.get(name="cml-eu")
        self.people: dict[str, User] = {"ann": ann, "bob": bob, "cyd": cyd}
        self.projects: dict[str, Project] = {
            "ccna": make_project("academy", "ccna", ann, bob),
            "ccnp": make_project("academy", "ccnp", ann),
            "soc": make_project("security", "soc", cyd),
        }
        Membership.objects.update(joined_at=self.clock() - timedelta(days=1))

    def request(self, who: str = "ann", project: str = "ccna", **fields: Any) -> LabletSession:
        hours = {"ends_at": self.clock() + timedelta(hours=8)}
        return make_session(
            self.lab, self.projects[project], self.people[who], now=self.clock(), **{**hours, **fields}
        )

    def start(self, who: str = "ann", project: str = "ccna") -> LabletSession:
        """Request a session that holds a slot from now on."""
        session = self.request(who, project)
        self.step(session, S.SCHEDULED)
        return session

    def step(self, session: LabletSession, to: S) -> None:
        transition_session(session=session, to=to, actor=SYSTEM, now=self.clock())
        spans = self.held.setdefault(session.pk, [])
        if to == S.SCHEDULED:
            spans.append([to_ms(self.clock()), None])
        elif to in (S.PENDING, S.TERMINATED, S.CANCELLED, S.FAILED) and spans and spans[-1][1] is None:
            spans[-1][1] = to_ms(self.clock())

    def stop(self, session: LabletSession) -> None:
        """End a session by the shortest path of transitions."""
        if session.status == S.SCHEDULED:
            self.step(session, S.CANCELLED)
            return
        if session.status != S.STOPPING:
            self.step(session, S.STOPPING)
        self.step(session, S.TERMINATED)

    def run(self, *names: str) -> list[ObserverResult]:
        """Run observers by short name: record, aggregate or calculate."""
        full = {
            "record": "usage-record",
            "aggregate": "usage-aggregation",
            "calculate": "fair-share-calculation",
        }
        found = [coordinator.process_observer(full[name], self.clock) for name in names]
        assert all(result is not None for result in found), "another run held the lease"
        return [result for result in found if result is not None]

    def expected(self) -> Totals:
        """Return the expected usage up to now, time × amount, by resource and day."""
        limit = floor_slice(to_ms(self.clock()))
        totals: Totals = Counter()
        amounts = self._amounts()
        for session_id, spans in self.held.items():
            for started, ended in spans:
                assert started is not None
                for piece in split_at_boundaries(started, limit if ended is None else ended):
                    for kernel in amounts[session_id]:
                        for name in RESOURCE_NAMES:
                            used = usage_units(getattr(kernel, name), piece.length)
                            totals[(name, day_of(piece.start), "all")] += used
        return +totals

    def _amounts(self) -> dict[UUID, list[Kernel]]:
        found: dict[UUID, list[Kernel]] = {}
        for kernel in Kernel.objects.filter(session__in=list(self.held)):
            found.setdefault(kernel.session_id, []).append(kernel)
        return found


def recorded(*, aggregated_only: bool = False) -> Totals:
    """Return the recorded usage by resource and day, summed in Python instead of SQL."""
    rows = UsageRecord.objects.all()
    if aggregated_only:
        rows = rows.filter(batch__aggregated_at__isnull=False)
    totals: Totals = Counter()
    for row in rows:
        for name in RESOURCE_NAMES:
            totals[(name, day_of(row.period_start), "all")] += getattr(row, name)
    return +totals


def in_buckets(level: str) -> Totals:
    totals: Totals = Counter()
    sums = (
        UsageBucket.objects.filter(level=level)
        .values("day")
        .annotate(**{f"s_{n}": Sum(n) for n in RESOURCE_NAMES})
    )
    for row in sums.order_by():
        for name in RESOURCE_NAMES:
            totals[(name, row["day"], "all")] += int(row[f"s_{name}"])
    return +totals


def check_conserved() -> None:
    """Check that aggregated records, people, projects and domains have equal sums per day and resource."""
    records = recorded(aggregated_only=True)
    for level in LEVELS:
        assert in_buckets(level) == records, level


def check_all_charged(stage: FairShareStage) -> None:
    """Check that every second up to the last boundary is recorded once and aggregated at every level."""
    assert not UsageBatch.objects.filter(aggregated_at=None).exists()
    assert recorded() == stage.expected()
    check_conserved()


def is_postgresql() -> bool:
    return connection.vendor == "postgresql"
