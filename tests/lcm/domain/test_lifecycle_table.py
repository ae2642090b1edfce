"""`transition_session` for every pair of statuses: only transitions in the design are allowed."""

from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import transaction

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import ACTIVE, FINAL, TRANSITIONS, SessionStatus
from lcm.models import ChangeLog, KernelStatus, LabletSession, SessionTransition
from lcm.services.session_transitions import transition_session

TABLE = {
    "PENDING": "SCHEDULED CANCELLED EXPIRED",
    "SCHEDULED": "INSTANTIATING PENDING CANCELLED",
    "INSTANTIATING": "READY PENDING STOPPING FAILED",
    "READY": "RUNNING STOPPING",
    "RUNNING": "COLLECTING STOPPING",
    "COLLECTING": "STOPPING",
    "STOPPING": "TERMINATED FAILED",
    "TERMINATED": "",
    "CANCELLED": "",
    "EXPIRED": "",
    "FAILED": "",
}
KERNELS = {
    "PENDING": KernelStatus.PENDING,
    "SCHEDULED": KernelStatus.ALLOCATED,
    "INSTANTIATING": KernelStatus.ALLOCATED,
    "READY": KernelStatus.RUNNING,
    "RUNNING": KernelStatus.RUNNING,
    "COLLECTING": KernelStatus.RUNNING,
    "STOPPING": KernelStatus.RUNNING,
    "TERMINATED": KernelStatus.TERMINATED,
    "CANCELLED": KernelStatus.TERMINATED,
    "EXPIRED": KernelStatus.TERMINATED,
    "FAILED": KernelStatus.TERMINATED,
}


def kernel_rows(session):
    columns = ("node_label", "status", "attempt", "started_at", "terminated_at")
    return list(session.kernels.values_list(*columns))


def test_the_transitions_match_the_design():
    assert {old.value: " ".join(new) for old, new in TRANSITIONS.items()} == TABLE
    assert len(TABLE) == 11


def test_final_statuses_have_no_transitions():
    assert sorted(FINAL) == ["CANCELLED", "EXPIRED", "FAILED", "TERMINATED"]
    assert set(ACTIVE) == set(SessionStatus) - FINAL


@contextmanager
def rolled_back():
    """Roll back the changes made in the block."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.parametrize("old", TABLE)
def test_an_allowed_transition_is_recorded_once(old, session_in, now):
    session_id, later = session_in(SessionStatus(old)).pk, now + timedelta(minutes=5)
    for new in TABLE[old].split():
        with rolled_back():
            session = LabletSession.objects.get(pk=session_id)
            before = session.transitions.count()
            transition_session(
                session=session, to=SessionStatus(new), actor=SYSTEM, now=later, reason="because"
            )
            session.refresh_from_db()
            assert (session.status, session.status_since) == (new, later)
            assert session.transitions.count() == before + 1
            step = session.transitions.get(at=later)
            assert (step.from_status, step.to_status, step.actor, step.reason) == (old, new, "LCM", "because")
            assert step.attempt == session.attempt
            entry = ChangeLog.objects.get(object_id=str(session.pk), reason="because")
            assert (entry.before, entry.after) == ({"status": old}, {"status": new})
            assert set(session.kernels.values_list("status", flat=True)) == {KERNELS[new]}


@pytest.mark.parametrize("old", TABLE)
def test_any_other_transition_is_rejected_and_changes_nothing(old, session_in, now):
    session = session_in(SessionStatus(old))
    kernels, since = kernel_rows(session), session.status_since
    steps, changes = SessionTransition.objects.count(), ChangeLog.objects.count()

    for new in set(TABLE) - set(TABLE[old].split()):
        with pytest.raises(StateConflict) as caught:
            transition_session(
                session=session, to=SessionStatus(new), actor=SYSTEM, now=now + timedelta(minutes=5)
            )
        assert caught.value.details == {"status": old, "allowed": TABLE[old].split()}

    session.refresh_from_db()
    assert (session.status, session.status_since) == (old, since)
    assert kernel_rows(session) == kernels
    assert (SessionTransition.objects.count(), ChangeLog.objects.count()) == (steps, changes)


def test_the_error_lists_the_allowed_statuses(session_in, now):
    session = session_in(SessionStatus.SCHEDULED)
    with pytest.raises(StateConflict, match=r"is scheduled and cannot become running\. Allowed: "):
        transition_session(session=session, to=SessionStatus.RUNNING, actor=SYSTEM, now=now)


def test_the_error_says_that_a_status_is_final(session_in, now):
    session = session_in(SessionStatus.EXPIRED)
    with pytest.raises(StateConflict, match="This status is final"):
        transition_session(session=session, to=SessionStatus.PENDING, actor=SYSTEM, now=now)


def test_a_stale_copy_is_rejected_with_the_current_status(session_in, now):
    session = session_in(SessionStatus.RUNNING)
    old_copy = type(session).objects.get(pk=session.pk)
    transition_session(session=session, to=SessionStatus.COLLECTING, actor=SYSTEM, now=now)

    with pytest.raises(StateConflict) as caught:
        transition_session(session=old_copy, to=SessionStatus.COLLECTING, actor=SYSTEM, now=now)

    assert caught.value.details == {"status": "COLLECTING", "allowed": ["STOPPING"]}
    assert session.transitions.filter(to_status=SessionStatus.COLLECTING).count() == 1


def test_returning_to_pending_starts_a_new_attempt_and_resets_kernels(session_in, now):
    session = session_in(SessionStatus.INSTANTIATING)
    transition_session(session=session, to=SessionStatus.PENDING, actor=SYSTEM, now=now, reason="slot lost")
    session.refresh_from_db()
    assert session.attempt == 2
    assert kernel_rows(session) == [
        ("host", "PENDING", 2, None, None),
        ("r1", "PENDING", 2, None, None),
        ("r2", "PENDING", 2, None, None),
    ]


def test_a_kernel_starts_when_it_is_allocated_and_ends_with_its_session(session_in, now):
    session = session_in(SessionStatus.RUNNING)
    ended = now + timedelta(hours=1)
    for status in (SessionStatus.STOPPING, SessionStatus.TERMINATED):
        transition_session(session=session, to=status, actor=SYSTEM, now=ended)
    assert {(started, end) for *_, started, end in kernel_rows(session)} == {(now, ended)}


def test_other_sessions_are_not_affected(session_in, now):
    session, other = session_in(SessionStatus.READY), session_in(SessionStatus.READY)
    transition_session(session=session, to=SessionStatus.RUNNING, actor=SYSTEM, now=now)
    other.refresh_from_db()
    assert other.status == SessionStatus.READY
