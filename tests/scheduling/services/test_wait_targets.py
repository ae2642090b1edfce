"""Sessions that wait for longer than the wait target of their pool: one event for each."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import ChangeLog
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_session
from scheduling.models import Pool, Reservation
from scheduling.services import wait_targets
from scheduling.services.wait_targets import announce_exceeded_targets

MINUTE = timedelta(minutes=1)


def announced():
    rows = ChangeLog.objects.filter(event="session.wait_target_exceeded").order_by("pk")
    return list(rows.values_list("object_id", flat=True))


@pytest.mark.parametrize(
    ("waited", "target", "joins_after", "exceeded"),
    [(15, 900, None, False), (15.1, 900, None, True), (60, 3600, None, False), (20, 900, 10, False),
     (26, 900, 10, True), (16, 900, 30, False)],
    ids=["at the target", "above it", "a longer target", "an advance booking waits from its queue entry",
         "an advance booking above it", "an advance booking that has not joined the queue"],
)  # fmt: skip
def test_a_session_is_announced_when_it_exceeds_the_target(
    waited, target, joins_after, exceeded, new_session, now
):
    session = new_session()
    Pool.objects.update(target_wait_seconds=target)
    if joins_after:
        Reservation.objects.update(joins_queue_at=now + joins_after * MINUTE)
    announce_exceeded_targets(now=now + waited * MINUTE)
    assert announced() == [str(session.pk)] * exceeded


def test_a_session_is_announced_once_also_if_it_is_requeued(new_session, fleet, now):
    session = new_session()
    for minutes in (16, 17):
        announce_exceeded_targets(now=now + minutes * MINUTE)
    entry = ChangeLog.objects.get(event="session.wait_target_exceeded")
    assert entry.message == f"{session} has waited for longer than the wait target of cml-eu"
    assert (entry.routed, entry.after["target_wait_seconds"]) == (False, 900)
    fleet.assign(session, fleet.slot())
    session.refresh_from_db()
    transition_session(session=session, to=S.PENDING, actor=SYSTEM, now=now + 20 * MINUTE)
    for minutes in (60, 61):
        announce_exceeded_targets(now=now + minutes * MINUTE)
    assert announced() == [str(session.pk)]


def test_only_waiting_sessions_are_announced(new_session, session_on, fleet, now):
    session_on(fleet.slot())
    cancelled = new_session()
    cancel_session(session=cancelled, reason="late", actor=SYSTEM, now=now)
    fleet.reservation(ttl=86_400)
    announce_exceeded_targets(now=now + 60 * MINUTE)
    assert announced() == []


def test_many_sessions_are_announced_in_batches(new_session, now, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr(wait_targets, "BATCH", 2)
    sessions = {str(new_session().pk) for _ in range(5)}
    announce_exceeded_targets(now=now + 16 * MINUTE)
    assert set(announced()) == sessions
    with django_assert_num_queries(1 + 3 * Pool.objects.count()):  # each a savepoint, a read, the release
        announce_exceeded_targets(now=now + 16 * MINUTE)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_processes_that_look_at_once_announce_each_session_once(new_session, now, at_once):
    sessions = {str(new_session().pk) for _ in range(5)}
    found = at_once(*[lambda: announce_exceeded_targets(now=now + 16 * MINUTE)] * 4)
    assert found == [None] * 4
    assert len(announced()) == 5
    assert set(announced()) == sessions


@pytest.mark.postgres
def test_the_query_reads_the_sessions_within_the_target_by_their_index(new_session, now):
    from django.db import connection

    new_session()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    due = wait_targets.sessions_beyond_target(Pool.objects.get(name="cml-eu"), now)
    assert "reservation_within_target" in due.explain()
