"""Evidence of a definition's sessions for its pages and the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from lcm.models import DefinitionRevision, LabletDefinition
from observations.arithmetic.assessment import DAYS, ResourceView, view_of
from observations.arithmetic.histogram import Digest, day_of, merge_digests
from observations.arithmetic.measures import MEASURED, USED, amount, gigabytes, hundredths
from observations.arithmetic.statistics import normal_range
from observations.models import (
    DefinitionAssessment,
    NotCountedReason,
    ResourceAggregate,
    SessionObservation,
)
from observations.services.assessments import lock_assessment, newest_samples, samples_of
from observations.services.observation_validation import TOTALS
from observations.services.samples import column

LISTED = 20


@dataclass(frozen=True)
class Evidence:
    """Samples of a definition's current epoch, over all revisions or of one.

    `current_revision_n` is the number of samples with the current revision.
    """

    definition: LabletDefinition
    epoch: str
    assessment: DefinitionAssessment
    digest: Digest
    views: dict[str, ResourceView]
    newest: datetime | None
    current_revision_n: int
    revision: DefinitionRevision | None = None

    def above(self, view: ResourceView, limit: int) -> int:
        """Return the number of sessions above a limit."""
        return self.digest.of(view.resource, view.source).above(limit)


def evidence_of(
    definition: LabletDefinition,
    *,
    now: datetime,
    sources: Mapping[str, str] | None = None,
    revision: DefinitionRevision | None = None,
) -> Evidence:
    """Return the evidence of the epoch or of one revision, from the default or the requested sources."""
    epoch = definition.topology_hash
    aggregates = ResourceAggregate.objects.filter(definition=definition, epoch=epoch)
    if revision is not None:
        aggregates = aggregates.filter(revision=revision)
    newest = newest_samples(definition, epoch, revision=revision)
    digests: dict[UUID | None, Digest] = {row.revision_id: Digest.from_json(row.digest) for row in aggregates}
    current = digests.get(definition.current_revision_id)
    digest = merge_digests(digests.values())
    stored = DefinitionAssessment.objects.filter(definition=definition).first()
    assessment = stored or lock_assessment(definition)
    chosen, current_sources, today = sources or {}, assessment.sources_in(epoch), day_of(now)
    views = {
        name: view_of(
            name,
            digest,
            newest,
            today=today,
            source=chosen.get(name, ""),
            before=current_sources.get(name, ""),
        )
        for name in MEASURED
    }
    return Evidence(
        definition=definition,
        epoch=epoch,
        assessment=assessment,
        digest=digest,
        views=views,
        newest=newest[0][0] if newest else None,
        current_revision_n=current.n if current else 0,
        revision=revision,
    )


def samples(evidence: Evidence) -> QuerySet[SessionObservation]:
    return samples_of(evidence.definition, evidence.epoch, evidence.revision)


@dataclass(frozen=True)
class ExceedingSession:
    """A past session that would have exceeded the proposal."""

    session_id: UUID
    owner: str
    observed_at: datetime
    value: int
    excess: int


@dataclass(frozen=True)
class ExceedingList:
    sessions: list[ExceedingSession]
    recent: int


def exceeding_sessions(
    evidence: Evidence, limits: Mapping[str, int], *, now: datetime
) -> dict[str, ExceedingList]:
    """Return per resource the sessions above a proposal, largest first, and the count of 30 days."""
    parts = []
    for resource, limit in limits.items():
        name = column(resource, evidence.views[resource].source)
        above = samples(evidence).filter(**{f"{name}__gt": amount(limit)})
        recent = above.filter(observed_at__gte=now - timedelta(days=DAYS)).order_by().values("definition")
        count = Coalesce(Subquery(recent.annotate(count=Count("pk")).values("count")), 0)
        columns = (Value(resource), F(name), count, "session_id", "observed_at", "session__owner__username")
        parts.append(_first_of(above.order_by(f"-{name}")).values_list(*columns))
    found = {resource: ExceedingList([], 0) for resource in limits}
    for resource, value, recent_count, session_id, observed_at, owner in _union(parts):
        units = hundredths(value)
        each = ExceedingSession(session_id, owner, observed_at, units, units - limits[resource])
        found[resource] = ExceedingList([*found[resource].sessions, each], recent_count)
    for listed in found.values():
        listed.sessions.sort(key=lambda each: -each.value)
    return found


def _first_of(rows: QuerySet[SessionObservation]) -> QuerySet[SessionObservation]:
    """Return the first rows of the list, unordered so that several can be combined in a union."""
    return SessionObservation.objects.filter(pk__in=rows.values("pk")[:LISTED]).order_by()


def _union(parts: Sequence[QuerySet[Any, Any]]) -> Iterable[Any]:
    """Return the rows of all querysets in one query."""
    return parts[0].union(*parts[1:], all=True) if parts else []


@dataclass(frozen=True)
class SessionDot:
    """One session in a chart."""

    session_id: UUID
    at: datetime
    values: dict[str, int | None]
    excluded: bool


def dots_of(
    evidence: Evidence,
    limit: int,
    not_counted_sessions: Sequence[SessionObservation] = (),
    *,
    span: tuple[datetime, datetime] | None = None,
) -> list[SessionDot]:
    """Return the newest sessions that count and the excluded ones, oldest first, all or of a span of time."""
    columns = {view.resource: column(view.resource, view.source) for view in evidence.views.values()}
    newest = samples(evidence).order_by("-observed_at", "-session_id")
    if span:
        newest = newest.filter(observed_at__gte=span[0], observed_at__lt=span[1])
        not_counted_sessions = [row for row in not_counted_sessions if span[0] <= row.observed_at < span[1]]
    rows = list(newest.values_list("session_id", "observed_at", *columns.values())[:limit])
    oldest = rows[-1][1] if rows else None
    excluded = [
        row
        for row in not_counted_sessions
        if row.excluded_reason and (oldest is None or row.observed_at >= oldest)
    ]
    dots = [SessionDot(key, at, _units(columns, values), excluded=False) for key, at, *values in rows]
    for row in excluded:
        values = [getattr(row, name) for name in columns.values()]
        dots.append(SessionDot(row.session_id, row.observed_at, _units(columns, values), excluded=True))
    return sorted(dots, key=lambda dot: (dot.at, dot.session_id))


def _units(columns: Mapping[str, str], values: Sequence[Decimal | None]) -> dict[str, int | None]:
    pairs = zip(columns, values, strict=True)
    return {name: None if value is None else hundredths(value) for name, value in pairs}


def not_counted_sessions(
    definition: LabletDefinition, *, revision: DefinitionRevision | None = None
) -> list[SessionObservation]:
    """Return observed sessions that do not count: excluded by a user first, then the newest others.

    The others are not eligible or have another topology. `revision` limits the result to one revision.
    """
    epoch = definition.topology_hash
    mine = SessionObservation.objects.filter(definition=definition).order_by("-observed_at")
    if revision is not None:
        mine = mine.filter(revision=revision)
    kinds = (
        mine.filter(is_sample=False, not_counted_reason=NotCountedReason.EXCLUDED),
        mine.filter(is_sample=False).exclude(not_counted_reason=NotCountedReason.EXCLUDED),
        mine.filter(Q(epoch__lt=epoch) | Q(epoch__gt=epoch), is_sample=True),
    )
    found = _union([_first_of(rows).defer("observed_resources", "peak_resources") for rows in kinds])
    rows = sorted(found, key=lambda row: row.observed_at, reverse=True)
    excluded = [row for row in rows if row.not_counted_reason == NotCountedReason.EXCLUDED]
    return [*excluded, *[row for row in rows if row.not_counted_reason != NotCountedReason.EXCLUDED][:LISTED]]


@dataclass(frozen=True)
class Outlier:
    session_id: UUID
    resource: str
    value: int


def outliers_of(evidence: Evidence) -> list[Outlier]:
    """Return outliers (modified z-score above 3.5), which a user may want to exclude."""
    parts = []
    for view in evidence.views.values():
        histogram = evidence.digest.of(view.resource, view.source)
        normal = normal_range(histogram)
        if normal is None or all(normal[0] <= value <= normal[1] for value in histogram.bins):
            continue
        name = column(view.resource, view.source)
        low, high = amount(ceil(max(normal[0], 0))), amount(int(normal[1]))
        beyond = samples(evidence).filter(Q(**{f"{name}__gt": high}) | Q(**{f"{name}__lt": low}))
        parts.append(
            _first_of(beyond.order_by(f"-{name}")).values_list("session_id", Value(view.resource), F(name))
        )
    found = [Outlier(key, resource, hundredths(value)) for key, resource, value in _union(parts)]
    order = list(evidence.views)
    return sorted(found, key=lambda each: (order.index(each.resource), -each.value))


@dataclass(frozen=True)
class NodeShare:
    """Share of one node in the total of all nodes."""

    label: str
    node_definition: str
    cpu: int | None
    memory: int | None
    percent: int | None


@dataclass(frozen=True)
class MemoryDrivers:
    """The session with the most memory, and its nodes; `nodes_total` is their memory together.

    If the observation of that peak is not stored, the nodes are from another observation.
    """

    session_id: UUID
    value: int
    nodes_total: int
    nodes: list[NodeShare]
    node_count: int
    from_other_observation: bool


def drivers_of(evidence: Evidence, limit: int = 6) -> MemoryDrivers | None:
    view = evidence.views["memory_gb"]
    name = column("memory_gb", view.source)
    largest = samples(evidence).exclude(**{name: None}).order_by(f"-{name}")
    row = largest.only("session_id", "observed_resources", "peak_resources", name).first()
    if row is None:
        return None
    stored, value = row.peak_resources or row.observed_resources, hundredths(getattr(row, name))
    nodes = nodes_in(stored, source=view.source)
    nodes_total = sum(node.memory or 0 for node in nodes)
    shares = [
        NodeShare(node.label, node.kind, node.cpu, node.memory, _percent(node.memory, nodes_total))
        for node in sorted(nodes, key=lambda node: -(node.memory or 0))
    ]
    total = stored.get(TOTALS["memory_gb", view.source])
    is_peak = total is not None and gigabytes(int(total)) == value
    return MemoryDrivers(
        row.session_id, value, nodes_total, shares[:limit], len(shares), from_other_observation=not is_peak
    )


def _percent(part: int | None, whole: int) -> int | None:
    return None if part is None or not whole else round(part * 100 / whole)


@dataclass(frozen=True)
class NodeFigures:
    label: str
    kind: str
    cpu: int | None
    memory: int | None
    storage: int | None


ALLOCATED_FIGURES = ("cpu_cores", "ram_mb", "storage_mb")
USED_FIGURES = ("used_cpu_cores", "used_memory_mb", "used_storage_mb")


def nodes_in(stored: Mapping[str, Any], *, source: str) -> list[NodeFigures]:
    """Return the nodes of a stored observation, in hundredths of a core and GB."""
    names = USED_FIGURES if source == USED else ALLOCATED_FIGURES
    return [
        NodeFigures(
            label=node["label"],
            kind=node["node_definition"],
            cpu=None if cpu is None else hundredths(Decimal(str(cpu))),
            memory=None if memory is None else gigabytes(int(memory)),
            storage=None if storage is None else gigabytes(int(storage)),
        )
        for node in raw_nodes(stored)
        for cpu, memory, storage in [[node.get(name) for name in names]]
    ]


def raw_nodes(stored: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes as posted; an observation may have none."""
    return stored.get("nodes") or []
