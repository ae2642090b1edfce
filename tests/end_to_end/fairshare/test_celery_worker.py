"""Celery beat and a worker: records, buckets and factors appear, and the queue order follows them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from django.db import connection
from django.utils import timezone

from fairshare.models import FairShareCalculation, UsageBucket, UsageRecord
from fairshare.selectors.usage import Period
from fairshare.services import usage_totals
from lcm import settings as configured
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.supervisor.address import Address
from lcm.supervisor.child_process import die_with_parent
from observations.models import ScrapeTarget
from scheduling.models import ObserverRun, Pool, ProcessLease, TickRun
from scheduling.selectors.fair_share import LevelFactors, factors_in_pool
from tests.support.control_plane import ROOT, free_address, wait_until
from tests.support.environment import clean_environment
from tests.support.fairshare_setup import FairShareStage

pytestmark = [pytest.mark.postgres, pytest.mark.integration, pytest.mark.django_db(transaction=True)]
QUICK = {
    "USAGE_RECORD_INTERVAL": "1",
    "USAGE_AGGREGATION_INTERVAL": "1",
    "FAIR_SHARE_INTERVAL": "1",
    "LIFECYCLE_INTERVAL": "5",
    "SERVICE_DISCOVERY_INTERVAL": "1",
}


@pytest.fixture
def metrics() -> Address:
    """Address of the worker's metrics."""
    return free_address()


@pytest.fixture
def processes(transactional_db, tmp_path: Path, metrics: Address) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A worker and beat on the test database and a broker, with intervals of one second."""
    url = "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**connection.settings_dict)
    figures = tmp_path / "figures"
    figures.mkdir()
    env = clean_environment(
        DATABASE_URL=url,
        DATA_DIR=str(tmp_path),
        REDIS_URL=os.environ["REDIS_URL"],
        DATABASE_POOL_SIZE="0",
        TICK_INTERVAL="3600",
        RECONCILE_INTERVAL="3600",
        WORKER_METRICS_BIND=str(metrics),
        PROMETHEUS_MULTIPROC_DIR=str(figures),
        **QUICK,
    )
    celery = [sys.executable, "-m", "celery", "--quiet", "-A", "lcm.celery"]
    commands = [
        [*celery, "worker", "--without-gossip", "--without-mingle", "--concurrency", "1"],
        [*celery, "beat", "--schedule", str(tmp_path / "schedule"), "--pidfile="],
    ]
    with (tmp_path / "log").open("wb") as log:
        started = [
            subprocess.Popen(each, cwd=ROOT, env=env, stdout=log, stderr=log, preexec_fn=die_with_parent)
            for each in commands
        ]
    yield started
    for process in started:
        process.kill()
        process.wait()


def order_of_the_queue(stage: FairShareStage) -> list[str]:
    """Return the owners of waiting sessions in scheduling order."""
    factors = factors_in_pool(stage.pool)
    waiting = LabletSession.objects.filter(status=S.PENDING).select_related("owner").order_by("created_at")
    ranked = sorted(
        waiting,
        key=lambda each: tuple(-v for v in factors.get((each.owner_id, each.project_id), LevelFactors())[:3]),
    )
    return [session.owner.username for session in ranked]


def used_most(level: str) -> str | None:
    """Return the top user from the cached sum; enqueue a task while there is none."""
    today = timezone.now().date()
    query = usage_totals.UsageQuery(Period(today - timedelta(days=1), today), level, "cpu_cores")
    found = usage_totals.usage_totals(query, now=timezone.now()).found
    return found.subjects[0].name if found else None


def test_a_running_worker_records_aggregates_reorders_the_queue_and_can_be_scraped(
    processes, tmp_path, metrics, settings, monkeypatch
):
    settings.CACHES = configured.CACHES
    monkeypatch.setattr(usage_totals, "DIRECT_LIMIT", 0)
    stage = FairShareStage()
    stage.clock.now = timezone.now() - timedelta(hours=3)
    busy = stage.start("ann", "ccna")
    for status in (S.INSTANTIATING, S.READY, S.RUNNING):
        stage.step(busy, status)
    stage.clock.now = timezone.now()
    stage.request("ann", "ccna")
    stage.clock.advance(seconds=1)
    stage.request("cyd", "soc")
    assert order_of_the_queue(stage) == ["ann", "cyd"]

    def log() -> str:
        return (tmp_path / "log").read_text(errors="replace")[-3000:]

    wait_until(
        UsageRecord.objects.filter(allocation__session_id=busy.pk).exists, "records appear", details=log
    )
    wait_until(UsageBucket.objects.filter(level="domain").exists, "buckets appear", details=log)
    assert used_most("user") is None
    wait_until(lambda: used_most("user") == "academy / ccna / ann", "a worker sums usage", details=log)
    wait_until(FairShareCalculation.objects.exists, "factors appear", details=log)
    wait_until(lambda: order_of_the_queue(stage) == ["cyd", "ann"], "the queue's order changes", details=log)
    wait_until(lambda: ObserverRun.objects.filter(kind="handler").count() >= 6, "handlers ran", details=log)
    runs = ObserverRun.objects.filter(observer="usage-record").latest("started_at").started_at
    wait_until(
        lambda: ObserverRun.objects.filter(observer="usage-record", started_at__gt=runs).exists(),
        "it runs again by itself",
        details=log,
    )
    pool, now = Pool.objects.earliest("name"), timezone.now()
    ProcessLease.objects.create(name=f"tick:{pool.pk}", holder="dead", expires_at=now)
    resumed = TickRun.objects.filter(pool=pool, started_at__gt=now)
    wait_until(resumed.exists, "the tick of a dead holder is resumed", details=log)
    target = ScrapeTarget.objects.filter(kind="worker", address=str(metrics))
    wait_until(target.exists, "the worker is a scrape target", details=log)
    assert "lcm_tasks_total" in httpx.get(f"http://{metrics}/metrics", timeout=30).text
    assert not ObserverRun.objects.exclude(error="").exists()
