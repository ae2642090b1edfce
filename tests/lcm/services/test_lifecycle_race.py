"""Of two concurrent transitions exactly one succeeds. PostgreSQL only: needs real connections."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.errors import StateConflict
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletSession
from lcm.services.session_transitions import transition_session, transition_sessions
from lcm.services.sessions import cancel_sessions, extend_session

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
ROUNDS = 5


@pytest.mark.parametrize("again", range(ROUNDS))
def test_two_threads_racing_for_the_same_transition_record_it_once(again, session_in, now, at_once):
    session = session_in(SessionStatus.RUNNING)
    copies = [LabletSession.objects.get(pk=session.pk) for _ in range(2)]

    def step(copy: LabletSession) -> Callable[[], object]:
        return lambda: transition_session(session=copy, to=SessionStatus.COLLECTING, actor=SYSTEM, now=now)

    results = at_once(*map(step, copies))

    assert Counter(type(result) for result in results) == {LabletSession: 1, StateConflict: 1}
    assert session.transitions.filter(to_status=SessionStatus.COLLECTING).count() == 1
    assert ChangeLog.objects.filter(object_id=str(session.pk), after={"status": "COLLECTING"}).count() == 1


@pytest.mark.parametrize("again", range(ROUNDS))
def test_of_two_different_racing_transitions_only_one_succeeds(again, session_in, now, at_once):
    session = session_in(SessionStatus.INSTANTIATING)
    targets = (SessionStatus.READY, SessionStatus.FAILED)

    def step(to: SessionStatus) -> Callable[[], object]:
        copy = LabletSession.objects.get(pk=session.pk)
        return lambda: transition_session(session=copy, to=to, actor=SYSTEM, now=now)

    results = at_once(*map(step, targets))

    session.refresh_from_db()
    winner = targets[0] if isinstance(results[0], LabletSession) else targets[1]
    assert sum(isinstance(result, StateConflict) for result in results) == 1
    assert session.status == winner
    assert session.transitions.filter(from_status=SessionStatus.INSTANTIATING).get().to_status == winner


def end_as_controller(session: LabletSession, now: datetime) -> object:
    return transition_session(
        session=session, to=SessionStatus.COLLECTING, ends_at=session.ends_at, actor=SYSTEM, now=now
    )


def end_as_handler(session: LabletSession, now: datetime) -> object:
    transition = {"old": SessionStatus.RUNNING, "to": SessionStatus.STOPPING, "actor": SYSTEM, "now": now}
    return transition_sessions(sessions=[session], **transition, unless_extended=True)


@pytest.mark.parametrize("end", [end_as_controller, end_as_handler])
@pytest.mark.parametrize("again", range(ROUNDS))
def test_of_a_racing_extension_and_end_of_timeslot_one_succeeds(again, end, session_in, now, at_once):
    session = session_in(SessionStatus.RUNNING)
    stored, extended = (LabletSession.objects.get(pk=session.pk) for _ in range(2))
    later = session.ends_at + timedelta(hours=1)

    ended, result = at_once(
        lambda: end(stored, now),
        lambda: extend_session(session=extended, ends_at=later, actor=SYSTEM, now=now),
    )

    session.refresh_from_db()
    if isinstance(result, LabletSession):
        assert (session.status, session.ends_at) == (SessionStatus.RUNNING, later)
        assert ended == [] or isinstance(ended, StateConflict)
    else:
        assert isinstance(result, StateConflict)
        assert session.status != SessionStatus.RUNNING


def test_two_racing_bulk_cancels_cancel_each_session_once(session_in, now, at_once):
    sessions = [session_in(SessionStatus.PENDING) for _ in range(20)]

    def cancel() -> object:
        return cancel_sessions(sessions=list(sessions), actor=SYSTEM, now=now, reason="end of course")

    counts = at_once(cancel, cancel)

    assert sum(cancelled for cancelled, _ in counts) == 20
    assert all(each.transitions.filter(to_status=SessionStatus.CANCELLED).count() == 1 for each in sessions)


@pytest.mark.parametrize("again", range(ROUNDS))
def test_a_race_over_the_api_returns_one_200_and_one_409(again, session_in, controller, api, at_once):
    session = session_in(SessionStatus.RUNNING)
    address = f"/api/internal/lablet-sessions/{session.pk}/transitions/"

    def post() -> object:
        return api(controller).post(address, {"to_status": "COLLECTING"})

    first, second = sorted(at_once(post, post), key=lambda result: result.status_code)

    assert (first.status_code, second.status_code) == (200, 409)
    assert second.json()["code"] == "state_conflict"
    assert second.json()["details"] == {"status": "COLLECTING", "allowed": ["STOPPING"]}
    assert session.transitions.filter(to_status=SessionStatus.COLLECTING).count() == 1
