"""Extend sessions."""

from datetime import timedelta, timezone

import pytest

from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletSession
from lcm.services.sessions import extend_session

S = SessionStatus
HOUR = timedelta(hours=1)
EXTENDABLE = [S.PENDING, S.SCHEDULED, S.INSTANTIATING, S.READY, S.RUNNING]
TOO_LATE = [status for status in S if status not in EXTENDABLE]


def end_of(session):
    return LabletSession.objects.get(pk=session.pk).ends_at


@pytest.mark.parametrize("status", EXTENDABLE)
def test_an_extendable_session_is_extended(status, session_in, as_operator, now):
    session = session_in(status)
    extend_session(session=session, ends_at=now + 5 * HOUR, actor=as_operator, now=now, reason="exam")
    assert end_of(session) == now + 5 * HOUR
    entry = ChangeLog.objects.get(event="session.extended")
    assert (entry.actor, entry.reason) == ("otto", "exam")
    assert set(entry.before) == set(entry.after) == {"ends_at"}


@pytest.mark.parametrize("status", TOO_LATE)
def test_an_ending_session_cannot_be_extended(status, session_in, as_operator, now):
    session = session_in(status)
    with pytest.raises(StateConflict, match=f"is {status.label.lower()} and cannot be extended"):
        extend_session(session=session, ends_at=now + 5 * HOUR, actor=as_operator, now=now)
    assert end_of(session) == now + 2 * HOUR


@pytest.mark.parametrize(
    ("hours", "message"),
    [(2, "later than the current end"), (1, "later than the current end"), (8.01, "at most 8 hours")],
)
def test_an_invalid_end_is_rejected(hours, message, session, as_operator, now):
    with pytest.raises(InvalidInput) as caught:
        extend_session(session=session, ends_at=now + hours * HOUR, actor=as_operator, now=now)
    assert list(caught.value.fields) == ["ends_at"]
    assert message in caught.value.message
    assert end_of(session) == now + 2 * HOUR
    assert not ChangeLog.objects.filter(event="session.extended").exists()


def test_a_session_can_be_extended_to_the_maximum_duration(session, as_operator, now):
    extend_session(session=session, ends_at=now + 8 * HOUR, actor=as_operator, now=now)
    assert end_of(session) == session.latest_end


def test_a_later_end_in_the_past_is_rejected(session_in, as_operator, now):
    session = session_in(S.RUNNING)
    with pytest.raises(InvalidInput):
        extend_session(session=session, ends_at=now + 3 * HOUR, actor=as_operator, now=now + 4 * HOUR)


def test_the_second_of_two_extensions_from_the_same_page_is_rejected(session, as_operator, now):
    old_copy = LabletSession.objects.get(pk=session.pk)
    extend_session(session=session, ends_at=now + 3 * HOUR, actor=as_operator, now=now)
    with pytest.raises(StateConflict, match="changed a moment ago"):
        extend_session(session=old_copy, ends_at=now + 4 * HOUR, actor=as_operator, now=now)
    assert end_of(session) == now + 3 * HOUR


def test_the_change_log_message_has_the_end_in_utc(session, as_operator, now):
    berlin = timezone(2 * HOUR)
    extend_session(session=session, ends_at=(now + 3 * HOUR).astimezone(berlin), actor=as_operator, now=now)
    entry = ChangeLog.objects.get(event="session.extended")
    assert entry.message.endswith(f"extended to {now + 3 * HOUR:%Y-%m-%d %H:%M} UTC")
