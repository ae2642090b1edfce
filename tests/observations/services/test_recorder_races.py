"""Concurrent observations."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from random import Random
from threading import Event

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from psycopg import Connection

from lcm.domain.actors import SYSTEM
from lcm.domain.lifecycle import SessionStatus
from lcm.models import ChangeLog, LabletDefinition, LabletSession
from lcm.services.definitions import revert_definition
from lcm.services.session_transitions import transition_session
from observations.models import DefinitionAssessment, DriftReview, SessionObservation
from observations.services.aggregates import rebuild_definition
from observations.services.observation_recorder import record_observation
from observations.services.requests import request_observation
from observations.services.requirement_preview import RequirementChoice
from scheduling.models import PortAllocation, Slot
from tests.support.observed_labs import CONTROLLER, apply, make_past_session, on_slot, post, seen

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]
TOO_MUCH_CPU = {"cpu": "2.00", "memory": 3000, "storage": 6500}


def in_a_thread(threads, work):
    """Run `work` in a thread with its own connection and return its result."""

    def run():
        try:
            return work()
        finally:
            connections.close_all()

    return threads.submit(run)


@contextmanager
def locked(slot):
    """Lock the slot until the block ends."""
    is_held, release = Event(), Event()

    def hold():
        with transaction.atomic():
            list(Slot.objects.select_for_update().filter(pk=slot.pk))
            is_held.set()
            release.wait(30)

    with ThreadPoolExecutor(1) as threads:
        holding = in_a_thread(threads, hold)
        try:
            assert is_held.wait(10)
            yield
        finally:
            release.set()
        holding.result(10)


def wait_for_lock_waits(count=1):
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    for _ in range(400):
        with connection.cursor() as cursor:
            cursor.execute(waiting + " AND datname = current_database()")
            if cursor.fetchone()[0] >= count:
                return
        time.sleep(0.05)
    raise AssertionError("no statement waits for a lock")


def test_concurrent_posts_of_the_same_observation_count_once(collecting, now, at_once):
    body = seen(now)
    results = at_once(
        *(lambda: post(LabletSession.objects.get(pk=collecting.pk), body, now) for _ in range(4))
    )
    assert sorted(result.was_new for result in results) == [False, False, False, True]
    assert LabletSession.objects.get(pk=collecting.pk).observation_count == 1


def test_concurrent_sessions_are_all_counted(active_definition, project, operator, now, at_once):
    sessions = [make_past_session(active_definition, project, operator, ended=now) for _ in range(8)]
    work = [
        lambda session=session, index=index: post(session, seen(now, cpu=f"{1 + index / 10:.2f}"), now)
        for index, session in enumerate(sessions)
    ]
    results = at_once(*work)
    assert all(result.was_new for result in results), results
    assert SessionObservation.objects.count() == 8
    assert DefinitionAssessment.objects.get(definition=active_definition).n == 8
    active_definition.refresh_from_db()
    assert rebuild_definition(definition=active_definition, now=now, check=True) == []


def test_concurrent_equal_drift_is_one_review_and_one_reserved_port(
    active_definition, project, operator, now, at_once
):
    sessions = [make_past_session(active_definition, project, operator, ended=now) for _ in range(3)]
    for session in sessions:
        on_slot(session, ports={})
    results = at_once(*(lambda s=s: post(s, seen(now, ports={"r9_vnc": 6001}), now) for s in sessions))
    assert all(result.was_new for result in results), results
    assert PortAllocation.objects.filter(leaked=True, port=6001).count() == 1
    assert DriftReview.objects.filter(kind="extra").count() == 1


@pytest.mark.parametrize("offset", [20, 0], ids=["ports of their own", "the same ports"])
def test_concurrent_drift_causes_no_deadlock(offset, active_definition, project, operator, now, at_once):
    """Eight labs on three workers, each observed twelve times: leaked, free, in conflict, clean."""
    labs = [
        make_past_session(active_definition, project, operator, ended=now, until=SessionStatus.RUNNING)
        for _ in range(8)
    ]
    workers = [on_slot(lab, number=index % 3 + 1, ports={}) for index, lab in enumerate(labs)]
    later = now + timedelta(seconds=20)

    def observe_repeatedly(index):
        chance = Random(index)
        for second in range(12):
            names = chance.sample(range(12), chance.randint(0, 8))
            ports = {f"p{name}": 6000 + offset * index + name for name in names}
            post(labs[index], seen(now + timedelta(seconds=second), ports=ports), later)
        return "done"

    assert at_once(*(partial(observe_repeatedly, index) for index in range(8))) == ["done"] * 8
    assert {lab.observation_count for lab in labs} == {12}
    last = {each.session_id: each.observed_ports for each in SessionObservation.objects.all()}
    shown = {
        (worker.pk, port) for lab, worker in zip(labs, workers, strict=True) for port in last[lab.pk].values()
    }
    assert shown <= set(PortAllocation.objects.values_list("slot_id", "port"))
    # A port transferred to a lab observed concurrently is released by its next observation.
    for lab in labs:
        post(lab, seen(later, ports=last[lab.pk]), later)
    assert shown == set(PortAllocation.objects.values_list("slot_id", "port"))


def test_a_port_in_use_while_its_session_ends_stays_reserved(active_definition, project, operator, now):
    lab, other = (make_past_session(active_definition, project, operator, ended=now) for _ in range(2))
    slot = on_slot(lab, ports={})
    on_slot(other, ports={"r1_serial": 5047})
    move(other, SessionStatus.STOPPING, now)
    with ThreadPoolExecutor(2) as threads:
        with locked(slot):
            posted = in_a_thread(threads, lambda: post(lab, seen(now, ports={"r9_vnc": 5047}), now))
            ended = in_a_thread(threads, lambda: move(other, SessionStatus.TERMINATED, now))
            wait_for_lock_waits(2)
        assert posted.result(30).was_new
        ended.result(30)
    held = PortAllocation.objects.get()
    assert (held.port, held.session_id, held.leaked) == (5047, lab.pk, True)


def move(session, to, now):
    transition_session(session=LabletSession.objects.get(pk=session.pk), to=to, actor=SYSTEM, now=now)


def events(name):
    return ChangeLog.objects.filter(event=name).count()


def test_a_delayed_recording_is_assessed_with_the_new_revision(
    active_definition, project, operator, observed, as_admin, now
):
    observed(active_definition, 12, **TOO_MUCH_CPU)
    late = make_past_session(active_definition, project, operator, ended=now)
    slot, leaking = on_slot(late, ports={}), seen(now, **TOO_MUCH_CPU, ports={"r9_vnc": 6001})
    choices = {"cpu_cores": RequirementChoice("recommended")}
    with ThreadPoolExecutor(1) as threads:
        with locked(slot):
            posted = in_a_thread(threads, lambda: post(late, leaking, now))
            wait_for_lock_waits()
            assert apply(active_definition, choices, as_admin, now).number == 2
        assert posted.result(30).was_new
    kept = DefinitionAssessment.objects.get(definition=active_definition)
    assert (kept.n, kept.provisioning, kept.flags) == (13, "right_sized", {})
    definition = LabletDefinition.objects.get(pk=active_definition.pk)
    assert not definition.needs_review
    assert (events("definition.flagged"), events("definition.cleared")) == (1, 1)
    assert rebuild_definition(definition=definition, now=now, check=True) == []


def test_sessions_that_end_together_raise_one_review(
    active_definition, project, operator, observed, now, at_once
):
    observed(active_definition, 9, **TOO_MUCH_CPU)
    sessions = [make_past_session(active_definition, project, operator, ended=now) for _ in range(6)]
    results = at_once(*(lambda s=s: post(s, seen(now, **TOO_MUCH_CPU), now) for s in sessions))
    assert all(result.was_new for result in results), results
    assert LabletDefinition.objects.get(pk=active_definition.pk).needs_review
    assert events("definition.flagged") == 1


def test_the_last_two_sessions_of_a_revision_stop_at_once_and_verify_it(
    active_definition, project, operator, observed, as_admin, now
):
    observed(active_definition, 10, **TOO_MUCH_CPU)
    apply(active_definition, {"cpu_cores": RequirementChoice("recommended")}, as_admin, now)
    observed(active_definition, 3, **TOO_MUCH_CPU)
    before = now - timedelta(minutes=1)
    first, second = (make_past_session(active_definition, project, operator, ended=now) for _ in range(2))
    for session in (first, second):
        post(session, seen(before, **TOO_MUCH_CPU), before)
    revision = active_definition.revisions.get(number=2)
    assert revision.outcome == "watching"
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            move(first, SessionStatus.STOPPING, now)
            stopped = in_a_thread(threads, lambda: move(second, SessionStatus.STOPPING, now))
            wait_for_lock_waits()
        stopped.result(30)
    revision.refresh_from_db()
    assert revision.outcome == "verified"


def test_a_revision_replaced_during_a_decision_is_superseded(
    active_definition, project, operator, observed, as_admin, now
):
    """Both change the definition and the revision without a deadlock."""
    observed(active_definition, 10, **TOO_MUCH_CPU)
    apply(active_definition, {"cpu_cores": RequirementChoice("recommended")}, as_admin, now)
    too_little = {**TOO_MUCH_CPU, "cpu": "2.70"}
    observed(active_definition, 1, **too_little)
    second = make_past_session(active_definition, project, operator, ended=now)
    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            LabletDefinition.objects.select_for_update().get(pk=active_definition.pk)
            posted = in_a_thread(threads, lambda: post(second, seen(now, **too_little), now))
            wait_for_lock_waits()
            revert_definition(
                definition=active_definition, number=1, based_on=2, reason="slow", actor=as_admin, now=now
            )
        assert posted.result(30).was_new
    assert active_definition.revisions.get(number=2).outcome == "superseded"


def test_a_post_needs_three_round_trips(active_definition, project, operator, observed, now, monkeypatch):
    trips = []
    pipeline = Connection.pipeline
    monkeypatch.setattr(Connection, "pipeline", lambda self: trips.append("pipeline") or pipeline(self))
    observed(active_definition, 1)
    session = make_past_session(active_definition, project, operator, ended=now)
    body = seen(now)
    trips.clear()
    with CaptureQueriesContext(connection) as queries:
        record_observation(session_id=session.pk, body=body, actor=CONTROLLER, now=now)
    assert len([*trips, *(each for each in queries if each["sql"] not in ("BEGIN", "COMMIT"))]) == 3


def test_concurrent_requests_share_one_row(running, as_operator, as_admin, now, at_once):
    requests = at_once(
        *(
            lambda actor=actor: request_observation(session=running, actor=actor, now=now)
            for actor in (as_operator, as_admin)
        )
    )
    assert requests[0].pk == requests[1].pk
