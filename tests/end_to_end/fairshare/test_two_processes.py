"""Processes on PostgreSQL: two that record concurrently, and processes killed in the middle."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairshare.models import UsageBatch, UsageRecord
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from tests.support.control_plane import wait_until
from tests.support.fairshare_setup import FairShareStage, check_all_charged, check_conserved, recorded
from tests.support.worker_processes import Start, worker_processes

pytestmark = [pytest.mark.postgres, pytest.mark.integration, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(mode, …)` starts a worker process; remaining processes are killed at the end."""
    with worker_processes("tests.end_to_end.fairshare.worker_process", tmp_path) as start:
        yield start


@pytest.fixture
def busy(transactional_db) -> FairShareStage:
    """A dozen sessions of three kernels, started one after the other."""
    stage = FairShareStage()
    for number in range(12):
        stage.start(*(("ann", "ccna"), ("bob", "ccna"), ("cyd", "soc"))[number % 3])
        stage.clock.advance(seconds=77)
    return stage


def finish(process: subprocess.Popen[str]) -> dict[str, int]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    found: dict[str, int] = json.loads(out.splitlines()[-1])
    return found


def test_two_workers_that_overlap_count_nothing_twice(busy, start):
    """Both record and aggregate concurrently without leases, while sessions end and start."""
    workers = [start("work", 6, busy.clock().isoformat()) for _ in range(2)]
    round_number = 0
    while any(worker.poll() is None for worker in workers):
        round_number += 1
        busy.clock.advance(seconds=13)
        session = LabletSession.objects.filter(status=S.SCHEDULED).order_by("?").first()
        if round_number % 3 and session:
            busy.step(session, S.CANCELLED if round_number % 2 else S.PENDING)
        elif round_number < 60:
            busy.start("ann", "ccnp")
    results = [finish(worker) for worker in workers]
    assert sum(each.get("records", 0) for each in results) == UsageRecord.objects.count()
    assert any(each.get("records") for each in results), results
    check_conserved()
    for row in UsageBatch.objects.all():
        assert row.records.count() == row.record_count


@pytest.mark.parametrize("point", ["in the middle of recording", "in the middle of aggregation"])
def test_kill_9_in_the_middle_and_a_rerun_give_the_same_totals(point, busy, start, tmp_path):
    busy.clock.advance(hours=3)
    if point == "in the middle of aggregation":
        busy.run("record")
    before = recorded()
    flag = tmp_path / "here"
    worker = start("hang", point, flag, busy.clock().isoformat())
    wait_until(flag.exists, f"a worker hangs {point}", details=lambda: str(worker.poll()))
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert recorded() == before, "half a page was kept"
    check_conserved()
    busy.run("record", "aggregate")
    check_all_charged(busy)
    busy.clock.advance(minutes=5)
    busy.run("record", "aggregate")
    check_all_charged(busy)


def test_a_page_locked_by_another_process_is_skipped(busy, start, tmp_path):
    """A second pass does not wait for a hanging one; the skipped rows are charged later."""
    busy.clock.advance(hours=1)
    flag = tmp_path / "here"
    worker = start("hang", "in the middle of recording", flag, busy.clock().isoformat())
    wait_until(flag.exists, "a worker holds its page")
    busy.run("record")
    assert not UsageRecord.objects.exists()
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    busy.run("record", "aggregate")
    check_all_charged(busy)
