"""Real processes on PostgreSQL: two work on one pool, and some are killed at the worst moment."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.utils import timezone

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import FINAL, HAPPY_PATH, SessionStatus
from lcm.models import LabletSession
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_session
from scheduling.capacity import tick_trigger
from scheduling.capacity.runtimes.simulated import SimulatedRuntime
from scheduling.models import (
    ACTIVE_PHASES,
    AttemptOutcome,
    LaunchAttempt,
    Phase,
    Pool,
    ProcessLease,
    Reservation,
    SimulatedInstance,
    SlotState,
)
from scheduling.services.pools import create_pool
from scheduling.services.reservations import release_reservation
from tests.scheduling.capacity.invariants import check_rows
from tests.support.control_plane import wait_until
from tests.support.factories import make_definition, make_person, make_project, make_session
from tests.support.fake_runtime import Clock
from tests.support.fleet import Fleet
from tests.support.worker_processes import Start, worker_processes

pytestmark = [pytest.mark.postgres, pytest.mark.integration, pytest.mark.django_db(transaction=True)]
S = SlotState


class Now(Clock):
    """The real time plus the time that was skipped."""

    def __init__(self) -> None:
        self.skipped = timedelta()

    def __call__(self):
        return timezone.now() + self.skipped

    def advance(self, **delta: float):
        self.skipped += timedelta(**delta)
        return self()


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    monkeypatch.setattr(tick_trigger, "_send", lambda _: None)


@pytest.fixture
def sim(db) -> Fleet:
    """A pool of six simulated workers that start at once, with space for four labs each."""
    pool = create_pool(
        name="cml-eu",
        actor=SYSTEM,
        max_slots=6,
        max_leases=5,
        runtime_settings={"launch_seconds": 0, "boot_seconds": 0},
    )
    clock = Now()
    runtime = SimulatedRuntime(pool.name, pool.runtime_settings)
    runtime.clock = clock
    return Fleet(pool, clock, runtime)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(pool_id, mode, …)` starts a worker process; remaining processes are killed at the end."""
    with worker_processes("tests.end_to_end.scheduling.worker_process", tmp_path) as start:
        yield start


def check(fleet: Fleet) -> None:
    """Check the invariants on one snapshot of a database that others write to."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        check_rows(Pool.objects.get(pk=fleet.pool.pk))
        alive = list(SimulatedInstance.objects.filter(ended_at=None).values_list("slot_id", "id", "token"))
        owned = {slot.instance_id for slot in fleet.slots()}
        expected = {attempt.token for attempt in fleet.open_attempts()}
    assert max(Counter(slot for slot, _, _ in alive).values(), default=0) <= 1, "two instances for one slot"
    assert [row for row in alive if row[1] not in owned and row[2] not in expected] == []


def finish(process: subprocess.Popen[str]) -> Counter[str]:
    """Return the report of a worker; fail if it had an error."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    counts: Counter[str] = Counter(json.loads(out.splitlines()[-1]))
    assert not [name for name in counts if name.startswith("error")], counts
    return counts


def settle(fleet: Fleet) -> None:
    """Let time pass without demand until nothing is left."""
    for _ in range(12):
        fleet.round(150)
        check_rows(fleet.reload_pool())
    assert set(fleet.states()) <= {S.EMPTY}
    assert not SimulatedInstance.objects.filter(ended_at=None).exists()
    assert not Reservation.objects.filter(phase__in=ACTIVE_PHASES).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seconds", "lease_ms"),
    [(30, 60_000), (10, 3)],
    ids=["leases hold", "leases are lost in the middle"],
)
def test_two_workers_on_one_pool_place_nothing_twice_and_launch_nothing_twice(sim, start, seconds, lease_ms):
    """Sessions and reservations start and end meanwhile; the invariants hold at every check."""
    load = TickLoad(sim)
    workers = [start(sim.pool.pk, "work", seconds, lease_ms) for _ in range(2)]
    checks = 0
    while any(worker.poll() is None for worker in workers):
        for _ in range(5):
            load.one_event()
        check(sim)
        checks += 1
        time.sleep(0.05)
    counts = finish(workers[0]) + finish(workers[1])
    assert checks > 5
    assert counts["ticks"] > 10
    assert counts["left to the other"] + counts["lease lost"] > 0
    check_nothing_twice(counts)
    assert min(load.events.values()) > 0, load.events
    load.end_all()
    settle(sim)


def check_nothing_twice(counts: Counter[str]) -> None:
    """Compare the workers' reports with the database: one placement per reservation, one instance per
    attempt."""
    placed = Reservation.objects.filter(assigned_at__isnull=False).count()
    assert counts["placed"] == placed > 5
    attempts = LaunchAttempt.objects.all()
    assert counts["launched_for_demand"] + counts["launched_for_minimum"] == attempts.count() > 0
    launched = attempts.filter(outcome=AttemptOutcome.LAUNCHED)
    assert SimulatedInstance.objects.count() == launched.count()
    assert set(launched.values_list("instance_id", flat=True)) == set(
        SimulatedInstance.objects.values_list("id", flat=True)
    )


class TickLoad:
    """Users, API clients and a controller at once: a request, a transition, or the end of a reservation."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.chance = random.Random(5)
        self.owner = make_person("otto")
        self.lab = make_definition("campus", pool="cml-eu", now=fleet.clock())
        self.project = make_project("academy", "ccna", self.owner)
        self.events: Counter[str] = Counter({"session": 0, "claim": 0, "step": 0, "end": 0})

    def one_event(self) -> None:
        crowded = active_claims().count() >= 60
        extra_events = () if crowded else ("session", "claim", "step")
        event = self.chance.choice(["step", "end", *extra_events])
        match event:
            case "session":
                make_session(self.lab, self.project, self.owner, now=timezone.now())
            case "claim":
                self.fleet.reservation(self.chance.choice([1, 2, 4]), ttl=600)
            case "step":
                self.step()
            case "end":
                self.end_session()
        self.events[event] += 1

    def step(self) -> None:
        """Report a transition as a controller; a worker may have moved the session meanwhile."""
        running = LabletSession.objects.exclude(status__in=(*FINAL, SessionStatus.PENDING)).order_by("pk")
        sessions = list(running)
        if sessions:
            session = self.chance.choice(sessions)
            next_status = HAPPY_PATH[HAPPY_PATH.index(SessionStatus(session.status)) + 1]
            with suppress(StateConflict):
                transition_session(session=session, to=next_status, actor=SYSTEM, now=timezone.now())

    def end_session(self) -> None:
        claims = list(active_claims().select_related("session"))
        if claims:
            end_claim(self.chance.choice(claims))

    def end_all(self) -> None:
        for claim in active_claims():
            end_claim(claim)
        assert not active_claims().exists()


def active_claims():
    return Reservation.objects.filter(phase__in=ACTIVE_PHASES).order_by("created_at", "pk")


def end_claim(claim: Reservation) -> None:
    """End a reservation: cancel or finish its session, or release it."""
    if claim.session is None:
        release_reservation(reservation=claim, actor=SYSTEM, now=timezone.now())
        return
    for _ in range(5):
        session = LabletSession.objects.get(pk=claim.session_id)
        if session.status in FINAL:
            return
        stopping = session.status == SessionStatus.STOPPING
        with suppress(StateConflict):
            if stopping:
                next_status = SessionStatus.TERMINATED
                transition_session(session=session, to=next_status, actor=SYSTEM, now=timezone.now())
            else:
                cancel_session(session=session, actor=SYSTEM, now=timezone.now(), reason="no more")


def kill_at(fleet: Fleet, start: Start, point: str, tmp_path: Path) -> None:
    file = tmp_path / "reached"
    worker = start(fleet.pool.pk, "hang", point, file)
    wait_until(lambda: file.exists() or worker.poll() is not None, f"the worker is {point}", 60)
    assert worker.poll() is None, worker.communicate()[1]
    worker.kill()
    worker.wait(60)
    ProcessLease.objects.update(expires_at=timezone.now())


@pytest.mark.parametrize("point", ["inside the placement", "before the placement"])
def test_a_worker_that_is_killed_in_the_middle_of_a_tick_leaves_nothing_half_done(
    sim, start, tmp_path, point
):
    claims = [sim.reservation(2, ttl=3600) for _ in range(4)]
    kill_at(sim, start, point, tmp_path)
    assert {claim.phase for claim in Reservation.objects.all()} == {Phase.PENDING}
    check(sim)
    report = sim.tick_without_errors()
    assert report.counts["placed"] == len(claims)
    check(sim)
    for claim in claims:
        release_reservation(reservation=claim, actor=SYSTEM, now=sim.clock())
    settle(sim)


@pytest.mark.parametrize(
    ("point", "instances"), [("between intent and call", 0), ("between call and record", 1)]
)
def test_a_worker_that_is_killed_between_launch_and_record_is_repaired_by_the_next(
    sim, start, tmp_path, point, instances
):
    claim = sim.reservation(2, ttl=3600)
    kill_at(sim, start, point, tmp_path)
    assert (sim.states(), SimulatedInstance.objects.count()) == ([S.LAUNCHING], instances)
    check(sim)
    sim.clock.advance(seconds=121)
    for _ in range(4):
        sim.round(1)
        check(sim)
    claim.refresh_from_db()
    assert (claim.phase, sim.states(), SimulatedInstance.objects.count()) == (Phase.READY, [S.READY], 1)
    release_reservation(reservation=claim, actor=SYSTEM, now=sim.clock())
    settle(sim)


def test_an_instance_whose_launch_was_given_up_is_collected(sim, start, tmp_path):
    """The worker died before recording the launch and the slot was given up: the instance is an orphan."""
    claim = sim.reservation(2, ttl=3600)
    kill_at(sim, start, "between call and record", tmp_path)
    release_reservation(reservation=claim, actor=SYSTEM, now=sim.clock())
    from scheduling.services.slots import terminate_slot

    terminate_slot(slot=sim.slots()[0], reason="not needed", actor=SYSTEM, now=sim.clock())
    sim.reconcile()
    assert SimulatedInstance.objects.filter(ended_at=None).count() == 1
    sim.clock.advance(minutes=11)
    sim.reconcile()
    assert not SimulatedInstance.objects.filter(ended_at=None).exists()
    settle(sim)
