"""Snapshots: the input of a cycle, read from the database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Case, CharField, Count, F, FloatField, Func, IntegerField, Q, QuerySet, When
from django.db.models.functions import Cast

from lcm.db.bulk import fetch_raw_rows
from lcm.domain.lifecycle import SessionStatus
from lcm.domain.resources import RESOURCE_NAMES
from lcm.models import Kernel, Project, User
from scheduling.models import (
    Phase,
    Pool,
    PortAllocation,
    Reservation,
    ReservationPart,
    Slot,
    SlotState,
)
from scheduling.models.slots import readable_labels
from scheduling.placement.framework.amounts import GPU, NOTHING, Units
from scheduling.placement.framework.configuration import Configuration
from scheduling.placement.framework.model import FOREVER, Gang, Job, JobPart, Node, Queue, Snapshot, Task
from scheduling.selectors.allocated_resources import (
    amounts_by_slot,
    devices_by_slot,
    ports_by_slot,
    whole_units,
)
from scheduling.selectors.fair_share import LevelFactors, factors_in_pool
from scheduling.selectors.lead_time import configured_lead_time
from scheduling.selectors.new_slots import incoming_supplies, new_slots_of

# A session's reservation waits only while the session does.
WAITING = Q(session=None) | Q(session__status=SessionStatus.PENDING)
LEAVING = (SessionStatus.COLLECTING, SessionStatus.STOPPING)
# The queue of reservations without a session.
NO_SESSION_QUEUE = "bare holders"


def snapshot_of(
    pool: Pool,
    configuration: Configuration,
    *,
    now: datetime,
    limit: int,
    only: UUID | None = None,
    coming: Sequence[Node] | None = None,
    requested: Sequence[ReservationRow] = (),
) -> Snapshot:
    """Return the pool's READY slots and the head of its queue, or a single reservation.

    `coming`: the incoming slots, if they are loaded already. `requested`: reservations that are not saved.
    """
    # Running jobs are needed only if they can be evicted or count against a quota; otherwise sums suffice.
    with_running = len(configuration.actions) > 1 or any(
        choice.name == "quota" and choice.arguments for choice in configuration.choices
    )
    nodes, serving = _nodes(pool, now, subtract_load=not with_running)
    waiting = Reservation.objects.filter(WAITING, pool=pool, phase=Phase.PENDING)
    rows = _rows(_head(waiting, configuration, now, limit) if only is None else waiting.filter(pk=only))
    rows += requested
    placed = Reservation.objects.filter(pool=pool, phase=Phase.READY).order_by("pk")
    running = _rows(placed) if with_running else []
    names = _Queues(pool, [*rows, *running])
    seconds = now.timestamp()
    jobs = [_job(row, names, seconds) for row in rows]
    _spread(jobs, rows)
    jobs += _running_jobs(running, names, serving)
    new_slots = new_slots_of(pool)
    if coming is None:
        coming = [supply.node for supply in incoming_supplies(new_slots, now=now)]
    return Snapshot(
        now=seconds,
        nodes=nodes,
        queues=names.queues,
        jobs=jobs,
        templates=new_slots.templates,
        pool=pool.name,
        max_nodes=pool.max_slots,
        coming=coming,
    )


def _nodes(pool: Pool, now: datetime, *, subtract_load: bool) -> tuple[list[Node], set[str]]:
    """Return READY slots; the load is subtracted if the running jobs are not in the snapshot."""
    ready = Slot.objects.filter(pool=pool, state=SlotState.READY)
    slots = ready.annotate(ends=_seconds("interruption_deadline"), **whole_units())
    columns = ("pk", "number", "labels", "is_spot", "cordoned", "ends", "max_leases", "lease_count")
    rows = list(slots.values_list(*columns, *whole_units()))
    busy = any(row[7] for row in rows)
    taken = amounts_by_slot(ready) if subtract_load and busy else {}
    has_gpus = any(row[len(columns) + GPU] for row in rows)
    devices = devices_by_slot(ready) if subtract_load and busy and has_gpus else {}
    ports = ports_by_slot(pool, ready, leaked_only=not subtract_load)
    nodes = [
        Node(
            name=f"{pool.name}-{number:02}",
            id=key.hex,
            capacity=tuple(amounts),
            system=pool.system,
            labels=readable_labels(labels),
            spot=spot,
            cordoned=cordoned or ends is not None,
            until=FOREVER if ends is None else ends,
            max_leases=max_leases,
            ports=pool.port_count,
            leaked=ports.get(key, 0),
            taken=taken.get(key, NOTHING),
            taken_leases=leases if subtract_load else 0,
            taken_devices=tuple(devices.get(key, {}).items()),
        )
        for key, number, labels, spot, cordoned, ends, max_leases, leases, *amounts in rows
    ]
    return nodes, {node.id for node in nodes}


class ReservationRow(NamedTuple):
    """A reservation as plain values: ids as text, times in seconds, amounts in units."""

    key: str
    priority: int
    created: float
    preemptible: bool
    spread: bool
    held_on: str | None
    held_to: float | None
    session: str | None
    project: str | None
    owner: str | None
    starts: float | None
    ends: float | None
    holder: str
    label_text: str
    port_count: int
    last_summary: str | None
    amounts: Units

    @property
    def name(self) -> str:
        """Return the name of the task that represents the whole reservation."""
        return self.holder or self.key


def _head(
    waiting: QuerySet[Reservation], configuration: Configuration, now: datetime, limit: int
) -> QuerySet[Reservation]:
    """Return the head of the queue; advance bookings never precede reservations that have joined."""
    early = Q(session__starts_at__gt=now + configured_lead_time(configuration))
    later = Case(When(early, then=1), default=0, output_field=IntegerField())
    return waiting.order_by(later, "-priority", "created_at", "pk")[:limit]


def _rows(reservations: QuerySet[Reservation]) -> list[ReservationRow]:
    """Return rows of plain values: at fleet size creating an object per row is too slow."""
    annotated = reservations.annotate(
        key=_text("pk"),
        created=_seconds("created_at"),
        held_on=_text("held_slot_id"),
        held_to=_seconds("held_until"),
        session_key=_text("session_id"),
        project=_text("session__project_id"),
        owner=_text("session__owner_id"),
        starts=_seconds("session__starts_at"),
        ends=_seconds("session__ends_at"),
        label_text=_text("labels"),
        last_summary=F("last_verdict__summary"),
        port_count=_length("port_names"),
        **whole_units(),
    )
    columns = ["session_key" if name == "session" else name for name in ReservationRow._fields[:-1]]
    width = len(columns)
    rows = fetch_raw_rows(annotated.values_list(*columns, *whole_units()))
    return [ReservationRow._make((*values[:width], values[width:])) for values in rows]


def _text(name: str) -> Cast:
    return Cast(name, CharField())


def _seconds(name: str) -> Func:
    """Return seconds since the epoch, the time unit of a cycle."""
    if connection.vendor == "postgresql":
        template = "EXTRACT(EPOCH FROM %(expressions)s)::double precision"
    else:
        template = "(julianday(%(expressions)s) - 2440587.5) * 86400.0"
    return Func(F(name), template=template, output_field=FloatField())


def _length(name: str) -> Func:
    function = "jsonb_array_length" if connection.vendor == "postgresql" else "json_array_length"
    return Func(F(name), function=function, output_field=IntegerField())


class _Queues:
    """Domains, projects and users as queues, with their weights and factors."""

    def __init__(self, pool: Pool, rows: Iterable[ReservationRow]) -> None:
        pairs = {(row.project, row.owner) for row in rows if row.project and row.owner}
        ids = {text: UUID(text) for pair in pairs for text in pair}
        projects = Project.objects.select_related("domain").filter(
            pk__in={ids[project] for project, _ in pairs}
        )
        self._projects = {project.pk: project for project in projects}
        people = User.objects.filter(pk__among={ids[owner] for _, owner in pairs})
        names = dict(people.values_list("pk", "username"))
        factors_by_member = factors_in_pool(pool)
        self.queues: dict[str, Queue] = {NO_SESSION_QUEUE: Queue(NO_SESSION_QUEUE)}
        self.leaves: dict[tuple[str | None, str | None], tuple[str, str]] = {
            (None, None): (NO_SESSION_QUEUE, "")
        }
        for project, owner in sorted(pairs):
            project_id, owner_id = ids[project], ids[owner]
            levels = factors_by_member.get((owner_id, project_id), LevelFactors())
            self.leaves[project, owner] = self._add(project_id, names[owner_id], levels)

    def _add(self, project_id: UUID, person: str, levels: LevelFactors) -> tuple[str, str]:
        project = self._projects[project_id]
        domain, name = project.domain.name, project.path
        leaf = f"{name}/{person}"
        of_domain, of_project, of_person = levels.weights
        domain_joins, project_joins = levels.joins
        # The factors of the levels with a share of their own, from the top.
        factors = [levels.domain, levels.project, levels.user]
        top = 1.0 if domain_joins else factors.pop(0)
        middle = 1.0 if project_joins else factors.pop(0)
        self.queues.setdefault(domain, Queue(domain, weight=of_domain, factor=top, joins=domain_joins))
        self.queues.setdefault(name, Queue(name, domain, of_project, middle, joins=project_joins))
        self.queues[leaf] = Queue(leaf, name, of_person, factors[0])
        return name, leaf


def _job(row: ReservationRow, names: _Queues, now: float) -> Job:
    queue, leaf = names.leaves[row.project, row.owner]
    held = row.held_on is not None and row.held_to is not None and row.held_to > now
    return Job(
        id=row.key,
        queue=queue,
        owner=leaf,
        tasks=(Task(row.name, row.amounts, row.port_count),),
        priority=row.priority,
        preemptible=bool(row.preemptible),
        created=row.created,
        gang=Gang.SPREAD if row.spread else Gang.TOGETHER,
        labels=_labels(row.label_text),
        starts=row.starts or 0.0,
        ends=FOREVER if row.ends is None else row.ends,
        held_on=UUID(row.held_on).hex if held and row.held_on else "",
        verdict=row.last_summary or "",
    )


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    return () if text == "{}" else tuple(sorted(json.loads(text).items()))


def _spread(jobs: Sequence[Job], rows: Sequence[ReservationRow]) -> None:
    """Split sessions whose kernels may be on different slots into one task per kernel."""
    spread_jobs = {
        UUID(row.session): job for row, job in zip(rows, jobs, strict=True) if row.spread and row.session
    }
    if not spread_jobs:
        return
    waiting = Reservation.objects.filter(session_id__among=list(spread_jobs), phase=Phase.PENDING)
    ports = dict(waiting.values_list("session_id", "port_names"))
    tasks: dict[UUID, list[Task]] = {}
    kernels = Kernel.objects.filter(session_id__among=list(spread_jobs)).order_by("node_label")
    for kernel in kernels.only("session_id", "node_label", *RESOURCE_NAMES):
        request = kernel.amounts.to_hundredths()
        tasks.setdefault(kernel.session_id, []).append(Task(kernel.node_label, request))
    for session_id, found in tasks.items():
        names = ports_by_kernel([task.name for task in found], ports.get(session_id, []))
        spread_jobs[session_id].tasks = tuple(
            Task(task.name, task.request, len(names[task.name])) for task in found
        )


def ports_by_kernel(labels: Sequence[str], port_names: Iterable[str]) -> dict[str, list[str]]:
    """Assign each port `{label}_{protocol}` to the kernel of its node; ports without a node to the first."""
    found: dict[str, list[str]] = {label: [] for label in labels}
    safe = sorted(((_safe(label), label) for label in labels), key=lambda pair: -len(pair[0]))
    for name in port_names:
        label = next((label for prefix, label in safe if name.startswith(f"{prefix}_")), labels[0])
        found[label].append(name)
    return found


def _safe(label: str) -> str:
    return "".join(character if character.isalnum() or character in "_-" else "_" for character in label)


def _running_jobs(rows: Sequence[ReservationRow], names: _Queues, serving: set[str]) -> list[Job]:
    """Return the reservations that hold slots, with their parts."""
    if not rows:
        return []
    by_key = {UUID(row.key): row for row in rows}
    parts_by_key, leaving = _running_parts(by_key)
    jobs = []
    for key, row in by_key.items():
        job_parts = tuple(part for part in parts_by_key.get(key, ()) if part.node in serving)
        if job_parts:
            job = _job(row, names, FOREVER)
            job.parts, job.leaving = job_parts, key in leaving
            jobs.append(job)
    return jobs


def _running_parts(rows: Mapping[UUID, ReservationRow]) -> tuple[dict[UUID, list[JobPart]], set[UUID]]:
    """Return the parts of running reservations by slot, and which reservations are stopping."""
    parts_by_key: dict[UUID, list[JobPart]] = {}
    leaving = set()
    held = Reservation.objects.filter(pk__among=list(rows))
    for key, slot_id, devices, status in held.values_list("pk", "slot_id", "devices", "session__status"):
        row = rows[key]
        if not row.spread:
            task = Task(row.name, row.amounts, row.port_count)
            parts_by_key[key] = [JobPart(slot_id.hex, (task,), _pairs(devices))]
        if status in LEAVING:
            leaving.add(key)
    parts = list(ReservationPart.objects.filter(reservation_id__among=list(rows)))
    ports = _ports_of_parts({rows[part.reservation_id].session for part in parts})
    for part in parts:
        amounts = part.amounts.to_hundredths()
        session = rows[part.reservation_id].session
        name = ", ".join(part.kernels) or rows[part.reservation_id].name
        task = Task(name, amounts, ports.get((UUID(session), part.slot_id), 0) if session else 0)
        parts_by_key.setdefault(part.reservation_id, []).append(
            JobPart(part.slot_id.hex, (task,), _pairs(part.devices))
        )
    return parts_by_key, leaving


def _ports_of_parts(sessions: Iterable[str | None]) -> dict[tuple[UUID, UUID], int]:
    """Return the number of ports of spread sessions on each of their slots."""
    keys = [UUID(text) for text in sessions if text]
    if not keys:
        return {}
    rows = PortAllocation.objects.filter(session_id__in=keys, leaked=False).order_by()
    counts: Any = rows.values_list("session_id", "slot_id").annotate(Count("pk"))
    return {(session_id, slot_id): count for session_id, slot_id, count in counts}


def _pairs(devices: Iterable[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((device, amount) for device, amount in devices)
