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
    """Observes numbers; numbers in `failing` raise."""

    interval_setting = "USAGE_RECORD_INTERVAL"
    page_size = 1

    def __init__(self, targets=(1, 2, 3), failing=()):
        self.targets, self.failing = targets, failing
        self.observed, self.results = [], []

    @classmethod
    def name(cls):
        return "counting"

    def fetch_targets(self, now):
        yield from self.targets

    def execute(self, targets, now):
        for target in targets:
            if target in self.failing:
                raise ValueError(f"{target} is bad")
        self.observed += targets
        return ObserverResult(success_count=len(targets))

    def post_process(self, result, now):
        self.results.append((result.success_count, result.failure_count))


def register_and_run(empty_coordinator, observer, clock):
    empty_coordinator.register_observer(observer)
    return empty_coordinator.process_observer(observer.name(), clock)


def test_all_targets_are_observed(empty_coordinator, clock):
    observer = Counting()
    assert register_and_run(empty_coordinator, observer, clock) == ObserverResult(3, 0)
    assert observer.observed == [1, 2, 3]
    assert observer.results == [(3, 0)]


def test_a_failing_target_is_counted_and_logged_and_the_others_continue(empty_coordinator, clock, caplog):
    observer = Counting(failing=(2,))
    result = register_and_run(empty_coordinator, observer, clock)
    assert (result.success_count, result.failure_count, result.error) == (2, 1, "ValueError: 2 is bad")
    assert observer.observed == [1, 3]
    assert "observation_failed" in caplog.text


def test_an_error_while_reading_targets_counts_as_a_failure(empty_coordinator, clock):
    def failing_targets():
        yield 1
        raise RuntimeError("no table")

    result = register_and_run(empty_coordinator, Counting(targets=failing_targets()), clock)
    assert (result.success_count, result.failure_count, result.error) == (1, 1, "RuntimeError: no table")


def test_a_run_is_recorded(empty_coordinator, clock):
    register_and_run(empty_coordinator, Counting(failing=(2,)), clock)
    row = ObserverRun.objects.get()
    assert (row.kind, row.observer, row.started_at) == (RunKind.OBSERVER, "counting", clock())
    assert (row.success_count, row.failure_count, row.error) == (2, 1, "ValueError: 2 is bad")


def test_consecutive_idle_runs_share_one_row(empty_coordinator, clock):
    observer = Counting(targets=())
    for _ in range(3):
        register_and_run(empty_coordinator, observer, clock)
        clock.advance(minutes=5)
    assert ObserverRun.objects.get().started_at == clock() - timedelta(minutes=5)
    observer.targets = (1,)
    register_and_run(empty_coordinator, observer, clock)
    assert ObserverRun.objects.count() == 2


def test_a_run_with_errors_keeps_its_row(empty_coordinator, clock):
    observer = Counting(failing=(1, 2, 3))
    register_and_run(empty_coordinator, observer, clock)
    clock.advance(minutes=5)
    observer.targets = ()
    register_and_run(empty_coordinator, observer, clock)
    assert ObserverRun.objects.count() == 2


def test_only_one_run_at_a_time(empty_coordinator, clock):
    observer = Counting()
    with lease(lease_name("counting"), length=timedelta(minutes=1)):
        assert register_and_run(empty_coordinator, observer, clock) is None
    assert observer.observed == []
    assert not ObserverRun.objects.exists()


def test_the_lease_is_released(empty_coordinator, clock):
    register_and_run(empty_coordinator, Counting(failing=(1,)), clock)
    assert not ProcessLease.objects.exists()


def test_a_run_that_loses_its_lease_stops_and_reports_it(empty_coordinator, clock, caplog):
    class LeaseLosingObserver(Counting):
        def execute(self, targets, now):
            ProcessLease.objects.update(holder="someone else")
            return super().execute(targets, now)

    observer = LeaseLosingObserver()
    result = register_and_run(empty_coordinator, observer, clock)
    assert (result.success_count, result.error) == (1, LEASE_LOST)
    assert observer.observed == [1]
    assert ObserverRun.objects.get().error == LEASE_LOST
    assert "run_exceeded_lease" in caplog.text


def test_losing_the_lease_after_the_last_target_is_reported(empty_coordinator, clock):
    class LeaseLosingObserver(Counting):
        def post_process(self, result, now):
            ProcessLease.objects.update(holder="someone else")

    assert register_and_run(empty_coordinator, LeaseLosingObserver(), clock).error == LEASE_LOST


def test_a_lease_whose_holder_died_expires(empty_coordinator, clock):
    dead = ProcessLease.objects.create(
        name=lease_name("counting"), holder="dead", expires_at=timezone.now() + timedelta(hours=1)
    )
    assert register_and_run(empty_coordinator, Counting(), clock) is None
    dead.expires_at = timezone.now() - timedelta(seconds=1)
    dead.save()
    assert register_and_run(empty_coordinator, Counting(), clock) == ObserverResult(3, 0)


def test_an_unknown_name_returns_an_empty_result_and_is_logged(empty_coordinator, caplog):
    assert empty_coordinator.process_observer("stars") == ObserverResult()
    assert empty_coordinator.process_handler("stars") == HandlerResult()
    run_observer("stars")
    run_handler("stars")
    assert caplog.text.count("unknown_observer") == caplog.text.count("unknown_handler") == 2
    assert not ObserverRun.objects.exists()


def test_an_observer_name_is_registered_once(empty_coordinator):
    class Other(Counting):
        pass

    empty_coordinator.register_observer(Counting())
    empty_coordinator.register_observer(Counting())
    with pytest.raises(ValueError, match="already used by Counting"):
        empty_coordinator.register_observer(Other())


def test_handlers_and_observers_are_registered_at_start():
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


def test_old_runs_are_deleted(empty_coordinator, clock):
    register_and_run(empty_coordinator, Counting(), clock)
    assert delete_old_runs(now=clock() + timedelta(days=29)) == 0
    assert delete_old_runs(now=clock() + timedelta(days=31)) == 1


def test_a_run_is_enqueued(monkeypatch):
    enqueued = []
    monkeypatch.setattr(
        task_queue.current_app, "send_task", lambda name, **fields: enqueued.append((name, fields["args"]))
    )
    enqueue_run(RunKind.OBSERVER, "usage-record")
    enqueue_run(RunKind.HANDLER, "end-running")
    assert enqueued == [
        ("scheduling.tasks.run_observer", ("usage-record",)),
        ("scheduling.tasks.run_handler", ("end-running",)),
    ]


def test_without_a_broker_the_user_gets_an_error(monkeypatch):
    def refuse(*arguments, **fields):
        raise ConnectionRefusedError

    monkeypatch.setattr(task_queue.current_app, "send_task", refuse)
    with pytest.raises(Unavailable, match="broker"):
        enqueue_run(RunKind.OBSERVER, "usage-record")


class BackendAIStyleObserver(ObserverHandler[Kernel]):
    """As in Backend.AI: statuses are properties; methods are coroutines without the parameter `now`."""

    page_size = 3

    def __init__(self, failing=()):
        self.failing, self.pages, self.results = failing, [], []

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
            if kernel.node_label in self.failing:
                raise RuntimeError(f"{kernel.node_label} is bad")
            await Kernel.objects.aget(pk=kernel.pk)
            result.success_count += 1
        return result

    async def post_process(self, result):
        await super().post_process(result)
        self.results.append((result.success_count, result.failure_count))


def test_a_backend_ai_style_observer_works_unchanged(empty_coordinator, clock, session_in):
    for status in (SessionStatus.PENDING, SessionStatus.RUNNING):
        session_in(status)
    observer = BackendAIStyleObserver()
    assert register_and_run(empty_coordinator, observer, clock) == ObserverResult(3, 0)
    assert (len(observer.pages), observer.results) == (1, [(3, 0)])
    assert interval_of(observer) == timedelta(minutes=5)


def test_a_failing_target_does_not_affect_the_rest_of_its_page(empty_coordinator, clock, session_in):
    session = session_in(SessionStatus.RUNNING)
    labels = sorted(session.kernels.values_list("node_label", flat=True))
    observer = BackendAIStyleObserver(failing=labels[1:2])
    assert register_and_run(empty_coordinator, observer, clock) == ObserverResult(
        2, 1, f"RuntimeError: {labels[1]} is bad"
    )
    assert sorted(page[0] for page in observer.pages[1:]) == labels
    assert observer.results == [(2, 1)]


def test_execute_is_not_called_without_targets(empty_coordinator, clock):
    observer = BackendAIStyleObserver()
    assert register_and_run(empty_coordinator, observer, clock) == ObserverResult()
    assert (observer.pages, observer.results) == ([], [])


class KernelObserver(BackendAIStyleObserver):
    """The same with methods for statuses, synchronous functions and pages of two."""

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
        self.results.append((result.success_count, result.failure_count))


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
def test_an_observer_without_fetch_targets_gets_kernels_in_its_statuses(
    statuses, kernel_statuses, count, empty_coordinator, clock, session_in, monkeypatch
):
    monkeypatch.setattr(observer_module, "KERNELS_READ", 4)
    for status in (SessionStatus.PENDING, SessionStatus.SCHEDULED, SessionStatus.RUNNING):
        session_in(status)
    observer = KernelObserver()
    observer.statuses, observer.kernel_statuses = statuses, kernel_statuses
    assert register_and_run(empty_coordinator, observer, clock).success_count == count
    observed = [key for page in observer.pages for key in page]
    assert len(observed) == len(set(observed)) == count
    assert all(len(page) <= 2 for page in observer.pages)


@pytest.mark.parametrize("returned", [None, 3, {"success_count": 1}])
def test_an_invalid_result_counts_as_one_failure(returned, empty_coordinator, clock):
    class InvalidResultObserver(Counting):
        page_size = 10

        def execute(self, targets):
            self.observed.append(targets)
            return returned

    observer = InvalidResultObserver()
    result = register_and_run(empty_coordinator, observer, clock)
    assert (result.success_count, result.failure_count) == (0, 1)
    assert "no ObserverResult" in result.error
    assert observer.observed == [[1, 2, 3]]


def test_observing_changes_no_state(empty_coordinator, clock, session_in):
    session_in(SessionStatus.RUNNING)
    before = list(LabletSession.objects.values())
    register_and_run(empty_coordinator, KernelObserver(), clock)
    assert list(LabletSession.objects.values()) == before


def test_each_run_has_a_log_line_and_is_counted(empty_coordinator, clock, caplog):
    caplog.set_level("INFO")
    labels = {"observer": "counting", "kind": "observer"}

    def sample_value(name):
        return REGISTRY.get_sample_value(f"lcm_observer_{name}", labels) or 0.0

    names = ("success_total", "failure_total", "run_seconds_count")
    before = [sample_value(name) for name in names]
    register_and_run(empty_coordinator, Counting(failing=(2,)), clock)
    assert [sample_value(name) - old for name, old in zip(names, before, strict=True)] == [2, 1, 1]
    (log_record,) = [record for record in caplog.records if record.message == "observer_ran"]
    assert (log_record.observer, log_record.success_count, log_record.failure_count) == ("counting", 2, 1)
    assert log_record.error == "ValueError: 2 is bad"


def test_the_last_success_is_known_after_a_failure(empty_coordinator, clock):
    register_and_run(empty_coordinator, Counting(), clock)
    last_success = clock()
    clock.advance(minutes=5)
    register_and_run(empty_coordinator, Counting(failing=(1,)), clock)
    assert last_successes(["counting", "stars"]) == {"counting": last_success}
