"""Buckets: aggregated once, split at midnight, equal at every level, rebuilt from records."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from django.conf import settings
from django.db import IntegrityError, transaction
from django.urls import reverse

from fairshare.arithmetic.units import UNITS_AN_HOUR
from fairshare.models import Allocation, UsageBatch, UsageBucket, UsageCheck, UsageRecord
from fairshare.models.levels import LEVELS, ROOT, Level
from fairshare.services import usage_buckets
from fairshare.services.retention import remove_old_usage
from fairshare.services.usage_buckets import (
    aggregate_batches,
    check_usage,
    differences_of,
    pending_batches,
    rebuild_day,
    recorded_days,
)
from fairshare.tasks import check_usage as check_task
from fairshare.tasks import remove_old_usage as retention_task
from lcm.domain.lifecycle import SessionStatus as S
from lcm.domain.resources import RESOURCE_NAMES
from lcm.events.catalog import events_data
from lcm.models import ChangeLog
from tests.support.fairshare_setup import check_all_charged, check_conserved, in_buckets, recorded

MONDAY = date(2026, 3, 2)


def buckets(**fields):
    return {
        (str(row.day), row.level, row.subject_id): row.cpu_cores / UNITS_AN_HOUR
        for row in UsageBucket.objects.filter(**fields)
    }


@pytest.fixture
def busy(stage):
    """Three sessions of four cores for two hours, recorded and aggregated."""
    for person, project in (("ann", "ccna"), ("bob", "ccna"), ("cyd", "soc")):
        stage.start(person, project)
    stage.clock.advance(hours=2)
    stage.run("record", "aggregate")
    return stage


def test_every_level_has_buckets(busy):
    ann, bob, cyd = (busy.people[name].pk for name in ("ann", "bob", "cyd"))
    ccna, soc = busy.projects["ccna"], busy.projects["soc"]
    assert buckets() == {
        ("2026-03-02", "user", ann): 8.0,
        ("2026-03-02", "user", bob): 8.0,
        ("2026-03-02", "user", cyd): 8.0,
        ("2026-03-02", "project", ccna.pk): 16.0,
        ("2026-03-02", "project", soc.pk): 8.0,
        ("2026-03-02", "domain", ccna.domain_id): 16.0,
        ("2026-03-02", "domain", soc.domain_id): 8.0,
    }
    parents = dict(UsageBucket.objects.values_list("subject_id", "parent_id"))
    assert parents[ann] == ccna.pk
    assert parents[ccna.pk] == ccna.domain_id
    assert parents[soc.domain_id] == ROOT


def test_one_person_in_two_projects_has_a_bucket_in_each(stage):
    stage.start("ann", "ccna")
    stage.start("ann", "ccnp")
    stage.clock.advance(hours=1)
    stage.run("record", "aggregate")
    found = UsageBucket.objects.filter(level=Level.USER, subject_id=stage.people["ann"].pk)
    assert {row.parent_id for row in found} == {stage.projects["ccna"].pk, stage.projects["ccnp"].pk}
    check_conserved()


def test_a_second_aggregation_adds_nothing(busy):
    before = buckets()
    (again,) = busy.run("aggregate")
    assert again.success_count == 0
    assert buckets() == before


def test_later_records_are_added(busy):
    busy.clock.advance(hours=1)
    busy.run("record", "aggregate")
    assert set(buckets(level="user").values()) == {12.0}
    check_all_charged(busy)


def test_a_night_is_split_at_utc_midnight(stage):
    stage.clock.advance(hours=15)
    stage.start()
    stage.clock.advance(hours=3)
    stage.run("record", "aggregate")
    ann = stage.people["ann"].pk
    assert buckets(level="user") == {("2026-03-02", "user", ann): 4.0, ("2026-03-03", "user", ann): 8.0}


def test_a_batch_is_aggregated_once(busy):
    busy.clock.advance(hours=1)
    busy.run("record")
    keys = next(pending_batches())
    assert aggregate_batches(keys, now=busy.clock()) == 1
    assert aggregate_batches(keys, now=busy.clock()) == 0
    check_conserved()


def test_batches_are_aggregated_in_groups(stage, monkeypatch):
    monkeypatch.setattr(usage_buckets, "RECORDS", 20)
    for _ in range(3):
        stage.start()
        stage.clock.advance(minutes=15)
        stage.run("record")
    assert [len(group) for group in pending_batches()] == [2, 1]
    stage.run("aggregate")
    check_all_charged(stage)


def test_a_crash_before_the_batch_is_marked_rolls_back_the_sums(busy, monkeypatch):
    busy.clock.advance(hours=1)
    busy.run("record")
    before = buckets()
    add = usage_buckets._add

    def add_and_crash(where):
        add(where)
        raise ZeroDivisionError

    monkeypatch.setattr(usage_buckets, "_add", add_and_crash)
    (result,) = busy.run("aggregate")
    assert (result.success_count, result.failure_count) == (0, 1)
    assert buckets() == before
    monkeypatch.undo()
    busy.run("aggregate")
    check_all_charged(busy)


def test_differences_are_found_and_rebuilt(busy):
    ann = UsageBucket.objects.get(level="user", subject_id=busy.people["ann"].pk)
    UsageBucket.objects.filter(pk=ann.pk).update(cpu_cores=1)
    UsageBucket.objects.filter(level="domain").last().delete()
    found = differences_of(MONDAY)
    assert len(found) == 2
    assert any("cpu_cores 1 in the bucket, 2,880,000,000 in records" in str(each) for each in found)
    assert len(rebuild_day(MONDAY)) == 2
    assert rebuild_day(MONDAY) == []
    check_all_charged(busy)


def test_a_bucket_without_records_is_a_difference(busy):
    UsageBucket.objects.create(
        day=MONDAY,
        pool="nowhere",
        level="domain",
        subject_id=ROOT,
        parent_id=ROOT,
        **dict.fromkeys(RESOURCE_NAMES, 5),
    )
    assert [each.records for each in differences_of(MONDAY)] == [(0, 0, 0, 0)]
    rebuild_day(MONDAY)
    check_all_charged(busy)


def test_records_that_are_not_aggregated_yet_are_no_difference(busy):
    busy.clock.advance(hours=1)
    busy.run("record")
    assert differences_of(MONDAY) == []


def test_a_rebuild_leaves_pending_batches_to_the_observer(busy):
    busy.clock.advance(hours=1)
    busy.run("record")
    UsageBucket.objects.filter(level="user").update(gpu=7)
    rebuild_day(MONDAY)
    busy.run("aggregate")
    check_all_charged(busy)


def test_a_check_is_stored_with_its_differences(busy):
    check = check_usage(first=MONDAY, last=MONDAY + timedelta(days=2), now=busy.clock())
    assert (check.difference_count, check.record_count) == (0, 9 * 24)
    UsageBucket.objects.filter(level="user").update(gpu=7)
    check = check_usage(first=MONDAY, last=MONDAY, now=busy.clock())
    assert check.difference_count == 3
    assert "gpu 7 in the bucket, 0 in records" in check.differences[0]


def check_events():
    rows = ChangeLog.objects.filter(object_type="usagecheck").order_by("pk")
    return list(rows.values_list("event", flat=True))


def test_new_differences_and_their_end_are_events(busy):
    def check():
        return check_usage(first=MONDAY, last=MONDAY, now=busy.clock())

    check()
    assert check_events() == []
    UsageBucket.objects.filter(level="user").update(gpu=7)
    found = [check(), check()][0]
    assert check_events() == ["usage.mismatch_detected"]
    entry = ChangeLog.objects.get(event="usage.mismatch_detected")
    assert (entry.object_id, entry.message) == (str(found.pk), "3 usage buckets differ from the records")
    (data,) = events_data([entry])
    assert (data.difference_count, data.url) == (3, f"{settings.CONFIG['PUBLIC_URL']}{reverse('fair_share')}")
    UsageBucket.objects.filter(level="project").update(gpu=7)
    check()
    assert check_events()[1:] == ["usage.mismatch_detected"]
    rebuild_day(MONDAY)
    check(), check()
    assert check_events()[2:] == ["usage.mismatch_cleared"]


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_checks_at_the_same_time_announce_a_difference_once(busy, at_once):
    UsageBucket.objects.filter(level="user").update(gpu=7)
    found = at_once(*[lambda: check_usage(first=MONDAY, last=MONDAY, now=busy.clock())] * 3)
    assert [each.difference_count for each in found] == [3, 3, 3]
    assert check_events() == ["usage.mismatch_detected"]


def test_the_task_checks_days_with_records(busy, time_machine):
    time_machine.move_to(busy.clock(), tick=False)
    check_task()
    assert UsageCheck.objects.get().first_day == MONDAY


def test_without_records_the_task_checks_nothing(db):
    check_task()
    assert not UsageCheck.objects.exists()


# --- retention ---------------------------------------------------------------------------------------


def end_all(stage):
    from lcm.models import LabletSession

    for session in LabletSession.objects.filter(status=S.SCHEDULED):
        stage.step(session, S.CANCELLED)


def test_old_records_are_deleted_and_their_buckets_kept(busy):
    end_all(busy)
    busy.run("record", "aggregate")
    totals = in_buckets("user")
    removed = remove_old_usage(now=busy.clock() + timedelta(days=91))
    assert (removed.records, removed.buckets, removed.allocations) == (9 * 24, 0, 9)
    assert not UsageRecord.objects.exists()
    assert not Allocation.objects.exists()
    assert {level: in_buckets(level) for level in LEVELS} == dict.fromkeys(LEVELS, totals)


def test_a_record_that_is_not_aggregated_is_never_deleted(busy):
    busy.clock.advance(hours=1)
    busy.run("record")
    removed = remove_old_usage(now=busy.clock() + timedelta(days=1000))
    assert removed.records == 9 * 24
    assert UsageRecord.objects.count() == 9 * 12
    busy.run("aggregate")


def test_recent_usage_is_kept(busy):
    removed = remove_old_usage(now=busy.clock() + timedelta(days=89))
    assert (removed.records, removed.buckets, removed.allocations) == (0, 0, 0)


def test_buckets_are_deleted_after_two_years(busy):
    assert remove_old_usage(now=busy.clock() + timedelta(days=731)).buckets == 7
    assert not UsageBucket.objects.exists()


def test_an_open_allocation_is_kept_whatever_its_age(busy):
    remove_old_usage(now=busy.clock() + timedelta(days=91))
    assert Allocation.objects.count() == 9


def test_retention_deletes_in_batches(busy, monkeypatch):
    from fairshare.services import retention

    monkeypatch.setattr(retention, "BATCH", 2)
    end_all(busy)
    busy.run("record", "aggregate")
    removed = remove_old_usage(now=busy.clock() + timedelta(days=800))
    assert (removed.records, removed.buckets, removed.allocations) == (9 * 24, 7, 9)


def test_the_task_uses_the_retention_settings(busy, settings, time_machine):
    settings.CONFIG["USAGE_RECORD_DAYS"] = 2
    time_machine.move_to(busy.clock() + timedelta(days=3), tick=False)
    retention_task()
    assert not UsageRecord.objects.exists()


def test_days_without_their_records_are_not_rebuilt(busy):
    assert recorded_days() == (MONDAY, MONDAY)
    busy.clock.advance(days=2)
    busy.run("record", "aggregate")
    UsageBatch.objects.filter(pk=UsageBatch.objects.earliest("pk").pk).update(removed_at=busy.clock())
    assert recorded_days() == (MONDAY + timedelta(days=1), MONDAY + timedelta(days=2))


def test_without_records_there_are_no_recorded_days(db):
    assert recorded_days() is None


# --- constraints ---------------------------------------------------------------------------------------


def test_the_database_rejects_an_unknown_level(busy):
    with pytest.raises(IntegrityError, match="bucket_level_known"), transaction.atomic():
        UsageBucket.objects.update(level="planet")


def test_the_database_rejects_a_second_bucket_of_a_day(busy):
    row = UsageBucket.objects.first()
    row.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_the_database_rejects_removal_before_aggregation(busy):
    with pytest.raises(IntegrityError, match="batch_removed"), transaction.atomic():
        UsageBatch.objects.update(aggregated_at=None, removed_at=datetime(2026, 1, 1, tzinfo=UTC))


def test_buckets_equal_their_records(busy):
    assert recorded() == busy.expected() == in_buckets("user")
