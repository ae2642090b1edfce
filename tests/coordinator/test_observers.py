"""Observers: registered by name, run one at a time, their failures counted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from lcm.errors import NotFound, Unavailable
from lcm.lifecycle import SessionStatus
from lcm.models import LabletSession
from lcm.models.sessions import KernelStatus
from lcm.services import asking
from scheduling.coordinator import LEASE_LOST, coordinator, lease_name
from scheduling.leases import lease
from scheduling.models import Lease, ObserverRun, RunKind
from scheduling.observer import KernelObserver, ObserverHandler, ObserverResult
from scheduling.services.observing import ask_for_run, forget_runs
from scheduling.tasks import run_handler, run_observer

pytestmark = pytest.mark.django_db


class Counting(ObserverHandler[int]):
    """Looks at numbers; those in `bad` cannot be looked at."""

    interval_setting = "USAGE_RECORD_INTERVAL"

    def __init__(self, targets=(1, 2, 3), bad=()):
        self.targets, self.bad = targets, bad
        self.seen, self.after = [], []

    @classmethod
    def name(cls):
        return "counting"

    def fetch_targets(self, now):
        yield from self.targets

    def execute(self, target, now):
        if target in self.bad:
            raise ValueError(f"{target} is bad")
        self.seen.append(target)
        return ObserverResult(success_count=1)

    def post_process(self, result, now):
        self.after.append((result.success_count, result.failure_count))


def run(own, observer, clock):
    own.register_observer(observer)
    return own.process_observer(observer.name(), clock)


def test_all_targets_are_observed(own, clock):
    observer = Counting()
    assert run(own, observer, clock) == ObserverResult(3, 0)
    assert observer.seen == [1, 2, 3]
    assert observer.after == [(3, 0)]


def test_a_failing_target_is_counted_and_logged_and_the_others_go_on(own, clock, caplog):
    observer = Counting(bad=(2,))
    result = run(own, observer, clock)
    assert (result.success_count, result.failure_count, result.error) == (2, 1, "ValueError: 2 is bad")
    assert observer.seen == [1, 3]
    assert "observation_failed" in caplog.text


def test_an_observer_that_cannot_even_read_its_targets_is_a_failure(own, clock):
    def broken():
        yield 1
        raise RuntimeError("no table")

    result = run(own, Counting(targets=broken()), clock)
    assert (result.success_count, result.failure_count, result.error) == (1, 1, "RuntimeError: no table")


def test_a_run_leaves_a_row(own, clock):
    run(own, Counting(bad=(2,)), clock)
    row = ObserverRun.objects.get()
    assert (row.kind, row.observer, row.started_at) == (RunKind.OBSERVER, "counting", clock())
    assert (row.success_count, row.failure_count, row.error) == (2, 1, "ValueError: 2 is bad")


def test_quiet_runs_in_a_row_are_one_row(own, clock):
    observer = Counting(targets=())
    for _ in range(3):
        run(own, observer, clock)
        clock.advance(minutes=5)
    assert ObserverRun.objects.get().started_at == clock() - timedelta(minutes=5)
    observer.targets = (1,)
    run(own, observer, clock)
    assert ObserverRun.objects.count() == 2


def test_an_error_that_passed_is_still_to_be_seen(own, clock):
    observer = Counting(bad=(1, 2, 3))
    run(own, observer, clock)
    clock.advance(minutes=5)
    observer.targets = ()
    run(own, observer, clock)
    assert ObserverRun.objects.count() == 2


def test_one_run_at_a_time(own, clock):
    observer = Counting()
    with lease(lease_name("counting"), length=timedelta(minutes=1)):
        assert run(own, observer, clock) is None
    assert observer.seen == []
    assert not ObserverRun.objects.exists()


def test_the_lease_is_given_back(own, clock):
    run(own, Counting(bad=(1,)), clock)
    assert not Lease.objects.exists()


def test_a_run_that_outlives_its_lease_stops_and_is_noticed(own, clock, caplog):
    class Slow(Counting):
        def execute(self, target, now):
            Lease.objects.update(holder="someone else")
            return super().execute(target, now)

    observer = Slow()
    result = run(own, observer, clock)
    assert (result.success_count, result.error) == (1, LEASE_LOST)
    assert observer.seen == [1]
    assert ObserverRun.objects.get().error == LEASE_LOST
    assert "run_outlived_its_lease" in caplog.text


def test_losing_the_lease_with_the_last_target_is_noticed_too(own, clock):
    class Slow(Counting):
        def post_process(self, result, now):
            Lease.objects.update(holder="someone else")

    assert run(own, Slow(), clock).error == LEASE_LOST


def test_a_lease_whose_holder_died_expires(own, clock):
    dead = Lease.objects.create(
        name=lease_name("counting"), holder="dead", expires_at=timezone.now() + timedelta(hours=1)
    )
    assert run(own, Counting(), clock) is None
    dead.expires_at = timezone.now() - timedelta(seconds=1)
    dead.save()
    assert run(own, Counting(), clock) == ObserverResult(3, 0)


def test_an_unknown_name_is_an_error_for_a_person(own):
    with pytest.raises(NotFound, match="There is no observer “stars”"):
        own.process_observer("stars")
    with pytest.raises(NotFound, match="There is no lifecycle handler “stars”"):
        own.process_handler("stars")


@pytest.mark.parametrize("task", [run_observer, run_handler])
def test_an_unknown_name_is_a_logged_no_op_for_a_task(task, caplog):
    task("stars")
    assert "unknown_observer" in caplog.text
    assert not ObserverRun.objects.exists()


def test_a_name_is_taken_once(own):
    class Other(Counting):
        pass

    own.register_observer(Counting())
    own.register_observer(Counting())
    with pytest.raises(ValueError, match="taken by Counting"):
        own.register_observer(Other())


def test_what_is_registered_at_start():
    assert set(coordinator.observers) == {
        "usage-record",
        "usage-aggregation",
        "fair-share-calculation",
        "service-discovery",
    }
    assert set(coordinator.handlers) == {
        "expire-pending", "requeue-scheduled", "requeue-instantiating", "no-show-ready", "end-running",
        "finish-stopping",
    }  # fmt: skip


def test_old_runs_are_forgotten(own, clock):
    run(own, Counting(), clock)
    assert forget_runs(now=clock() + timedelta(days=29)) == 0
    assert forget_runs(now=clock() + timedelta(days=31)) == 1


def test_a_run_is_asked_for_by_the_broker(monkeypatch):
    sent = []
    monkeypatch.setattr(
        asking.current_app, "send_task", lambda name, **fields: sent.append((name, fields["args"]))
    )
    ask_for_run(RunKind.OBSERVER, "usage-record")
    ask_for_run(RunKind.HANDLER, "end-running")
    assert sent == [
        ("scheduling.tasks.run_observer", ("usage-record",)),
        ("scheduling.tasks.run_handler", ("end-running",)),
    ]


def test_without_a_broker_the_person_is_told(monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    monkeypatch.setattr(asking.current_app, "send_task", refuse)
    with pytest.raises(Unavailable, match="broker"):
        ask_for_run(RunKind.OBSERVER, "usage-record")


class Kernels(KernelObserver):
    interval_setting = "USAGE_RECORD_INTERVAL"
    page_size = 2

    def __init__(self):
        self.pages = []

    @classmethod
    def name(cls):
        return "kernels"

    def execute(self, target, now):
        self.pages.append(target)
        return ObserverResult(success_count=len(target))


@pytest.mark.parametrize(
    ("statuses", "kernel_statuses", "count"),
    [
        ((), (), 9),
        ((SessionStatus.RUNNING,), (), 3),
        ((), (KernelStatus.PENDING, KernelStatus.ALLOCATED), 6),
        ((SessionStatus.PENDING,), (KernelStatus.RUNNING,), 0),
    ],
)
def test_an_observer_of_kernels_gets_those_of_its_statuses(
    statuses, kernel_statuses, count, own, clock, session_in
):
    for status in (SessionStatus.PENDING, SessionStatus.SCHEDULED, SessionStatus.RUNNING):
        session_in(status)
    observer = Kernels()
    observer.target_statuses, observer.target_kernel_statuses = statuses, kernel_statuses
    assert run(own, observer, clock).success_count == count
    seen = [key for page in observer.pages for key in page]
    assert len(seen) == len(set(seen)) == count
    assert all(len(page) <= 2 for page in observer.pages)


def test_observing_changes_no_state(own, clock, session_in):
    session_in(SessionStatus.RUNNING)
    before = list(LabletSession.objects.values())
    run(own, Kernels(), clock)
    assert list(LabletSession.objects.values()) == before
