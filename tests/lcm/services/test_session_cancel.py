"""Cancel one session or many."""

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, KernelStatus, LabletSession, SessionTransition
from lcm.services.sessions import cancel_session, cancel_sessions

S = SessionStatus
CANCEL = {
    S.PENDING: S.CANCELLED,
    S.SCHEDULED: S.CANCELLED,
    S.INSTANTIATING: S.STOPPING,
    S.READY: S.STOPPING,
    S.RUNNING: S.STOPPING,
    S.COLLECTING: S.STOPPING,
}
TOO_LATE = [status for status in S if status not in CANCEL]


def statuses(sessions):
    return [LabletSession.objects.get(pk=session.pk).status for session in sessions]


@pytest.mark.parametrize(("status", "new_status"), CANCEL.items())
def test_cancelling_ends_waiting_sessions_and_stops_running_ones(
    status, new_status, session_in, now, as_operator
):
    session = session_in(status)
    cancel_session(session=session, actor=as_operator, now=now, reason="course moved")
    session.refresh_from_db()
    assert session.status == new_status
    step = session.transitions.get(from_status=status)
    assert (step.to_status, step.actor, step.reason) == (new_status, "otto", "course moved")


@pytest.mark.parametrize("status", TOO_LATE)
def test_ended_and_stopping_sessions_cannot_be_cancelled(status, session_in, now):
    session = session_in(status)
    steps = session.transitions.count()
    with pytest.raises(StateConflict, match=f"is {status.label.lower()} and cannot be cancelled") as caught:
        cancel_session(session=session, actor=SYSTEM, now=now, reason="course moved")
    assert caught.value.details["status"] == status
    session.refresh_from_db()
    assert (session.status, session.transitions.count()) == (status, steps)


@pytest.mark.parametrize("reason", ["", "   ", "\n"])
def test_cancelling_needs_a_reason(reason, session, now):
    with pytest.raises(InvalidInput) as caught:
        cancel_session(session=session, actor=SYSTEM, now=now, reason=reason)
    assert list(caught.value.fields) == ["reason"]
    assert statuses([session]) == [S.PENDING]


def test_a_bulk_cancel_moves_each_session_by_its_status(session_in, now, as_operator):
    sessions = [session_in(status) for status in S]
    cancelled, skipped = cancel_sessions(sessions=sessions, actor=as_operator, now=now, reason="power cut")
    assert (cancelled, skipped) == (6, 5)
    assert statuses(sessions) == [CANCEL.get(status, status) for status in S]


def test_a_bulk_cancel_records_each_session(session_in, now, as_operator):
    sessions = [session_in(S.PENDING), session_in(S.PENDING), session_in(S.RUNNING)]
    cancel_sessions(sessions=sessions, actor=as_operator, now=now, reason="power cut")
    rows = SessionTransition.objects.filter(reason="power cut")
    assert sorted(rows.values_list("from_status", "to_status", "actor")) == [
        ("PENDING", "CANCELLED", "otto"),
        ("PENDING", "CANCELLED", "otto"),
        ("RUNNING", "STOPPING", "otto"),
    ]
    logged = ChangeLog.objects.filter(reason="power cut").values_list("object_id", flat=True)
    assert sorted(logged) == sorted(str(session.pk) for session in sessions)


def test_a_bulk_cancel_moves_the_kernels(session_in, now):
    waiting, running = session_in(S.PENDING), session_in(S.RUNNING)
    later = now + timedelta(minutes=1)
    cancel_sessions(sessions=[waiting, running], actor=SYSTEM, now=later, reason="power cut")
    assert set(waiting.kernels.values_list("status", "terminated_at")) == {(KernelStatus.TERMINATED, later)}
    assert set(running.kernels.values_list("status", "terminated_at")) == {(KernelStatus.RUNNING, None)}


def test_a_session_whose_status_changed_is_skipped(session_in, now):
    session = session_in(S.SCHEDULED)
    old_copy = LabletSession.objects.get(pk=session.pk)
    LabletSession.objects.filter(pk=session.pk).update(status=S.INSTANTIATING)
    assert cancel_sessions(sessions=[old_copy], actor=SYSTEM, now=now, reason="power cut") == (0, 1)
    assert statuses([session]) == [S.INSTANTIATING]


def test_other_sessions_are_not_affected(session_in, now):
    chosen, other = session_in(S.PENDING), session_in(S.PENDING)
    cancel_sessions(sessions=[chosen], actor=SYSTEM, now=now, reason="power cut")
    assert statuses([chosen, other]) == [S.CANCELLED, S.PENDING]


def test_an_empty_selection_cancels_nothing(db, now):
    assert cancel_sessions(sessions=[], actor=SYSTEM, now=now, reason="power cut") == (0, 0)


def test_a_bulk_cancel_needs_a_reason(session, now):
    with pytest.raises(InvalidInput):
        cancel_sessions(sessions=[session], actor=SYSTEM, now=now, reason=" ")
    assert statuses([session]) == [S.PENDING]


def test_cancelling_thirty_sessions_takes_few_queries(session_in, now, django_assert_max_num_queries):
    sessions = [session_in(S.PENDING) for _ in range(30)]
    with django_assert_max_num_queries(14):
        assert cancel_sessions(sessions=sessions, actor=SYSTEM, now=now, reason="power cut") == (30, 0)
