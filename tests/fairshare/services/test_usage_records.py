"""Allocations and their usage records."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.db.models import Sum

from fairshare.arithmetic.slices import to_ms
from fairshare.arithmetic.units import UNITS_AN_HOUR
from fairshare.models import Allocation, UsageBatch, UsageRecord
from fairshare.services import usage_records
from fairshare.services.usage_records import AllocationPage, pages, record_page
from lcm.db.clock import database_now
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import Kernel
from scheduling.coordination.coordinator import coordinator
from scheduling.models import ObserverRun
from tests.support.fairshare_setup import recorded
from tests.support.fake_runtime import Clock
from tests.support.usage_reference import usage_units


def periods(session=None):
    """Return start and length of records, in seconds since the morning."""
    rows = UsageRecord.objects.order_by("allocation_id", "period_start")
    if session is not None:
        rows = rows.filter(
            allocation__session_id=session.pk, allocation__kernel_id=session.kernels.first().pk
        )
    first = Allocation.objects.order_by("started_ms").first().started_ms
    return [((row.period_start - first) / 1000, row.period_ms / 1000) for row in rows]


def test_a_session_with_a_slot_has_an_allocation_per_kernel(stage):
    session = stage.start()
    rows = Allocation.objects.filter(session_id=session.pk)
    assert rows.count() == 3
    sums = rows.aggregate(Sum("cpu_cores"), Sum("memory_gb"), Sum("storage_gb"), Sum("gpu"))
    assert list(sums.values()) == [400, 350, 700, 0]
    row = rows.first()
    assert (row.user_id, row.project_id) == (stage.people["ann"].pk, stage.projects["ccna"].pk)
    assert (row.domain_id, row.pool) == (stage.projects["ccna"].domain_id, "cml-eu")
    assert (row.started_at, row.ended_at, row.recorded_until) == (stage.clock(), None, stage.clock())


def test_a_waiting_session_has_no_allocation(stage):
    session = stage.request()
    stage.step(session, S.CANCELLED)
    stage.clock.advance(hours=1)
    stage.run("record")
    assert not Allocation.objects.exists()
    assert not UsageRecord.objects.exists()


def test_a_running_kernel_is_charged_to_the_last_boundary(stage):
    stage.clock.advance(minutes=2)
    session = stage.start()
    stage.clock.advance(minutes=9)
    stage.run("record")
    assert periods(session) == [(0, 180), (180, 300)]
    stage.clock.advance(minutes=5)
    stage.run("record")
    assert periods(session) == [(0, 180), (180, 300), (480, 300)]


def test_a_kernel_that_ended_between_passes_is_charged_to_its_end(stage):
    session = stage.start()
    stage.clock.advance(minutes=7, seconds=30)
    stage.step(session, S.INSTANTIATING)
    stage.stop(session)
    stage.clock.advance(seconds=1)
    stage.run("record")
    assert periods(session) == [(0, 300), (300, 150)]
    assert Allocation.objects.filter(settled=True).count() == 3
    assert recorded() == stage.expected()


def test_a_requeued_session_is_charged_only_while_it_has_a_slot(stage):
    session = stage.start()
    stage.clock.advance(minutes=5)
    stage.step(session, S.PENDING)
    stage.clock.advance(hours=1)
    stage.step(session, S.SCHEDULED)
    stage.clock.advance(minutes=10)
    stage.run("record")
    assert periods(session) == [(0, 300), (3900, 300), (4200, 300)]
    kernel = session.kernels.first()
    attempts = Allocation.objects.filter(kernel_id=kernel.pk).order_by("attempt")
    assert list(attempts.values_list("attempt", "settled")) == [(1, True), (2, False)]
    assert recorded() == stage.expected()


def test_an_allocation_without_duration_has_no_record(stage):
    session = stage.start()
    stage.stop(session)
    stage.run("record")
    assert not UsageRecord.objects.exists()
    assert not Allocation.objects.filter(settled=False).exists()


def test_a_second_pass_records_nothing(stage):
    stage.start()
    stage.clock.advance(minutes=20)
    first, second = stage.run("record", "record")
    assert (first.success_count, second.success_count) == (3, 0)
    assert UsageRecord.objects.count() == 12
    assert UsageBatch.objects.count() == 1


def test_downtime_is_recorded_later(stage, monkeypatch):
    """Two days without LCM; no transaction writes more than three hours of an allocation."""
    session = stage.start()
    stage.clock.advance(days=2, minutes=3)
    stage.step(session, S.INSTANTIATING)
    stage.stop(session)
    stage.clock.advance(minutes=1)
    stage.run("record")
    assert recorded() == stage.expected()
    assert UsageRecord.objects.count() == 3 * (2 * 288 + 1)
    sizes = UsageBatch.objects.values_list("record_count", flat=True)
    assert max(sizes) == 3 * usage_records.MOST_SLICES
    assert sum(sizes) == UsageRecord.objects.count()


def test_a_batch_stores_its_days(stage):
    stage.clock.advance(hours=15, minutes=50)
    stage.start()
    stage.clock.advance(minutes=20)
    stage.run("record")
    batch = UsageBatch.objects.get()
    assert (str(batch.first_day), str(batch.last_day)) == ("2026-03-02", "2026-03-03")


def test_many_allocations_are_paged_by_key(stage):
    for _ in range(3):
        stage.start()
    keys = list(Allocation.objects.order_by("pk").values_list("pk", flat=True))
    assert list(pages(size=4)) == [
        AllocationPage(0, keys[3]),
        AllocationPage(keys[3], keys[7]),
        AllocationPage(keys[7], keys[8]),
    ]


def test_usage_is_amount_times_time(stage):
    session = stage.start()
    stage.clock.advance(seconds=90, milliseconds=7)
    stage.step(session, S.INSTANTIATING)
    stage.stop(session)
    stage.run("record")
    kernel = Kernel.objects.get(session=session, node_label="r1")
    record = UsageRecord.objects.get(allocation__kernel_id=kernel.pk)
    assert record.memory_gb == usage_units(kernel.memory_gb, 90_007)


def test_an_allocation_that_cannot_be_recorded_does_not_stop_the_others(stage, caplog):
    """Its cursor was set back manually: its slices are already recorded and are not counted twice."""
    sessions = [stage.start() for _ in range(4)]
    stage.clock.advance(minutes=5)
    stage.run("record")
    stage.clock.advance(minutes=5)
    broken = Allocation.objects.filter(session_id=sessions[2].pk).first()
    Allocation.objects.filter(pk=broken.pk).update(cursor_ms=broken.started_ms)
    (result,) = stage.run("record")
    assert (result.success_count, result.failure_count) == (11, 1)
    assert f"allocation {broken.pk}" in result.error
    assert "usage_record_failed" in caplog.text
    assert UsageRecord.objects.filter(allocation=broken).count() == 1
    assert UsageRecord.objects.exclude(allocation=broken).count() == 22


def test_a_slow_clock_does_not_remove_recorded_usage(stage):
    session = stage.start()
    stage.clock.advance(minutes=10)
    stage.run("record")
    stage.clock.advance(minutes=-3)
    stage.step(session, S.CANCELLED)
    stage.run("record")
    assert set(Allocation.objects.values_list("settled", flat=True)) == {True}
    assert periods(session) == [(0, 300), (300, 300)]


def test_a_second_open_creates_no_allocation(stage):
    from fairshare.services.allocations import open_allocations

    session = stage.start()
    open_allocations([session.pk], now=stage.clock() + timedelta(hours=1))
    assert Allocation.objects.count() == 3
    assert set(Allocation.objects.values_list("started_ms", flat=True)) == {to_ms(stage.clock())}


def test_a_rolled_back_transition_leaves_no_allocation(stage):
    session = stage.request()
    with transaction.atomic():
        stage.step(session, S.SCHEDULED)
        assert Allocation.objects.exists()
        transaction.set_rollback(True)
    assert not Allocation.objects.exists()


def test_records_and_cursor_move_together(stage, monkeypatch):
    """A failure after the rows were written rolls them back."""
    stage.start()
    stage.clock.advance(minutes=10)
    page = next(pages())

    def fail(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(usage_records, "_describe", fail)
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        record_page(page, now=stage.clock())
    assert not UsageRecord.objects.exists()
    assert all(row.cursor_ms == row.started_ms for row in Allocation.objects.all())


def test_the_lag_is_the_lag_of_the_oldest_allocation(stage):
    observer = coordinator.observers["usage-record"]
    assert observer.lag(stage.clock()) is None
    stage.start()
    stage.clock.advance(minutes=20)
    assert observer.lag(stage.clock()) == timedelta(minutes=20)
    stage.run("record")
    assert observer.lag(stage.clock()) is None


def test_a_pass_with_a_fast_clock_fails_and_records_nothing(stage):
    """Half an hour after the start by the database's clock, one pass has a clock that is a day ahead."""
    stage.clock = Clock(database_now() - timedelta(minutes=30))
    session = stage.start()
    stage.clock.advance(minutes=30)
    stage.run("record")
    stage.clock.advance(days=1)
    (refused,) = stage.run("record")
    assert (refused.success_count, refused.failure_count) == (0, 1)
    assert "s ahead of the database's; nothing was observed" in refused.error
    run = ObserverRun.objects.filter(observer="usage-record").latest("started_at")
    assert (run.failure_count, run.error) == (1, refused.error)
    record_page(next(pages()), now=stage.clock())
    # A process with a clock ahead ends the session.
    stage.step(session, S.CANCELLED)
    stage.clock = Clock(database_now())
    stage.run("record")
    assert Allocation.objects.latest("pk").ended_at <= database_now()
    cores = sum(used for (name, _, _), used in recorded().items() if name == "cpu_cores")
    assert cores / UNITS_AN_HOUR == pytest.approx(2.0, abs=0.5)


def test_an_allocation_with_a_future_start_starts_at_the_time_of_the_database(stage):
    stage.clock = Clock(database_now() + timedelta(hours=1))
    stage.start()
    row = Allocation.objects.latest("pk")
    assert row.started_ms == row.cursor_ms
    assert row.started_at <= database_now()


@pytest.mark.parametrize(
    ("changes", "constraint"),
    [
        ({"cursor_ms": 0}, "allocation_in_order"),
        ({"ended_ms": 0}, "allocation_in_order"),
        ({"settled": True}, "allocation_settled_at_its_end"),
        ({"gpu": -1}, "allocation_amounts_in_range"),
    ],
)
def test_the_database_rejects_invalid_allocations(changes, constraint, stage):
    stage.start()
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Allocation.objects.update(**changes)


@pytest.mark.parametrize("length", [0, 300_001])
def test_the_database_rejects_records_longer_than_a_slice(length, stage):
    stage.start()
    stage.clock.advance(minutes=5)
    stage.run("record")
    with pytest.raises(IntegrityError, match="record_within_a_slice"), transaction.atomic():
        UsageRecord.objects.update(period_ms=length)
