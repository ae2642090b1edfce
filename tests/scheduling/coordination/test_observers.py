"""Observers: registered by name, run one at a time, failures counted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from prometheus_client import REGISTRY

from lcm.domain.errors import Unavailable
from lcm.domain.lifecycle import SessionStatus
from lcm.models import Kernel, LabletSession
from lcm.models.sessions import KernelStatus
from lcm.services import task_queue
from scheduling.coordination import observer as observer_module
from scheduling.coordination.coordinator import LEASE_LOST, HandlerResult, coordinator, lease_name
from scheduling.coordination.leases import lease
from scheduling.coordination.observer import ObserverHandler, ObserverResult, interval_of
from scheduling.models import ObserverRun, ProcessLease, RunKind
from scheduling.selectors.observers import last_successes
from scheduling.services.observer_runs import delete_old_runs, enqueue_run
from scheduling.tasks import run_handler, run_observer

pytestmark = pytest.mark.django_db


class Counting(ObserverHandler[int]):
    """Observes numbers; those in `bad` fail."""

    interval_setting = "USAGE_RECORD_INTERVAL"
    page_size = 1

    def __init__(self, targets=(1, 2, 3), bad=()):
        self.targets, self.bad = targets, bad
        self.seen, self.after = [], []

    @classmethod
    def name(cls):
        return "counting"

    def fetch_targets(self, now):
        yield from self.targets

    def execute(self, targets, now):
        for target in targets:
            if target in self.bad:
                raise ValueError(f"{target} is bad")
        self.seen += targets
        return ObserverResult(success_count=len(targets))

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


def test_a_failing_target_is_counted_and_logged_and_the_others_continue(own, clock, caplog):
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
    assert not ProcessLease.objects.exists()


def test_a_run_that_outlives_its_lease_stops_and_is_noticed(own, clock, caplog):
    class Slow(Counting):
        def execute(self, targets, now):
            ProcessLease.objects.update(holder="someone else")
            return super().execute(targets, now)

    observer = Slow()
    result = run(own, observer, clock)
    assert (result.success_count, result.error) == (1, LEASE_LOST)
    assert observer.seen == [1]
    assert ObserverRun.objects.get().error == LEASE_LOST
    assert "run_exceeded_lease" in caplog.text


def test_losing_the_lease_with_the_last_target_is_noticed_too(own, clock):
    class Slow(Counting):
        def post_process(self, result, now):
            ProcessLease.objects.update(holder="someone else")

    assert run(own, Slow(), clock).error == LEASE_LOST


def test_a_lease_whose_holder_died_expires(own, clock):
    dead = ProcessLease.objects.create(
        name=lease_name("counting"), holder="dead", expires_at=timezone.now() + timedelta(hours=1)
    )
    assert run(own, Counting(), clock) is None
    dead.expires_at = timezone.now() - timedelta(seconds=1)
    dead.save()
    assert run(own, Counting(), clock) == ObserverResult(3, 0)


def test_an_unknown_name_is_an_empty_result_and_logged(own, caplog):
    assert own.process_observer("stars") == ObserverResult()
    assert own.process_handler("stars") == HandlerResult()
    run_observer("stars")
    run_handler("stars")
    assert caplog.text.count("unknown_observer") == caplog.text.count("unknown_handler") == 2
    assert not ObserverRun.objects.exists()


def test_a_name_is_taken_once(own):
    class Other(Counting):
        pass

    own.register_observer(Counting())
    own.register_observer(Counting())
    with pytest.raises(ValueError, match="taken by Counting"):
        own.register_observer(Other())


def test_handlers_and_observers_registered_at_start():
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
    assert delete_old_runs(now=clock() + timedelta(days=29)) == 0
    assert delete_old_runs(now=clock() + timedelta(days=31)) == 1


def test_a_run_is_enqueued(monkeypatch):
    sent = []
    monkeypatch.setattr(
        task_queue.current_app, "send_task", lambda name, **fields: sent.append((name, fields["args"]))
    )
    enqueue_run(RunKind.OBSERVER, "usage-record")
    enqueue_run(RunKind.HANDLER, "end-running")
    assert sent == [
        ("scheduling.tasks.run_observer", ("usage-record",)),
        ("scheduling.tasks.run_handler", ("end-running",)),
    ]


def test_without_a_broker_the_user_gets_an_error(monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    monkeypatch.setattr(task_queue.current_app, "send_task", refuse)
    with pytest.raises(Unavailable, match="broker"):
        enqueue_run(RunKind.OBSERVER, "usage-record")


class InTheShapeOfBackendAI(ObserverHandler[Kernel]):
    """As in Backend.AI: statuses are properties, methods are coroutines without a time."""

    page_size = 3

    def __init__(self, bad=()):
        self.bad, self.pages, self.after = bad, [], []

    @classmethod
    def name(cls):
        return "kernels"

    @property
    def target_statuses(self):
        return frozenset({SessionStatus.RUNNING})

    @property
    def target_kernel_statuses(self):
        return frozenset()

    async def execute(self, targets):
        self.pages.append([kernel.node_label for kernel in targets])
        result = ObserverResult()
        for kernel in targets:
            if kernel.node_label in self.bad:
                raise RuntimeError(f"{kernel.node_label} is bad")
            await Kernel.objects.aget(pk=kernel.pk)
            result.success_count += 1
        return result

    async def post_process(self, result):
        await super().post_process(result)
        self.after.append((result.success_count, result.failure_count))


def test_an_observer_in_the_shape_of_backend_ai_works_unchanged(own, clock, session_in):
    for status in (SessionStatus.PENDING, SessionStatus.RUNNING):
        session_in(status)
    observer = InTheShapeOfBackendAI()
    assert run(own, observer, clock) == ObserverResult(3, 0)
    assert (len(observer.pages), observer.after) == (1, [(3, 0)])
    assert interval_of(observer) == timedelta(minutes=5)


def test_a_bad_target_of_a_page_costs_only_itself(own, clock, session_in):
    session = session_in(SessionStatus.RUNNING)
    labels = sorted(session.kernels.values_list("node_label", flat=True))
    observer = InTheShapeOfBackendAI(bad=labels[1:2])
    assert run(own, observer, clock) == ObserverResult(2, 1, f"RuntimeError: {labels[1]} is bad")
    assert sorted(page[0] for page in observer.pages[1:]) == labels
    assert observer.after == [(2, 1)]


def test_without_targets_nothing_is_called(own, clock):
    observer = InTheShapeOfBackendAI()
    assert run(own, observer, clock) == ObserverResult()
    assert (observer.pages, observer.after) == ([], [])


class Kernels(InTheShapeOfBackendAI):
    """The same with methods for statuses, plain functions and pages of two."""

    page_size = 2
    statuses, kernel_statuses = (), ()

    def target_statuses(self):
        return self.statuses

    def target_kernel_statuses(self):
        return self.kernel_statuses

    def execute(self, targets):
        self.pages.append([kernel.pk for kernel in targets])
        return ObserverResult(success_count=len(targets))

    def post_process(self, result):
        self.after.append((result.success_count, result.failure_count))


@pytest.mark.parametrize(
    ("statuses", "kernel_statuses", "count"),
    [
        ((), (), 9),
        ((), None, 9),
        (frozenset({SessionStatus.RUNNING}), frozenset(), 3),
        ([], [KernelStatus.PENDING, KernelStatus.ALLOCATED], 6),
        ((SessionStatus.PENDING,), (KernelStatus.RUNNING,), 0),
    ],
)
def test_an_observer_without_targets_of_its_own_gets_kernels_of_its_statuses(
    statuses, kernel_statuses, count, own, clock, session_in, monkeypatch
):
    monkeypatch.setattr(observer_module, "KERNELS_READ", 4)
    for status in (SessionStatus.PENDING, SessionStatus.SCHEDULED, SessionStatus.RUNNING):
        session_in(status)
    observer = Kernels()
    observer.statuses, observer.kernel_statuses = statuses, kernel_statuses
    assert run(own, observer, clock).success_count == count
    seen = [key for page in observer.pages for key in page]
    assert len(seen) == len(set(seen)) == count
    assert all(len(page) <= 2 for page in observer.pages)


@pytest.mark.parametrize("returned", [None, 3, {"success_count": 1}])
def test_a_result_that_is_none_is_one_failure(returned, own, clock):
    class Wrong(Counting):
        page_size = 10

        def execute(self, targets):
            self.seen.append(targets)
            return returned

    observer = Wrong()
    result = run(own, observer, clock)
    assert (result.success_count, result.failure_count) == (0, 1)
    assert "no ObserverResult" in result.error
    assert observer.seen == [[1, 2, 3]]


def test_observing_changes_no_state(own, clock, session_in):
    session_in(SessionStatus.RUNNING)
    before = list(LabletSession.objects.values())
    run(own, Kernels(), clock)
    assert list(LabletSession.objects.values()) == before


def test_each_run_has_a_log_line_and_is_counted(own, clock, caplog):
    caplog.set_level("INFO")
    labels = {"observer": "counting", "kind": "observer"}

    def counted(name):
        return REGISTRY.get_sample_value(f"lcm_observer_{name}", labels) or 0.0

    names = ("success_total", "failure_total", "run_seconds_count")
    before = [counted(name) for name in names]
    run(own, Counting(bad=(2,)), clock)
    assert [counted(name) - old for name, old in zip(names, before, strict=True)] == [2, 1, 1]
    (line,) = [record for record in caplog.records if record.message == "observer_ran"]
    assert (line.observer, line.success_count, line.failure_count) == ("counting", 2, 1)
    assert line.error == "ValueError: 2 is bad"


def test_the_last_success_is_known_after_a_failure(own, clock):
    run(own, Counting(), clock)
    well = clock()
    clock.advance(minutes=5)
    run(own, Counting(bad=(1,)), clock)
    assert last_successes(["counting", "stars"]) == {"counting": well}
