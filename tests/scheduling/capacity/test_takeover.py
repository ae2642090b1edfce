"""Lease holders as real processes on PostgreSQL: killed, frozen, or without database connection."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from lcm.domain.lifecycle import SessionStatus
from lcm.models import LabletSession
from scheduling.capacity import tick_trigger
from scheduling.capacity.runtimes.registry import runtime_for
from scheduling.capacity.tick import scheduling_tick
from scheduling.coordination.coordinator import LEASE_LOST, lease_name, process_handler
from scheduling.coordination.leases import lease, take_or_renew
from scheduling.metrics import TickMetrics
from scheduling.models import Phase, Pool, ProcessLease, Reservation
from tests.support.control_plane import wait_until
from tests.support.factories import make_definition, make_person, make_project, make_session
from tests.support.worker_processes import Start, worker_processes

pytestmark = [pytest.mark.postgres, pytest.mark.integration, pytest.mark.django_db(transaction=True)]
NAME = lease_name("expire-pending")
LENGTH = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch):
    monkeypatch.setattr(tick_trigger, "_send", lambda _: None)


@pytest.fixture
def overdue_session(transactional_db) -> LabletSession:
    """A session that `expire-pending` expires."""
    owner, before = make_person("otto"), timezone.now() - timedelta(hours=3)
    definition, project = (
        make_definition("campus", pool="cml-eu", now=before),
        make_project("academy", "ccna", owner),
    )
    return make_session(definition, project, owner, now=before)


class Holder:
    """A process in the middle of its work under a lease of a second."""

    def __init__(self, folder: Path, start: Start, work: str, *arguments: object) -> None:
        self.reached, self.go = folder / "reached", folder / "go"
        self.process = start(work, LENGTH.total_seconds(), self.reached, self.go, *arguments)
        wait_until(
            lambda: self.reached.exists() or self.process.poll() is not None, "the work has begun", 120
        )
        assert self.process.poll() is None, self.process.communicate()[1]

    def finish(self) -> str:
        self.go.touch()
        return self.process.communicate(timeout=120)[0].strip()


@pytest.fixture
def start_holder(tmp_path: Path) -> Iterator[Callable[..., Holder]]:
    # Two connections: one for the work and one for renewals.
    with worker_processes("tests.scheduling.capacity.lease_process", tmp_path, connections=2) as start:
        yield partial(Holder, tmp_path, start)


def status_of(session: LabletSession) -> str:
    session.refresh_from_db()
    return session.status


def run_tick(pool: Pool):
    return scheduling_tick(pool, runtime_for(pool), timezone.now, TickMetrics())


def check_takeover_after_kill(holder: Holder, take_over: Callable[[], object]) -> None:
    """No other process works while the holder lives; another continues one lease after its death."""
    assert take_over() is None
    holder.process.kill()
    holder.process.wait(60)
    killed_at = timezone.now()
    assert ProcessLease.objects.get().expires_at <= killed_at + LENGTH
    wait_until(lambda: take_over() is not None, "another process continues", 60)


def test_another_process_continues_after_a_handler_is_killed(overdue_session, start_holder):
    check_takeover_after_kill(start_holder("handler"), lambda: process_handler("expire-pending"))
    assert status_of(overdue_session) == SessionStatus.EXPIRED


def test_another_process_continues_after_a_tick_is_killed(overdue_session, start_holder):
    pool = Pool.objects.get(name="cml-eu")
    check_takeover_after_kill(start_holder("tick", pool.pk), lambda: run_tick(pool))
    assert Reservation.objects.get().phase == Phase.PENDING
    assert not ProcessLease.objects.exists()


def test_a_frozen_holder_loses_its_lease_and_writes_nothing_when_it_continues(overdue_session, start_holder):
    holder = start_holder("handler")
    first = ProcessLease.objects.get(name=NAME).expires_at
    wait_until(
        lambda: ProcessLease.objects.get(name=NAME).expires_at > first + LENGTH, "the lease is renewed", 60
    )
    assert process_handler("expire-pending") is None, "a run that is longer than its lease keeps it"

    holder.process.send_signal(signal.SIGSTOP)
    other = {"holder": "other", "length": timedelta(hours=1)}
    wait_until(lambda: take_or_renew(NAME, **other, now=timezone.now()), "another holder has it", 60)
    holder.process.send_signal(signal.SIGCONT)
    assert holder.finish() == LEASE_LOST
    assert status_of(overdue_session) == SessionStatus.PENDING
    assert ProcessLease.objects.get(name=NAME).holder == "other"


def test_another_process_continues_after_a_holder_lost_its_connection(overdue_session, start_holder):
    pool = Pool.objects.get(name="cml-eu")
    holder = start_holder("tick", pool.pk)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [int(holder.reached.read_text())])
    assert "OperationalError" in holder.finish()
    assert ProcessLease.objects.exists(), "a holder without a connection cannot release its lease"
    wait_until(lambda: run_tick(pool) is not None, "another process continues", 60)
    assert not ProcessLease.objects.exists()


def test_the_renewing_thread_ends_with_the_block(transactional_db):
    with lease("long work", length=timedelta(seconds=0.3)):
        first = ProcessLease.objects.get().expires_at
        wait_until(lambda: ProcessLease.objects.get().expires_at > first, "the lease is renewed", 60)
    assert "lease long work" not in {thread.name for thread in threading.enumerate()}
    assert not ProcessLease.objects.exists()
