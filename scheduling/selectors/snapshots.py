"""The input of a cycle, read from the database: what is free on the slots, and who waits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import BigIntegerField, CharField, F, Func, IntegerField, Q, QuerySet
from django.db.models.functions import Cast, Round

from lcm.lifecycle import SessionStatus
from lcm.models import Kernel, Project, User
from scheduling.capacity import NAMES, resources_of
from scheduling.fairness import Standing, standings_of
from scheduling.framework.amounts import NOTHING, UNIT, amounts_of
from scheduling.framework.configuration import Configuration
from scheduling.framework.model import FOREVER, Gang, Job, Node, Part, Queue, Snapshot, Task
from scheduling.models import Phase, Pool, Reservation, ReservationPart, Slot, SlotState
from scheduling.selectors.rooms import amounts_by_slot, devices_by_slot, ports_by_slot

# A session's claim waits only while the session does.
WAITING = Q(session=None) | Q(session__status=SessionStatus.PENDING)
LEAVING = (SessionStatus.COLLECTING, SessionStatus.STOPPING)
# Where claims without a session stand.
BARE = "bare holders"


def snapshot_of(
    pool: Pool, configuration: Configuration, *, now: datetime, limit: int, only: UUID | None = None
) -> Snapshot:
    """The pool's READY slots and the head of its queue, or one reservation of it alone."""
    # Who runs is of interest only where someone may be displaced or limited; otherwise sums will do.
    everyone = len(configuration.actions) > 1 or any(
        choice.name == "quota" and choice.arguments for choice in configuration.choices
    )
    nodes, serving = _nodes(pool, now, settled=not everyone)
    rows = _rows(_waiting(pool, only, limit))
    running = _rows(_running(pool)) if everyone else []
    names = _Names(pool, [*rows, *running])
    jobs = [_job(row, names, now) for row in rows]
    _spread(jobs, rows)
    jobs += _running_jobs(running, names, serving)
    return Snapshot(
        now=now.timestamp(),
        nodes=nodes,
        queues=names.queues,
        jobs=jobs,
        template=template_of(pool),
        pool=pool.name,
    )


def template_of(pool: Pool) -> Node:
    """A slot of this pool that nobody is on."""
    return Node(
        name=f"{pool.name}-new",
        capacity=amounts_of(vars(resources_of(pool))),
        system=pool.system,
        max_leases=pool.max_leases,
        ports=pool.last_port - pool.first_port + 1,
    )


def _nodes(pool: Pool, now: datetime, *, settled: bool) -> tuple[list[Node], set[str]]:
    """READY slots, with what is on them taken off where the jobs themselves are not in the snapshot."""
    rows = list(Slot.objects.filter(pool=pool, state=SlotState.READY).order_by("number"))
    keys = [slot.pk for slot in rows]
    busy = [slot.pk for slot in rows if slot.lease_count]
    taken = amounts_by_slot(busy) if settled and busy else {}
    devices = devices_by_slot(busy) if settled and busy and any(slot.gpu for slot in rows) else {}
    ports = ports_by_slot(pool, keys, leaked_only=not settled)
    range_size = pool.last_port - pool.first_port + 1
    nodes = []
    for slot in rows:
        going = slot.interruption_deadline
        nodes.append(
            Node(
                name=f"{pool.name}-{slot.number:02}",
                id=slot.pk.hex,
                capacity=amounts_of(vars(resources_of(slot))),
                system=pool.system,
                labels=slot.labels,
                spot=slot.is_spot,
                cordoned=slot.cordoned or going is not None,
                until=going.timestamp() if going else FOREVER,
                max_leases=slot.max_leases,
                ports=range_size,
                leaked=ports.get(slot.pk, 0),
                taken=taken.get(slot.pk, NOTHING),
                taken_leases=slot.lease_count if settled else 0,
                taken_devices=tuple(devices.get(slot.pk, {}).items()),
            )
        )
    return nodes, {node.id for node in nodes}


_COLUMNS = (
    "key", "priority", "created_at", "preemptible", "spread", "held_slot_id", "held_until", "session_id",
    "session__project_id", "session__owner_id", "session__starts_at", "session__ends_at", "holder",
    "label_text", "port_count", "cpu", "memory", "storage", "gpus", "verdict",
)  # fmt: skip


def _waiting(pool: Pool, only: UUID | None, limit: int) -> QuerySet[Reservation]:
    waiting = Reservation.objects.filter(WAITING, pool=pool, phase=Phase.PENDING)
    if only is not None:
        return waiting.filter(pk=only)
    return waiting.order_by("-priority", "created_at", "pk")[:limit]


def _running(pool: Pool) -> QuerySet[Reservation]:
    return Reservation.objects.filter(pool=pool, phase=Phase.READY).order_by("pk")


def _rows(reservations: QuerySet[Reservation]) -> list[tuple[Any, ...]]:
    """Plain values, amounts in whole units: at fleet size every object counts."""
    amounts = {
        short: Cast(Round(F(name) * UNIT), BigIntegerField())
        for short, name in zip(("cpu", "memory", "storage", "gpus"), NAMES, strict=True)
    }
    annotated = reservations.annotate(
        key=Cast("pk", CharField()),
        label_text=Cast("labels", CharField()),
        port_count=_length("port_names"),
        **amounts,
    )
    return list(annotated.values_list(*_COLUMNS))


def _length(name: str) -> Func:
    function = "jsonb_array_length" if connection.vendor == "postgresql" else "json_array_length"
    return Func(F(name), function=function, output_field=IntegerField())


class _Names:
    """Domains, projects and people as queues, with their weights and factors."""

    def __init__(self, pool: Pool, rows: Iterable[tuple[Any, ...]]) -> None:
        pairs = {(row[8], row[9]) for row in rows if row[8] is not None}
        projects = Project.objects.select_related("domain").filter(pk__in={pair[0] for pair in pairs})
        self._projects = {project.pk: project for project in projects}
        people = User.objects.filter(pk__in={pair[1] for pair in pairs})
        names = dict(people.values_list("pk", "username"))
        standings = standings_of(pool)
        self.queues: dict[str, Queue] = {BARE: Queue(BARE)}
        self.leaves: dict[tuple[UUID, UUID], tuple[str, str]] = {}
        for project_id, owner_id in pairs:
            standing = standings.get((owner_id, project_id), Standing())
            self.leaves[project_id, owner_id] = self._add(project_id, names[owner_id], standing)

    def _add(self, project_id: UUID, person: str, standing: Standing) -> tuple[str, str]:
        project = self._projects[project_id]
        domain, name = project.domain.name, project.path
        leaf = f"{name}/{person}"
        of_domain, of_project, of_person = standing.weights
        self.queues.setdefault(domain, Queue(domain, weight=of_domain, factor=standing.domain))
        self.queues.setdefault(name, Queue(name, domain, of_project, standing.project))
        self.queues[leaf] = Queue(leaf, name, of_person, standing.user)
        return name, leaf


def _job(row: tuple[Any, ...], names: _Names, now: datetime) -> Job:
    (
        key, priority, created_at, preemptible, spread, held_slot, held_until, _, project, owner, starts_at,
        ends_at, holder, labels, ports, cpu, memory, storage, gpu, verdict,
    ) = row  # fmt: skip
    queue, leaf = names.leaves[project, owner] if project is not None else (BARE, "")
    held = held_slot is not None and held_until is not None and held_until > now
    return Job(
        id=key,
        queue=queue,
        owner=leaf,
        tasks=(Task(holder, (cpu, memory, storage, gpu), ports),),
        priority=priority,
        preemptible=preemptible,
        created=created_at.timestamp(),
        gang=Gang.SPREAD if spread else Gang.TOGETHER,
        labels=_labels(labels),
        starts=starts_at.timestamp() if starts_at else 0.0,
        ends=ends_at.timestamp() if ends_at else FOREVER,
        held_on=held_slot.hex if held else "",
        verdict=verdict,
    )


def _labels(text: str) -> tuple[tuple[str, str], ...]:
    return () if text == "{}" else tuple(sorted(json.loads(text).items()))


def _spread(jobs: Sequence[Job], rows: Sequence[tuple[Any, ...]]) -> None:
    """Sessions whose kernels may go apart are placed kernel by kernel."""
    sessions = {
        row[7]: job for row, job in zip(rows, jobs, strict=True) if job.gang is Gang.SPREAD and row[7]
    }
    if not sessions:
        return
    ports = dict(
        Reservation.objects.filter(session_id__in=sessions, phase=Phase.PENDING).values_list(
            "session_id", "port_names"
        )
    )
    tasks: dict[UUID, list[Task]] = {}
    kernels = Kernel.objects.filter(session_id__in=sessions).order_by("node_label")
    for kernel in kernels.only("session_id", "node_label", *NAMES):
        request = amounts_of({name: getattr(kernel, name) for name in NAMES})
        tasks.setdefault(kernel.session_id, []).append(Task(kernel.node_label, request))
    for session_id, found in tasks.items():
        labels = [task.name for task in found]
        counts = [len(names) for names in ports_by_kernel(labels, ports.get(session_id, [])).values()]
        sessions[session_id].tasks = tuple(
            Task(task.name, task.request, count) for task, count in zip(found, counts, strict=True)
        )


def ports_by_kernel(labels: Sequence[str], port_names: Iterable[str]) -> dict[str, list[str]]:
    """A port `{label}_{protocol}` goes where its node is; what belongs to no node goes with the first."""
    found: dict[str, list[str]] = {label: [] for label in labels}
    safe = sorted(((_safe(label), label) for label in labels), key=lambda pair: -len(pair[0]))
    for name in port_names:
        label = next((label for prefix, label in safe if name.startswith(f"{prefix}_")), labels[0])
        found[label].append(name)
    return found


def _safe(label: str) -> str:
    return "".join(character if character.isalnum() or character in "_-" else "_" for character in label)


def _running_jobs(rows: Sequence[tuple[Any, ...]], names: _Names, serving: set[str]) -> list[Job]:
    """Those that hold something, where they hold it."""
    if not rows:
        return []
    keys = [UUID(row[0]) for row in rows]
    where: dict[str, list[Part]] = {}
    held = Reservation.objects.filter(pk__in=keys).values_list("pk", "slot_id", "devices", "session__status")
    leaving = set()
    by_key = {UUID(row[0]): row for row in rows}
    for key, slot_id, devices, status in held:
        row = by_key[key]
        if not row[4]:
            task = Task("", tuple(row[15:19]), row[14])
            where.setdefault(row[0], []).append(Part(slot_id.hex, (task,), _pairs(devices)))
        if status in LEAVING:
            leaving.add(row[0])
    parts = ReservationPart.objects.filter(reservation_id__in=keys)
    for part in parts:
        task = Task("", amounts_of({name: getattr(part, name) for name in NAMES}))
        key_text = by_key[part.reservation_id][0]
        where.setdefault(key_text, []).append(Part(part.slot_id.hex, (task,), _pairs(part.devices)))
    jobs = []
    for row in rows:
        on = tuple(part for part in where.get(row[0], ()) if part.node in serving)
        if on:
            job = _job(row, names, datetime.max.replace(tzinfo=row[2].tzinfo))
            job.parts, job.leaving = on, row[0] in leaving
            jobs.append(job)
    return jobs


def _pairs(devices: Iterable[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((device, amount) for device, amount in devices)
