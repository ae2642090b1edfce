"""Letting a session end later."""

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
def test_a_session_that_goes_on_can_be_extended(status, session_in, as_operator, now):
    session = session_in(status)
    extend_session(session=session, ends_at=now + 5 * HOUR, actor=as_operator, now=now, reason="exam")
    assert end_of(session) == now + 5 * HOUR
    entry = ChangeLog.objects.get(event="session_extended")
    assert (entry.actor, entry.reason) == ("otto", "exam")
    assert set(entry.before) == set(entry.after) == {"ends_at"}


@pytest.mark.parametrize("status", TOO_LATE)
def test_a_session_that_ends_cannot(status, session_in, as_operator, now):
    session = session_in(status)
    with pytest.raises(StateConflict, match=f"is {status.label.lower()} and cannot be extended"):
        extend_session(session=session, ends_at=now + 5 * HOUR, actor=as_operator, now=now)
    assert end_of(session) == now + 2 * HOUR


@pytest.mark.parametrize(
    ("hours", "words"),
    [(2, "later than the present one"), (1, "later than the present one"), (8.01, "8 hours at most")],
)
def test_an_end_that_cannot_be(hours, words, session, as_operator, now):
    with pytest.raises(InvalidInput) as caught:
        extend_session(session=session, ends_at=now + hours * HOUR, actor=as_operator, now=now)
    assert list(caught.value.fields) == ["ends_at"]
    assert words in caught.value.message
    assert end_of(session) == now + 2 * HOUR
    assert not ChangeLog.objects.filter(event="session_extended").exists()


def test_the_whole_length_the_definition_allows_can_be_had(session, as_operator, now):
    extend_session(session=session, ends_at=now + 8 * HOUR, actor=as_operator, now=now)
    assert end_of(session) == session.latest_end


def test_an_end_later_than_the_old_one_but_in_the_past_is_refused(session_in, as_operator, now):
    session = session_in(S.RUNNING)
    with pytest.raises(InvalidInput):
        extend_session(session=session, ends_at=now + 3 * HOUR, actor=as_operator, now=now + 4 * HOUR)


def test_of_two_who_extend_from_the_same_page_the_second_is_told(session, as_operator, now):
    old_copy = LabletSession.objects.get(pk=session.pk)
    extend_session(session=session, ends_at=now + 3 * HOUR, actor=as_operator, now=now)
    with pytest.raises(StateConflict, match="changed a moment ago"):
        extend_session(session=old_copy, ends_at=now + 4 * HOUR, actor=as_operator, now=now)
    assert end_of(session) == now + 3 * HOUR


def test_the_change_log_s_sentence_has_the_end_in_utc(session, as_operator, now):
    berlin = timezone(2 * HOUR)
    extend_session(session=session, ends_at=(now + 3 * HOUR).astimezone(berlin), actor=as_operator, now=now)
    entry = ChangeLog.objects.get(event="session_extended")
    assert entry.message.endswith(f"extended to {now + 3 * HOUR:%Y-%m-%d %H:%M} UTC")
