"""Rows are locked in one order everywhere, so that transactions do not deadlock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus as S
from lcm.models import LabletSession
from lcm.services.session_transitions import transition_session
from lcm.services.sessions import cancel_sessions
from scheduling.models import Pool, Slot, SlotState
from scheduling.services import lost_slots
from scheduling.services.lost_slots import fail_sessions_on_slot


def test_sessions_of_one_transition_are_locked_in_the_order_of_their_ids(fleet, new_session):
    sessions = sorted((new_session() for _ in range(3)), key=lambda each: each.pk, reverse=True)
    with CaptureQueriesContext(connection) as queries:
        cancel_sessions(sessions=sessions, actor=SYSTEM, now=fleet.clock(), reason="no more")
    table = LabletSession._meta.db_table
    locks = [query["sql"] for query in queries if query["sql"].startswith(f'SELECT "{table}"."id"')]
    assert locks
    assert all(f'ORDER BY "{table}"."id" ASC' in each or "ORDER BY 1 ASC" in each for each in locks)


def test_a_refused_launch_updates_the_pool_before_its_slot(fleet):
    """The deletion of a pool locks the pool first as well."""
    fleet.slot(SlotState.LAUNCHING)
    fleet.runtime.refused_offerings = {each.name for each in fleet.runtime.offerings()}
    with CaptureQueriesContext(connection) as queries:
        fleet.launch()
    tables = (Pool._meta.db_table, Slot._meta.db_table)
    updates = [each for query in queries for each in tables if f'UPDATE "{each}" SET' in query["sql"]]
    assert fleet.reload_pool().backoff_until is not None
    assert updates[-2:] == list(tables)


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_losing_a_slot_does_not_lock_it_while_locking_more_sessions(fleet, session_on, monkeypatch):
    """A controller reports the other session while the first releases its lease."""
    slot = fleet.slot()
    _, other = session_on(slot, S.SCHEDULED), session_on(slot, S.INSTANTIATING)
    reported = []

    def report():
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = '3s'")
            session = LabletSession.objects.get(pk=other.pk)
            return transition_session(session=session, to=S.FAILED, actor=SYSTEM, now=fleet.clock())
        finally:
            connections.close_all()

    def transition_and_report(**arguments):
        transitioned = real(**arguments)
        if not reported:
            with ThreadPoolExecutor(1) as thread:
                reported.append(thread.submit(report).result(20))
        return transitioned

    real = lost_slots.transition_sessions
    monkeypatch.setattr(lost_slots, "transition_sessions", transition_and_report)
    fail_sessions_on_slot(slot=slot, reason="its worker vanished", now=fleet.clock())
    slot.refresh_from_db()
    assert (reported[0].status, slot.lease_count) == (S.FAILED, 0)
