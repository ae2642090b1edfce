"""Change the priority of waiting sessions."""

import pytest

from lcm.domain.errors import InvalidInput, StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletSession, Priority
from lcm.services.session_priority import change_priority
from lcm.services.session_transitions import transition_session


def change(session, actor, now, **values):
    return change_priority(
        session=session, actor=actor, now=now, **{"priority": Priority.HIGH, "reason": "exam", **values}
    )


def test_a_waiting_session_and_its_reservation_get_the_priority(session, as_operator, now):
    change(session, as_operator, now)
    session.refresh_from_db()
    assert (session.priority, session.reservations.get().priority) == (Priority.HIGH, Priority.HIGH)
    entry = ChangeLog.objects.get(event="session.priority_changed")
    assert (entry.actor, entry.reason, entry.message) == ("otto", "exam", "priority normal → high")
    assert (entry.before, entry.after) == ({"priority": 50}, {"priority": 90})


@pytest.mark.parametrize("status", [each for each in SessionStatus if each != SessionStatus.PENDING])
def test_only_pending_sessions_change_priority(status, session_in, as_operator, now):
    session = session_in(status)
    with pytest.raises(StateConflict, match="only pending sessions can change priority"):
        change(session, as_operator, now)
    assert LabletSession.objects.get(pk=session.pk).priority == Priority.NORMAL


def test_of_two_changes_from_the_same_state_the_second_fails(session, as_operator, now):
    stale = LabletSession.objects.get(pk=session.pk)
    change(session, as_operator, now)
    with pytest.raises(StateConflict, match="was changed a moment ago"):
        change(stale, as_operator, now, priority=Priority.LOW)
    assert session.reservations.get().priority == Priority.HIGH
    assert ChangeLog.objects.filter(event="session.priority_changed").count() == 1


def test_a_session_placed_meanwhile_keeps_its_priority(session, as_operator, now):
    stale = LabletSession.objects.get(pk=session.pk)
    transition_session(session=session, to=SessionStatus.SCHEDULED, actor=as_operator, now=now)
    with pytest.raises(StateConflict, match="is scheduled"):
        change(stale, as_operator, now)
    assert session.reservations.get().priority == Priority.NORMAL


def test_a_repeated_change_does_nothing(session, as_operator, now):
    for _ in range(2):
        assert change(session, as_operator, now).priority == Priority.HIGH
    assert ChangeLog.objects.filter(event="session.priority_changed").count() == 1


@pytest.mark.parametrize(("values", "field"), [({"reason": " "}, "reason"), ({"priority": 51}, "priority")])
def test_an_invalid_change_is_rejected(values, field, session, as_operator, now):
    with pytest.raises(InvalidInput) as caught:
        change(session, as_operator, now, **values)
    assert list(caught.value.fields) == [field]
