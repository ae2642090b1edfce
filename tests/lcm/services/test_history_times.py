"""Transition times of a session never decrease, even if the clocks of two processes differ."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ChangeLog, LabletSession
from lcm.selectors.sessions import session_timeline
from lcm.services.session_transitions import transition_session, transition_sessions

pytestmark = pytest.mark.django_db
MOMENT = timedelta(milliseconds=67)


def times_of(session: LabletSession) -> tuple[list, list]:
    """Return the times of the transitions and of the change log."""
    changes = ChangeLog.objects.filter(object_id=str(session.pk)).order_by("pk")
    history = session.transitions.order_by("pk").values_list("at", flat=True)
    return sorted(history), list(changes.values_list("at", flat=True))


def test_a_transition_is_never_before_the_previous_one(session, now):
    transition_session(session=session, to=S.SCHEDULED, actor=SYSTEM, now=now - MOMENT)
    assert session.status_since == now
    assert times_of(session) == ([now, now], [now, now])
    assert set(session.kernels.values_list("started_at", flat=True)) == {now}


def test_bulk_transitions_are_never_before_the_previous_ones(session_in, now):
    """Only the session whose previous transition was later gets a time other than `now`."""
    early, late = session_in(S.PENDING), session_in(S.PENDING, now=now + MOMENT)
    cancelled_at = now + MOMENT / 2
    moved = transition_sessions(
        sessions=[early, late], old=S.PENDING, to=S.CANCELLED, actor=SYSTEM, now=cancelled_at
    )
    for session, before, after in ((early, now, cancelled_at), (late, now + MOMENT, now + MOMENT)):
        assert times_of(session) == ([before, after], [before, after])
        assert next(each for each in moved if each.pk == session.pk).status_since == after
        session.refresh_from_db()
        assert session.status_since == after


def test_a_transition_by_a_clock_ahead_has_a_duration_of_zero(session, now):
    steps = list(session.transitions.all())
    assert session_timeline(session, steps, now=now - MOMENT)[0].lasted == timedelta(0)
