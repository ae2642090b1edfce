"""Stateful test: held resources are charged exactly once, whatever happens.

Kernels start, stop and are requeued, LCM is down for hours, observers run late, twice, concurrently and crash
between steps, clocks pass midnight and a change to summer time.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from django.db import connection, transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairshare.models import Allocation, UsageBucket
from fairshare.services import usage_buckets, usage_records
from fairshare.services.usage_buckets import (
    aggregate_batches,
    differences_of,
    pending_batches,
    rebuild_day,
    recorded_days,
)
from fairshare.services.usage_records import pages, record_page
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from tests.support.fairshare_setup import FairShareStage, check_all_charged, check_conserved, recorded

pytestmark = [pytest.mark.django_db]
NEXT = {S.SCHEDULED: S.INSTANTIATING, S.INSTANTIATING: S.READY, S.READY: S.RUNNING, S.RUNNING: S.COLLECTING}
which = st.integers(0, 5)
SUBJECTS = (("ann", "ccna"), ("bob", "ccna"), ("ann", "ccnp"), ("cyd", "soc"))


class Crash(Exception):
    """The process crashes in the middle of a transaction."""


class UsageMachine(RuleBasedStateMachine):
    """An organisation in a transaction that is rolled back after each example.

    It starts before summer time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.undo = ExitStack()
        self.undo.enter_context(transaction.atomic())
        # Small, so that examples have several pages, groups and backfill transactions.
        self.undo.enter_context(patch.object(usage_records, "PAGE", 4))
        self.undo.enter_context(patch.object(usage_records, "MOST_SLICES", 7))
        self.undo.enter_context(patch.object(usage_buckets, "RECORDS", 30))

    @initialize()
    def begin(self) -> None:
        self.stage = FairShareStage()
        self.stage.clock.now = datetime(2026, 3, 28, 22, 0, tzinfo=UTC)
        self.sessions: list[LabletSession] = []

    def held(self, *statuses: S) -> list[LabletSession]:
        return [session for session in self.sessions if session.status in statuses]

    @rule(subject=st.sampled_from(SUBJECTS))
    def start(self, subject: tuple[str, str]) -> None:
        if len(self.sessions) < 6:
            self.sessions.append(self.stage.start(*subject))

    @rule(number=which)
    def step(self, number: int) -> None:
        if found := self.held(*NEXT):
            session = found[number % len(found)]
            self.stage.step(session, NEXT[S(session.status)])

    @rule(number=which)
    def stop(self, number: int) -> None:
        if found := self.held(S.SCHEDULED, *NEXT.values()):
            self.stage.stop(found[number % len(found)])

    @rule(number=which)
    def re_queue(self, number: int) -> None:
        if found := self.held(S.SCHEDULED, S.INSTANTIATING):
            self.stage.step(found[number % len(found)], S.PENDING)

    @rule(number=which)
    def place_again(self, number: int) -> None:
        if found := self.held(S.PENDING):
            self.stage.step(found[number % len(found)], S.SCHEDULED)

    @rule(ms=st.integers(0, 700_000))
    def time_passes(self, ms: int) -> None:
        self.stage.clock.advance(milliseconds=ms)

    @rule(hours=st.integers(1, 9))
    def lcm_is_down(self, hours: int) -> None:
        self.stage.clock.advance(hours=hours, minutes=7)

    @rule()
    def record(self) -> None:
        self.stage.run("record")

    @rule()
    def record_twice(self) -> None:
        self.stage.run("record", "record")

    @rule()
    def aggregate(self) -> None:
        self.stage.run("aggregate")

    @rule(number=which)
    def a_second_pass_with_old_pages(self, number: int) -> None:
        """A slow pass continues with pages that another pass has recorded meanwhile."""
        found = list(pages(3))
        self.stage.run("record")
        for page in found[number % 2 :]:
            record_page(page, now=self.stage.clock())

    @rule()
    def a_second_sum_of_old_batches(self) -> None:
        found = list(pending_batches())
        self.stage.run("aggregate")
        for group in found:
            assert aggregate_batches(group, now=self.stage.clock()) == 0

    @rule(after=st.booleans())
    def crash_in_recording(self, after: bool) -> None:
        real = usage_records._describe

        def crash(*arguments: object) -> None:
            if after:
                real(*arguments)
            raise Crash

        with patch.object(usage_records, "_describe", crash):
            for page in list(pages(4))[:2]:
                with suppress(Crash), transaction.atomic():
                    record_page(page, now=self.stage.clock())

    @rule()
    def crash_in_aggregation(self) -> None:
        real = usage_buckets._add

        def crash(where: str) -> None:
            real(where)
            raise Crash

        with patch.object(usage_buckets, "_add", crash):
            for group in list(pending_batches())[:1]:
                with suppress(Crash), transaction.atomic():
                    aggregate_batches(group, now=self.stage.clock())

    @rule(number=which)
    def a_changed_bucket_is_rebuilt(self, number: int) -> None:
        rows = list(UsageBucket.objects.order_by("pk"))
        if rows:
            row = rows[number % len(rows)]
            UsageBucket.objects.filter(pk=row.pk).update(cpu_cores=number)
            rebuild_day(row.day)
            assert differences_of(row.day) == []

    @invariant()
    def only_held_resources_are_charged(self) -> None:
        if hasattr(self, "stage"):
            expected, found = self.stage.expected(), recorded()
            assert not found - expected, "more recorded than held"

    @invariant()
    def levels_are_equal(self) -> None:
        if hasattr(self, "stage"):
            check_conserved()

    @precondition(lambda self: hasattr(self, "stage"))
    @rule()
    def catch_up(self) -> None:
        """After observers have run, all held resources are recorded exactly."""
        self.stage.run("record", "aggregate")
        check_all_charged(self.stage)

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None and hasattr(self, "stage"):
                self.end()
        finally:
            transaction.set_rollback(True)
            self.undo.close()

    def end(self) -> None:
        """All kernels stop and observers catch up: everything is settled, and buckets match records."""
        for session in self.held(S.SCHEDULED, *NEXT.values()):
            self.stage.stop(session)
        self.catch_up()
        assert not Allocation.objects.filter(settled=False).exists()
        if days := recorded_days():
            for number in range((days[1] - days[0]).days + 1):
                assert differences_of(days[0] + timedelta(days=number)) == []


@pytest.mark.slow
def test_held_resources_are_charged_exactly_once():
    examples = 25 if connection.vendor == "postgresql" else 10
    plan = settings(max_examples=examples, stateful_step_count=18, deadline=None, print_blob=True)
    run_state_machine_as_test(UsageMachine, settings=plan)


def test_a_busy_weekend_is_charged_once():
    """Run a fixed sequence of all rules, so that each of them is exercised on every run."""
    machine = UsageMachine()
    machine.begin()
    for turn in range(6):
        machine.start(SUBJECTS[turn % 4])
        machine.time_passes(431_007)
        machine.step(turn)
        machine.crash_in_recording(after=turn % 2 == 0)
        machine.a_second_pass_with_old_pages(turn)
        machine.crash_in_aggregation()
        machine.a_second_sum_of_old_batches()
        machine.lcm_is_down(5)
        machine.re_queue(turn)
        machine.time_passes(99_999)
        machine.place_again(turn)
        machine.a_changed_bucket_is_rebuilt(turn)
        machine.only_held_resources_are_charged()
        machine.levels_are_equal()
        if turn % 2:
            machine.stop(turn)
    machine.catch_up()
    days = sorted({day for _, day, _ in recorded()})
    assert [str(day) for day in days] == ["2026-03-28", "2026-03-29", "2026-03-30"]
    machine.teardown()
