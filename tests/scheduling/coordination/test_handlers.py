"""Lifecycle handlers: which sessions are due, their transitions, and that only the coordinator writes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.models.sessions import KernelStatus
from scheduling.coordination.coordinator import HandlerResult, coordinator, give_up_status
from scheduling.coordination.handlers.base import HandlerOutcome, SessionLifecycleHandler
from scheduling.models import HandlerFailure, ObserverRun, RunKind

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def status_of(session):
    session.refresh_from_db()
    return session.status


# handler, target status, minutes after the start (of a timeslot of two hours) → new status
DUE = [
    ("expire-pending", S.PENDING, 59, S.PENDING),
    ("expire-pending", S.PENDING, 60, S.EXPIRED),
    ("expire-pending", S.PENDING, 121, S.EXPIRED),
    ("requeue-scheduled", S.SCHEDULED, 14, S.SCHEDULED),
    ("requeue-scheduled", S.SCHEDULED, 15, S.PENDING),
    ("requeue-instantiating", S.INSTANTIATING, 29, S.INSTANTIATING),
    ("requeue-instantiating", S.INSTANTIATING, 30, S.PENDING),
    ("no-show-ready", S.READY, 29, S.READY),
    ("no-show-ready", S.READY, 30, S.STOPPING),
    ("end-running", S.RUNNING, 134, S.RUNNING),
    ("end-running", S.RUNNING, 135, S.STOPPING),
    ("end-running", S.COLLECTING, 135, S.STOPPING),
    ("finish-stopping", S.STOPPING, 19, S.STOPPING),
    ("finish-stopping", S.STOPPING, 20, S.FAILED),
]


@pytest.mark.parametrize(("name", "status", "minutes", "new_status"), DUE)
def test_handler_outcomes_lead_to_transitions(name, status, minutes, new_status, session_in, clock):
    session = session_in(status)
    clock.advance(minutes=minutes)
    coordinator.process_handler(name, clock)
    assert status_of(session) == new_status


@pytest.mark.parametrize("name", sorted(coordinator.handlers))
def test_a_handler_does_not_change_sessions_in_other_statuses(name, session_in, clock):
    handler = coordinator.handlers[name]
    others = [session_in(status) for status in S if status not in handler.target_statuses]
    before = [session.status for session in others]
    clock.advance(days=30)
    coordinator.process_handler(name, clock)
    assert [status_of(session) for session in others] == before


@pytest.mark.parametrize(
    ("name", "status"),
    [("expire-pending", S.PENDING), ("no-show-ready", S.READY), ("end-running", S.RUNNING)],
)
def test_a_session_extended_after_its_handler_read_it_continues(name, status, session_in, clock, monkeypatch):
    session = session_in(status)
    clock.advance(minutes=140)
    handler = coordinator.handlers[name]
    decide = handler.execute

    def extend_and_decide(sessions, now):
        LabletSession.objects.filter(pk=session.pk).update(ends_at=now + HOUR)
        return decide(sessions, now)

    monkeypatch.setattr(handler, "execute", extend_and_decide)
    assert coordinator.process_handler(name, clock).success_count == 0
    assert status_of(session) == status


def test_a_requeued_session_gets_a_new_grace_period(session_in, clock):
    session = session_in(S.SCHEDULED)
    clock.advance(minutes=80)
    coordinator.process_handler("requeue-scheduled", clock)
    coordinator.process_handler("expire-pending", clock)
    assert status_of(session) == S.PENDING


def test_an_advance_booking_is_not_stale_before_its_start(session_in, clock):
    session = session_in(S.SCHEDULED, starts_at=clock() + 5 * HOUR, ends_at=clock() + 6 * HOUR)
    clock.advance(hours=5, minutes=14)
    coordinator.process_handler("requeue-scheduled", clock)
    assert status_of(session) == S.SCHEDULED
    clock.advance(minutes=1)
    coordinator.process_handler("requeue-scheduled", clock)
    assert status_of(session) == S.PENDING


def test_a_transition_records_its_reason_and_actor(session_in, clock):
    session = session_in(S.SCHEDULED)
    clock.advance(minutes=16)
    coordinator.process_handler("requeue-scheduled", clock)
    step = session.transitions.last()
    assert (step.from_status, step.to_status, step.actor) == ("SCHEDULED", "PENDING", "LCM")
    assert step.reason == "scheduled for more than 15 min: no controller started it"


def test_timeouts_are_settings(session_in, clock, settings):
    settings.CONFIG["STOPPING_TIMEOUT"] = 60.0
    session = session_in(S.STOPPING)
    clock.advance(seconds=61)
    coordinator.process_handler("finish-stopping", clock)
    assert status_of(session) == S.FAILED


@pytest.mark.parametrize(
    ("name", "status", "final_status"),
    [("requeue-scheduled", S.SCHEDULED, S.CANCELLED), ("requeue-instantiating", S.INSTANTIATING, S.FAILED)],
)
def test_a_session_is_given_up_after_its_last_attempt(name, status, final_status, session_in, clock):
    session = session_in(status)
    LabletSession.objects.filter(pk=session.pk).update(attempt=5)
    clock.advance(hours=1)
    coordinator.process_handler(name, clock)
    assert status_of(session) == final_status
    assert "given up after attempt 5" in session.transitions.last().reason


def test_a_run_of_a_handler_is_recorded(session_in, clock):
    for _ in range(3):
        session_in(S.STOPPING)
    clock.advance(hours=1)
    result = coordinator.process_handler("finish-stopping", clock)
    assert result == HandlerResult(stale_count=3)
    row = ObserverRun.objects.get()
    assert (row.kind, row.observer, row.stale_count) == (RunKind.HANDLER, "finish-stopping", 3)


def test_sessions_are_read_in_pages(session_in, clock, monkeypatch):
    from scheduling.coordination import coordinator as module

    monkeypatch.setattr(module, "PAGE", 2)
    sessions = [session_in(S.STOPPING) for _ in range(5)]
    clock.advance(hours=1)
    assert coordinator.process_handler("finish-stopping", clock).stale_count == 5
    assert {status_of(session) for session in sessions} == {S.FAILED}


# --- outcomes of a handler, and the coordinator's transitions --------------------------------------------


class ConfigurableHandler(SessionLifecycleHandler):
    """Reports a configured outcome for every session."""

    target_statuses = (S.INSTANTIATING,)
    success_status = S.READY

    def __init__(self, outcome="success", **fields):
        self.outcome = outcome
        self.fields = fields
        for name, value in fields.items():
            setattr(type(self), name, value)

    @classmethod
    def name(cls):
        return "configurable"

    def execute(self, sessions, now):
        match self.outcome:
            case "success":
                return HandlerOutcome(successes={each.pk: "it came up" for each in sessions})
            case "failure":
                return HandlerOutcome(failures={each.pk: "it broke" for each in sessions})
            case "error":
                raise OSError("the wire was cut")
        return HandlerOutcome()


@pytest.fixture
def run_handler(empty_coordinator, clock):
    """`run_handler(outcome, …)`: run a handler that reports this outcome."""

    def run(outcome, **fields):
        handler_class = type(
            "ConfigurableHandler",
            (ConfigurableHandler,),
            {**fields, "name": staticmethod(lambda: "configurable")},
        )
        empty_coordinator.handlers["configurable"] = handler_class(outcome)
        return empty_coordinator.process_handler("configurable", clock)

    return run


def test_success_sets_the_success_status(run_handler, session_in):
    session = session_in(S.INSTANTIATING)
    assert run_handler("success") == HandlerResult(success_count=1)
    assert status_of(session) == S.READY


def test_success_without_a_status_changes_nothing(run_handler, session_in):
    session = session_in(S.INSTANTIATING)
    assert run_handler("success", success_status=None).success_count == 1
    assert status_of(session) == S.INSTANTIATING


def test_failure_sets_the_failure_status(run_handler, session_in):
    session = session_in(S.INSTANTIATING)
    assert run_handler("failure", failure_status=S.PENDING) == HandlerResult(
        failure_count=1, error="it broke"
    )
    assert status_of(session) == S.PENDING


def test_a_failure_counts_as_an_attempt_and_the_fifth_ends_the_session(run_handler, session_in):
    session = session_in(S.INSTANTIATING)
    for attempt in range(1, 5):
        run_handler("failure")
        assert HandlerFailure.objects.get().failures == attempt
        assert status_of(session) == S.INSTANTIATING
    run_handler("failure")
    assert status_of(session) == S.FAILED
    assert session.transitions.get(to_status=S.FAILED).reason == "it broke; given up after attempt 5"
    assert not HandlerFailure.objects.exists()


def test_a_handler_sets_its_maximum_of_attempts(run_handler, session_in):
    session = session_in(S.INSTANTIATING)
    run_handler("failure", max_attempts=1)
    assert status_of(session) == S.FAILED


def test_a_skipped_session_uses_no_attempt(run_handler, session_in):
    session = session_in(S.INSTANTIATING)
    for _ in range(10):
        assert run_handler("skip") == HandlerResult(skipped_count=1)
    assert status_of(session) == S.INSTANTIATING
    assert not HandlerFailure.objects.exists()


def test_a_success_resets_the_failure_count(run_handler, session_in):
    session_in(S.INSTANTIATING)
    run_handler("failure")
    run_handler("success")
    assert not HandlerFailure.objects.exists()


def test_a_handler_that_raises_counts_as_a_failure_of_its_sessions(run_handler, session_in, caplog):
    session_in(S.INSTANTIATING)
    result = run_handler("error")
    assert (result.failure_count, result.error) == (1, "OSError: the wire was cut")
    assert HandlerFailure.objects.get().reason == "OSError: the wire was cut"
    assert "handler_failed" in caplog.text


def test_the_stale_status_is_set_after_the_timeout(run_handler, session_in, clock):
    session = session_in(S.INSTANTIATING)
    fields = {"stale_status": S.FAILED, "timeout_setting": "INSTANTIATING_TIMEOUT"}
    assert run_handler("skip", **fields).skipped_count == 1
    clock.advance(minutes=31)
    assert run_handler("skip", **fields) == HandlerResult(stale_count=1)
    assert status_of(session) == S.FAILED


def test_a_successful_session_is_not_stale(run_handler, session_in, clock):
    session = session_in(S.INSTANTIATING)
    clock.advance(hours=2)
    run_handler("success", stale_status=S.FAILED, timeout_setting="INSTANTIATING_TIMEOUT")
    assert status_of(session) == S.READY


def test_a_session_whose_status_changed_meanwhile_is_skipped(run_handler, session_in, monkeypatch):
    session = session_in(S.INSTANTIATING)
    real = ConfigurableHandler.execute

    def execute(self, sessions, now):
        LabletSession.objects.update(status=S.STOPPING)
        return real(self, sessions, now)

    monkeypatch.setattr(ConfigurableHandler, "execute", execute)
    assert run_handler("success").success_count == 0
    assert status_of(session) == S.STOPPING


@pytest.mark.parametrize(("kernels", "count"), [((KernelStatus.ALLOCATED,), 1), ((KernelStatus.RUNNING,), 0)])
def test_sessions_can_be_selected_by_kernel_status(kernels, count, run_handler, session_in):
    session_in(S.INSTANTIATING)
    assert run_handler("skip", target_kernel_statuses=kernels).skipped_count == count


@pytest.mark.parametrize(
    ("status", "final_status"),
    [
        (S.PENDING, S.CANCELLED),
        (S.SCHEDULED, S.CANCELLED),
        (S.INSTANTIATING, S.FAILED),
        (S.READY, S.STOPPING),
        (S.RUNNING, S.STOPPING),
        (S.STOPPING, S.FAILED),
    ],
)
def test_the_status_after_giving_up_is_an_allowed_transition(status, final_status):
    assert give_up_status(status) == final_status
